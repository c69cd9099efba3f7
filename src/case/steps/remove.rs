//! `remove`: remove a container.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CallExpectation, StepRules};
use crate::case::duration;
use crate::case::validate::{Surroundings, Walk};

/// Remove a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a container such as `{container: c}`"
)]
pub struct RemoveStep {
    /// Which container.
    pub container: String,
    /// By the beginning of its id, as people do, and not by the whole. If the runtime refuses that,
    /// the case is inconclusive.
    #[serde(default)]
    pub by_prefix: bool,
    /// Something else may make it fail: whatever the call returns is right.
    #[serde(default)]
    pub races: bool,
    /// How long after the first call the container must be removed, which is a requirement of the
    /// case. A runtime may refuse it until then: the call is made again.
    #[serde(
        default,
        with = "duration::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<duration::Text>")]
    pub within: Option<Duration>,
}

impl RemoveStep {
    /// How the call may end.
    #[must_use]
    pub fn expectation(&self) -> CallExpectation {
        CallExpectation::from_keys(false, self.races, None)
    }
}

impl StepRules for RemoveStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, _: Surroundings) {
        walk.container("container", &self.container);
        walk.expectation(self.expectation());
        if self.within.is_some() && (self.races || self.by_prefix) {
            walk.object_to("within", "whatever this call returns is right")
                .advise("leave out either `within` or the rest");
        }
        walk.span("within", self.within);
    }
}
