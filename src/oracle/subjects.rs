//! The calls about a sandbox or container, and its name in a violation.

use crate::history::{
    Call, CaseHistory, ContainerId, ContainerState, EventArrival, EventKind, Labels, Reply,
    Request, SandboxId, Seq, Subject,
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
        | Request::ListSandboxes { .. }
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

/// Whether the filter of a list, apart from a state, matches a container in a sandbox, or a sandbox
/// itself; `None` for any other request.
pub(super) fn matches_filter(
    request: &Request,
    id: &str,
    sandbox: Option<&SandboxId>,
    labels: &Labels,
) -> Option<bool> {
    let (wanted, inside, carried) = match (request, sandbox) {
        (
            Request::ListContainers {
                sandbox, labels, ..
            },
            Some(_),
        ) => (None, sandbox.as_ref(), labels),
        (Request::FindContainers(filter), Some(_)) => {
            let wanted = filter.id.as_ref().map(ContainerId::as_str);
            (wanted, filter.sandbox.as_ref(), &filter.labels)
        }
        (Request::ListSandboxes { labels, .. }, None) => (None, None, labels),
        (Request::FindSandboxes(filter), None) => (
            filter.id.as_ref().map(SandboxId::as_str),
            None,
            &filter.labels,
        ),
        _ => return None,
    };
    let is_own = wanted.is_none_or(|wanted| wanted == id);
    let is_inside = inside.is_none_or(|inside| sandbox == Some(inside));
    Some(is_own && is_inside && carries(labels, carried))
}

/// Whether an object has all of these labels.
fn carries(own: &Labels, wanted: &Labels) -> bool {
    let mut wanted = wanted.iter();
    wanted.all(|(key, value)| own.get(key) == Some(value))
}
