//! Why the steps of a case did not come to their end.

use std::fmt;

use tokio::task::JoinError;

use crate::drive::stream_error::StreamError;
use crate::history::CallFault;

/// Why the steps of a case did not come to their end.
#[derive(Debug)]
pub(in crate::drive) enum Abort {
    /// A step waited in vain for what the case requires; the history shows for what.
    Unmet,
    /// The case proves nothing: the situation that it is about did not arise.
    Inconclusive(String),
    /// The case is about something that this runtime does not do.
    NotApplicable(String),
    /// The suite cannot go on, or the runtime failed a call that the case is not about.
    Error(String),
}

impl Abort {
    /// A call failed that must succeed.
    pub(in crate::drive) fn failed(method: &str, fault: &CallFault) -> Self {
        Self::Error(format!("{method} failed: {fault}"))
    }

    /// A call succeeded that was meant to fail. What it has made is torn down.
    pub(in crate::drive) fn succeeded(method: &str) -> Self {
        Self::NotApplicable(format!(
            "{method} was meant to fail and succeeded, so that there is no failure whose \
             consequences could be judged"
        ))
    }

    /// A name of the case stands for nothing.
    pub(in crate::drive) fn unbound(name: &str) -> Self {
        Self::Error(format!("`{name}` was never made"))
    }

    /// The suite cannot bring the situation about.
    pub(in crate::drive) fn inconclusive(why: impl fmt::Display) -> Self {
        Self::Inconclusive(why.to_string())
    }

    /// The run is being stopped.
    pub(in crate::drive) fn interrupted() -> Self {
        Self::Error("interrupted".to_owned())
    }
}

impl From<JoinError> for Abort {
    fn from(fault: JoinError) -> Self {
        Self::Error(format!("the suite itself failed: {fault}"))
    }
}

impl From<StreamError> for Abort {
    fn from(fault: StreamError) -> Self {
        Self::Error(fault.to_string())
    }
}
