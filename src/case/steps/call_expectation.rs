//! How a step's call may end.

use std::time::Duration;

/// How a step's call may end. A step that allows failure may leave its name bound to nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallExpectation {
    /// It must succeed.
    #[default]
    Success,
    /// It must fail.
    Failure,
    /// It may succeed or fail.
    Either,
    /// The client gives up on it after this time; it may have succeeded or failed by then.
    AbandonedAfter(Duration),
}

impl CallExpectation {
    /// What the keys of a step say.
    pub(super) fn from_keys(fails: bool, races: bool, deadline: Option<Duration>) -> Self {
        match deadline {
            Some(deadline) => Self::AbandonedAfter(deadline),
            None if races => Self::Either,
            None if fails => Self::Failure,
            None => Self::Success,
        }
    }

    /// Whether the call must succeed.
    #[must_use]
    pub fn is_success(self) -> bool {
        self == Self::Success
    }
}
