//! `stop`: stop a container, by the stop signal and after the grace period by the kill.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CallExpectation, CallOutcome, StepRules};
use crate::case::validate::{Surroundings, Walk};
use crate::case::{CallEdge, Span, limits};

/// Stop a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a container and a grace period such as `{container: c, grace: 2s}`"
)]
pub struct StopStep {
    /// The container.
    pub container: String,
    /// Call it by a prefix of its id, as people do. If the runtime refuses that, the case is
    /// inconclusive.
    #[serde(default)]
    pub by_prefix: bool,
    /// Time between the stop signal and the kill; whole seconds.
    #[serde(with = "Span")]
    pub grace: Duration,
    /// How the call ends: `success`, `failure` or `either`, where something else may make it fail.
    /// If a call succeeds that must fail, the case is skipped.
    #[serde(default)]
    pub expect: CallOutcome,
    /// When the client gives up on the call, which may have succeeded or failed by then.
    #[serde(default, with = "Span", skip_serializing_if = "Option::is_none")]
    pub abandon_after: Option<Duration>,
}

impl StopStep {
    pub fn expectation(&self) -> CallExpectation {
        CallExpectation::from_keys(self.expect, self.abandon_after)
    }
}

impl StepRules for StopStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, _: Surroundings) {
        walk.container("container", &self.container);
        let edges = [CallEdge::StopCalled, CallEdge::StopReturned];
        walk.called(&self.container, &edges);
        if self.grace.subsec_nanos() != 0 || self.grace > limits::GRACE {
            let most = limits::GRACE.as_secs();
            let message = format!("a grace period is from 0 to {most} whole seconds");
            walk.object_to("grace", message)
                .advise("the CRI counts it in seconds");
        }
        walk.expectation(self.expect, self.abandon_after);
    }
}
