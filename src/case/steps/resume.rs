//! `resume`: let a subscriber that has stopped reading read on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::StepRules;
use crate::case::validate::{Surroundings, Walk};

/// Let a subscriber that has stopped reading read on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a subscription such as `{subscription: b}`"
)]
pub struct ResumeStep {
    /// The subscription.
    pub subscription: String,
}

impl StepRules for ResumeStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, _: Surroundings) {
        walk.subscription("subscription", &self.subscription);
    }
}
