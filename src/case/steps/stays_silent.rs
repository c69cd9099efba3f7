//! `stays-silent`: for a time, no event arrives and no stream ends.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Step, StepRules};
use crate::case::Span;
use crate::case::validate::{Surroundings, Walk};

/// Wait for a time in which no event may arrive on any stream, and no stream may end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a time such as `{for: 5s}`")]
pub struct StaysSilentStep {
    /// The time, from the end of the steps.
    #[serde(rename = "for", with = "Span")]
    pub time: Duration,
    /// Steps that come first, and cause no event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
}

impl StepRules for StaysSilentStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, around: Surroundings) {
        walk.alone("other cases would not be quiet meanwhile");
        walk.span("for", Some(self.time));
        if around.parallel {
            walk.object("other steps would not be quiet meanwhile")
                .advise("let it stand between the others");
        }
        if !self.steps.is_empty() {
            walk.steps(&self.steps, around);
        }
    }

    fn inner(&self) -> Vec<&[Step]> {
        vec![&self.steps]
    }
}
