//! The calls that expectations measure from and compare with.

use crate::case::CallEdge;
use crate::history::{Call, CaseHistory, ContainerId, Entry, Reply, Request, Subject};

/// Whether a call is about this subject.
pub(in crate::oracle) fn is_about(call: &Call, subject: &Subject) -> bool {
    let id = &subject.id;
    match call.request() {
        Request::StartContainer(on)
        | Request::RemoveContainer(on)
        | Request::ContainerStatus(on)
        | Request::StopContainer { container: on, .. }
        | Request::ExecSync { container: on, .. } => on == id,
        Request::StopSandbox(on) | Request::RemoveSandbox(on) | Request::SandboxStatus(on) => {
            ContainerId::from(on) == *id
        }
        Request::Aside(_, on) => on == id.as_str(),
        Request::Version
        | Request::RunSandbox(_)
        | Request::ListSandboxes(_)
        | Request::CreateContainer(_)
        | Request::ListContainers { .. }
        | Request::ImageStatus(_)
        | Request::PullImage(_)
        | Request::RemoveImage(_)
        | Request::ListImages
        | Request::RuntimeStatus
        | Request::FindSandboxes(_)
        | Request::FindContainers(_) => makes(call, subject),
    }
}

/// Whether a call has returned the subject.
pub(in crate::oracle) fn makes(call: &Call, subject: &Subject) -> bool {
    match call.result() {
        Some(Ok(Reply::Sandbox(made))) => ContainerId::from(made) == subject.id,
        Some(Ok(Reply::Container(made))) => *made == subject.id,
        _ => false,
    }
}

/// The end of the latest such call on the subject, before the teardown.
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
