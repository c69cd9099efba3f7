//! `another-client`: take steps as another client of the runtime.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Step, StepRules};
use crate::case::validate::{Surroundings, Walk};

/// Take steps as another client of the runtime, whose calls have a connection of their own. Relists
/// use the run's own connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "steps such as `{steps: […]}`")]
pub struct AnotherClientStep {
    /// The steps.
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
