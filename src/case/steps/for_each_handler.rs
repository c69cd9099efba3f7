//! `for-each-handler`: take steps once for each runtime handler.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Step, StepRules};
use crate::case::Need;
use crate::case::validate::{Surroundings, Walk};

/// Take steps once for each runtime handler that `Status` reports. Their sandboxes have that
/// handler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "steps such as `{steps: […]}`")]
pub struct ForEachHandlerStep {
    /// The steps for each handler.
    pub steps: Vec<Step>,
}

impl StepRules for ForEachHandlerStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, around: Surroundings) {
        walk.apart("steps", &self.steps, around);
    }

    fn needs(&self) -> Vec<Need> {
        vec![Need::Handlers]
    }

    fn inner(&self) -> Vec<&[Step]> {
        vec![&self.steps]
    }
}
