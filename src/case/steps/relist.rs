//! `relist`: list a sandbox's containers and read the status of each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::StepRules;
use crate::case::validate::{Surroundings, Walk};

/// List a sandbox's containers and read the status of each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a sandbox such as `{sandbox: pod}`")]
pub struct RelistStep {
    /// The sandbox.
    pub sandbox: String,
}

impl StepRules for RelistStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, _: Surroundings) {
        walk.sandbox("sandbox", &self.sandbox);
        walk.relisted(&self.sandbox);
    }
}
