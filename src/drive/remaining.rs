//! What the history of a case shows of its state on the runtime: what is left there, and what is
//! in doubt. Pure.

use std::collections::BTreeSet;

use crate::history::{
    CaseHistory, ContainerId, EventKind, PodUid, Reply, Request, SandboxId, StatusCode, Subject,
};

/// Why an answer of the runtime cannot be read, if there is such an answer: it proves nothing.
pub(super) fn unreadable(history: &CaseHistory) -> Option<String> {
    history.calls().find_map(|call| match call.result() {
        Some(Err(fault)) if fault.code == StatusCode::DATA_LOSS => {
            let method = call.request().method();
            Some(format!("the answer of {method} is unusable: {fault}"))
        }
        _ => None,
    })
}

/// The pods of which a call that was to make something has failed: there may be more than what was
/// returned.
pub(super) fn pods_in_doubt(history: &CaseHistory) -> BTreeSet<PodUid> {
    let failed = history.calls().filter(|call| {
        let failed = matches!(call.result(), Some(Err(_)));
        failed && !call.is_of_run()
    });
    let pods = failed.filter_map(|call| match call.request() {
        Request::RunSandbox(spec) => Some(spec.uid.clone()),
        Request::CreateContainer(spec) => Some(spec.sandbox_spec.uid.clone()),
        _ => None,
    });
    pods.collect()
}

/// The sandboxes that a successful call made and no successful call removed.
pub(super) fn sandboxes_left(history: &CaseHistory) -> Vec<SandboxId> {
    let mut left = Vec::new();
    for call in history.calls() {
        match (call.request(), call.result()) {
            (Request::RunSandbox(_), Some(Ok(Reply::Sandbox(id)))) => left.push(id.clone()),
            (Request::RemoveSandbox(id), Some(Ok(_))) => left.retain(|left| left != id),
            _ => {}
        }
    }
    left
}

pub(super) fn checkpoints(history: &CaseHistory) -> Vec<String> {
    let locations = history.calls().filter_map(|call| match call.request() {
        Request::CheckpointContainer { location, .. } => Some(location.clone()),
        _ => None,
    });
    locations.collect()
}

/// The containers in such sandboxes that a successful call made, that no successful call removed,
/// and that have not been seen to stop.
pub(super) fn containers_left(history: &CaseHistory) -> Vec<ContainerId> {
    let sandboxes = sandboxes_left(history);
    let mut left = Vec::new();
    for call in history.calls() {
        match (call.request(), call.result()) {
            (Request::CreateContainer(spec), Some(Ok(Reply::Container(id))))
                if sandboxes.contains(&spec.sandbox) =>
            {
                left.push(id.clone());
            }
            (Request::RemoveContainer(id), Some(Ok(_))) => left.retain(|left| left != id),
            _ => {}
        }
    }
    let has_stopped = |subject: &Subject| subject.first(EventKind::Stopped).is_some();
    let stopped = history.subjects().iter().filter(|it| has_stopped(it));
    let stopped: BTreeSet<&ContainerId> = stopped.map(|subject| &subject.id).collect();
    left.retain(|id| !stopped.contains(id));
    left
}
