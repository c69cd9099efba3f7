//! `remove`: remove a container.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CallExpectation, CallOutcome, StepRules};
use crate::case::Span;
use crate::case::validate::{Surroundings, Walk};

/// Remove a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a container such as `{container: c}`"
)]
pub struct RemoveStep {
    /// The container.
    pub container: String,
    /// Call it by a prefix of its id, as people do. If the runtime refuses that, the case is
    /// inconclusive.
    #[serde(default)]
    pub by_prefix: bool,
    /// How the call ends: `success`, `failure` or `either`, where something else may make it fail.
    /// If a call succeeds that must fail, the case is skipped.
    #[serde(default)]
    pub expect: CallOutcome,
    /// The longest time until the container is removed. A runtime may refuse until then: the call
    /// is repeated. If it still refuses after that time, the case fails.
    #[serde(default, with = "Span", skip_serializing_if = "Option::is_none")]
    pub within: Option<Duration>,
}

impl RemoveStep {
    pub fn expectation(&self) -> CallExpectation {
        CallExpectation::from_keys(self.expect, None)
    }
}

impl StepRules for RemoveStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, _: Surroundings) {
        walk.container("container", &self.container);
        walk.expectation(self.expect, None);
        if self.within.is_some() && (self.expect != CallOutcome::Success || self.by_prefix) {
            walk.object_to("within", "whatever this call returns is right")
                .advise("leave out either `within` or the rest");
        }
        walk.span("within", self.within);
    }
}
