//! The calls about a sandbox or container, and its name in a violation.

use crate::history::{Call, CaseHistory, ContainerId, EventArrival, Reply, Request, Seq, Subject};

/// Whether a call is about this subject.
pub(crate) fn is_about(call: &Call, subject: &Subject) -> bool {
    let id = &subject.id;
    match call.request() {
        Request::StartContainer(on)
        | Request::RemoveContainer(on)
        | Request::ContainerStatus(on)
        | Request::StopContainer { container: on, .. }
        | Request::ExecSync { container: on, .. }
        | Request::CheckpointContainer { container: on, .. } => on == id,
        Request::StopSandbox(on) | Request::RemoveSandbox(on) | Request::SandboxStatus(on) => {
            ContainerId::from(on) == *id
        }
        Request::NoEventCall(_, on) => on == id.as_str(),
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

/// Whether a call has returned the subject's id.
pub(crate) fn makes(call: &Call, subject: &Subject) -> bool {
    match call.result() {
        Some(Ok(Reply::Sandbox(made))) => ContainerId::from(made) == subject.id,
        Some(Ok(Reply::Container(made))) => *made == subject.id,
        _ => false,
    }
}

/// The entries about a subject: its calls and its events.
pub(crate) fn entries_about(history: &CaseHistory, subject: &Subject) -> Vec<Seq> {
    let calls = history.calls().filter(|call| is_about(call, subject));
    let calls = calls.flat_map(|call| [Some(call.began().seq), call.ended().map(|end| end.seq)]);
    let mut entries: Vec<Seq> = calls.flatten().collect();
    entries.extend(subject.arrivals.iter().map(EventArrival::seq));
    entries.sort_unstable();
    entries
}

/// The name of a subject in a violation.
pub(crate) fn name_of(subject: &Subject) -> String {
    let label = subject.label();
    if label == subject.id.as_str() {
        label
    } else {
        format!("{label} ({})", subject.id)
    }
}
