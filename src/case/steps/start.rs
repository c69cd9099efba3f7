//! `start`: start a container.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CallExpectation, CallOutcome, StepRules};
use crate::case::validate::{Surroundings, Walk};
use crate::case::{CallEdge, Span};

/// Start a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a container such as `{container: c}`"
)]
pub struct StartStep {
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
    /// When the client gives up on the call, which may have succeeded or failed by then.
    #[serde(default, with = "Span", skip_serializing_if = "Option::is_none")]
    pub abandon_after: Option<Duration>,
}

impl StartStep {
    pub fn expectation(&self) -> CallExpectation {
        CallExpectation::from_keys(self.expect, self.abandon_after)
    }
}

impl StepRules for StartStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, _: Surroundings) {
        walk.container("container", &self.container);
        walk.called(&self.container, &[CallEdge::StartReturned]);
        walk.expectation(self.expect, self.abandon_after);
    }
}
