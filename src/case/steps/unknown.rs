//! `unknown`: make a call on something that has never been.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::StepRules;
use crate::case::validate::{Surroundings, Walk};

/// A call on something that has never been, by an id of its own. Whatever it returns is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "kebab-case",
    expecting = "a call: `stop`, `remove`, `stop-sandbox` or `remove-sandbox`"
)]
pub enum UnknownStep {
    /// Stop a container.
    Stop,
    /// Remove a container.
    Remove,
    /// Stop a sandbox.
    StopSandbox,
    /// Remove a sandbox.
    RemoveSandbox,
}

impl StepRules for UnknownStep {
    fn check<'a>(&'a self, _: &mut Walk<'a, '_>, _: Surroundings) {}
}
