//! `another-client`: take steps as another client of the runtime.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Step, StepRules};
use crate::case::validate::{Surroundings, Walk};

/// Take steps as another client would, whose calls have a connection of their own. Lists and
/// statuses are asked for as ever.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "steps such as `{steps: […]}`")]
pub struct AnotherClientStep {
    /// What it does.
    pub steps: Vec<Step>,
}

impl StepRules for AnotherClientStep {
    fn is_block(&self) -> bool {
        true
    }

    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, around: Surroundings) {
        walk.steps(&self.steps, around);
    }

    fn inner(&self) -> Vec<&[Step]> {
        vec![&self.steps]
    }
}
