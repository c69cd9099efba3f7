//! How a step's call may end.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a call ends that the client waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "kebab-case",
    expecting = "how a call ends: `success`, `failure` or `either`"
)]
pub enum CallOutcome {
    /// It must succeed.
    #[default]
    Success,
    /// It must fail: where it succeeds, the case is skipped.
    Failure,
    /// It may succeed or fail: what it has made is judged.
    Either,
}

/// How a step's call may end. A step that allows failure may leave its name bound to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallExpectation {
    /// The client waits for its end.
    Ends(CallOutcome),
    /// The client gives up on it after this time; it may have succeeded or failed by then.
    AbandonedAfter(Duration),
}

impl CallExpectation {
    /// The meaning of the keys `expect` and `abandon-after` of a step.
    pub(super) fn from_keys(expect: CallOutcome, abandon_after: Option<Duration>) -> Self {
        abandon_after.map_or(Self::Ends(expect), Self::AbandonedAfter)
    }

    /// Whether the call must succeed.
    pub fn is_success(self) -> bool {
        self == Self::Ends(CallOutcome::Success)
    }
}
