//! `start`: start a container.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CallExpectation, StepRules};
use crate::case::validate::{Surroundings, Walk};
use crate::case::{CallEdge, duration};

/// Start a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a container such as `{container: c}`"
)]
pub struct StartStep {
    /// Which container.
    pub container: String,
    /// By the beginning of its id, as people do, and not by the whole. If the runtime refuses that,
    /// the case is inconclusive.
    #[serde(default)]
    pub by_prefix: bool,
    /// The call must fail. If it succeeds, the case is inconclusive.
    #[serde(default)]
    pub fails: bool,
    /// Something else may make it fail: whatever the call returns is right.
    #[serde(default)]
    pub races: bool,
    /// When we give up on the call. Whatever it has come to by then is right.
    #[serde(
        default,
        with = "duration::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<duration::Text>")]
    pub deadline: Option<Duration>,
}

impl StartStep {
    /// How the call may end.
    #[must_use]
    pub fn expectation(&self) -> CallExpectation {
        CallExpectation::from_keys(self.fails, self.races, self.deadline)
    }
}

impl StepRules for StartStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, _: Surroundings) {
        walk.container("container", &self.container);
        walk.called(&self.container, &[CallEdge::StartReturned]);
        walk.call_keys(self.fails, self.races || self.deadline.is_some());
        walk.expectation(self.expectation());
    }
}
