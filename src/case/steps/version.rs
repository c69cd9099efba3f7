//! `version`: ask for the runtime's version.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::StepRules;
use crate::case::validate::{Surroundings, Walk};

/// Ask for the runtime's version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "nothing, as in `version: {}`")]
pub struct VersionStep {}

impl StepRules for VersionStep {
    fn check<'a>(&'a self, _: &mut Walk<'a, '_>, _: Surroundings) {}

    fn check_without_events(&self, _: &mut Walk<'_, '_>) {}
}
