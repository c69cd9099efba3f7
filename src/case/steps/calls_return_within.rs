//! `prompt`: each call of some steps returns within a time.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Step, StepRules};
use crate::case::duration;
use crate::case::validate::{Surroundings, Walk};

/// Do some steps, each call of which must return soon. That it does is a requirement of the case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a bound and steps such as `{within: 5s, steps: […]}`"
)]
pub struct CallsReturnWithinStep {
    /// The longest time that a call of a conformant runtime may take.
    #[serde(with = "duration")]
    #[schemars(with = "duration::Text")]
    pub within: Duration,
    /// What to do.
    pub steps: Vec<Step>,
}

impl StepRules for CallsReturnWithinStep {
    fn is_block(&self) -> bool {
        true
    }

    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, around: Surroundings) {
        walk.span("within", Some(self.within));
        walk.steps(&self.steps, around);
    }

    fn inner(&self) -> Vec<&[Step]> {
        vec![&self.steps]
    }
}
