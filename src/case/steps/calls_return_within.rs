//! `calls-return-within`: each call of some steps returns within a time.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Step, StepRules};
use crate::case::Span;
use crate::case::validate::{Surroundings, Walk};

/// Take steps each call of which must return within a time. If one does not, the case fails.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a bound and steps such as `{time: 5s, steps: […]}`"
)]
pub struct CallsReturnWithinStep {
    /// The longest time that a call of a conformant runtime may take.
    #[serde(with = "Span")]
    pub time: Duration,
    /// The steps.
    pub steps: Vec<Step>,
}

impl StepRules for CallsReturnWithinStep {
    fn is_block(&self) -> bool {
        true
    }

    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, around: Surroundings) {
        walk.span("time", Some(self.time));
        walk.steps(&self.steps, around);
    }

    fn inner(&self) -> Vec<&[Step]> {
        vec![&self.steps]
    }
}
