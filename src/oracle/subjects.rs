//! The calls about a sandbox or container, and its name in a violation.

use crate::history::{
    Call, CaseHistory, ContainerId, ContainerState, EventArrival, EventKind, Reply, Request, Seq,
    Subject,
};
use crate::outcome::{Fact, Facts};

/// Whether a call is about this subject.
pub(crate) fn is_about(call: &Call, subject: &Subject) -> bool {
    let id = &subject.id;
    match call.request() {
        Request::StartContainer(on)
        | Request::RemoveContainer(on)
        | Request::ContainerStatus(on)
        | Request::StopContainer { container: on, .. }
        | Request::ExecSync { container: on, .. }
        | Request::CheckpointContainer { container: on, .. }
        | Request::UpdateContainerResources { container: on, .. } => on == id,
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

pub(crate) fn makes(call: &Call, subject: &Subject) -> bool {
    match call.result() {
        Some(Ok(Reply::Sandbox(made))) => ContainerId::from(made) == subject.id,
        Some(Ok(Reply::Container(made))) => *made == subject.id,
        _ => false,
    }
}

pub(crate) fn entries_about(history: &CaseHistory, subject: &Subject) -> Vec<Seq> {
    let calls = history.calls().filter(|call| is_about(call, subject));
    let calls = calls.flat_map(|call| [Some(call.began().seq), call.ended().map(|end| end.seq)]);
    let mut entries: Vec<Seq> = calls.flatten().collect();
    entries.extend(subject.arrivals.iter().map(EventArrival::seq));
    entries.sort_unstable();
    entries
}

pub(crate) fn name_of(subject: &Subject) -> String {
    let label = subject.label();
    if label == subject.id.as_str() {
        label
    } else {
        format!("{label} ({})", subject.id)
    }
}

/// The end of a foreign container without STOPPED, by the last status: its client is not observed,
/// so that this alone shows a failed start.
pub(super) fn how_it_ended(history: &CaseHistory, subject: &Subject, needed: EventKind) -> Facts {
    let is_wanted = history.is_of_foreign_pod() && needed == EventKind::Stopped;
    let mut answers = history.calls().filter(|_| is_wanted).rev();
    let last = answers.find_map(|call| match (call.request(), call.result()) {
        (Request::ContainerStatus(id), Some(Ok(Reply::ContainerStatus(report))))
            if *id == subject.id =>
        {
            Some(&report.status)
        }
        _ => None,
    });
    let exited = last.filter(|status| status.state == ContainerState::Exited);
    let facts = exited.map(|status| {
        [
            Fact::ExitCode(status.exit_code.into()),
            Fact::Reason(status.reason.to_string()),
        ]
    });
    facts.into_iter().flatten().collect()
}
