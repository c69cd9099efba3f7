//! The end of a call that a check measures from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::history::{Call, CaseHistory, Entry, Request, Subject};
use crate::oracle::is_about;

/// One end of a call.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(
    rename_all = "kebab-case",
    expecting = "an end of a call such as `stop-returned`"
)]
pub enum CallEdge {
    /// `RunPodSandbox` returned.
    SandboxReturned,
    /// `StartContainer` returned.
    StartReturned,
    /// `StopContainer` was called.
    StopCalled,
    /// `StopContainer` returned.
    StopReturned,
    /// `StopPodSandbox` was called.
    StopSandboxCalled,
}

/// The entry of the latest such edge of a call on the subject, before the teardown.
pub(super) fn edge<'a>(
    edge: CallEdge,
    history: &'a CaseHistory,
    subject: &Subject,
) -> Option<&'a Entry> {
    let fits = |call: &&Call| {
        let right = matches!(
            (edge, call.request()),
            (CallEdge::SandboxReturned, Request::RunSandbox(_))
                | (CallEdge::StartReturned, Request::StartContainer(_))
                | (
                    CallEdge::StopCalled | CallEdge::StopReturned,
                    Request::StopContainer { .. }
                )
                | (CallEdge::StopSandboxCalled, Request::StopSandbox(_))
        );
        right && history.within_steps(call.began().seq) && is_about(call, subject)
    };
    let call = history.calls().rev().find(fits)?;
    match edge {
        CallEdge::SandboxReturned | CallEdge::StartReturned | CallEdge::StopReturned => {
            call.ended()
        }
        CallEdge::StopCalled | CallEdge::StopSandboxCalled => Some(call.began()),
    }
}

pub(super) fn edge_name(edge: CallEdge) -> &'static str {
    match edge {
        CallEdge::SandboxReturned => "RunPodSandbox returned",
        CallEdge::StartReturned => "StartContainer returned",
        CallEdge::StopCalled => "StopContainer was called",
        CallEdge::StopReturned => "StopContainer returned",
        CallEdge::StopSandboxCalled => "StopPodSandbox was called",
    }
}
