//! `outside-cri`: run a container that is not made through the CRI.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::StepRules;
use crate::case::Need;
use crate::case::validate::{Surroundings, Walk};

/// Run the user's command that runs a container outside the CRI, until the command ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "nothing, as in `outside-cri: {}`")]
pub struct OutsideCriStep {}

impl StepRules for OutsideCriStep {
    fn check<'a>(&'a self, _: &mut Walk<'a, '_>, _: Surroundings) {}

    fn needs(&self) -> Vec<Need> {
        vec![Need::OutsideCri]
    }
}
