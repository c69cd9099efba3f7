//! What several rules look up in a case's history.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::{
    Call, CaseHistory, ContainerId, EventArrival, EventKind, Reply, Request, SandboxId, Seq,
    Subject, SubjectKind, SubscriptionId,
};

/// A sandbox on one stream.
pub(super) type Place<'a> = (&'a str, SubscriptionId);

/// The events about each sandbox and its containers on each stream, in order of arrival.
pub(super) fn by_sandbox(
    history: &CaseHistory,
) -> BTreeMap<Place<'_>, Vec<(&Subject, &EventArrival)>> {
    let mut sandboxes = BTreeMap::<_, Vec<_>>::new();
    for subject in history.subjects() {
        let sandbox = match &subject.kind {
            SubjectKind::Sandbox(_) => subject.id.as_str(),
            SubjectKind::Container(spec) => spec.sandbox.as_str(),
            SubjectKind::Stray => continue,
        };
        for arrival in &subject.arrivals {
            let place = (sandbox, arrival.subscription());
            let events = sandboxes.entry(place).or_default();
            events.push((subject, arrival));
        }
    }
    for events in sandboxes.values_mut() {
        events.sort_by_key(|(_, arrival)| arrival.seq());
    }
    sandboxes
}

/// Since when each container may be gone: its removal or its sandbox's has begun, or a start that
/// did not succeed, after which a runtime may clear away what is left.
pub(super) fn removals(history: &CaseHistory) -> BTreeMap<&ContainerId, Seq> {
    let mut removals = BTreeMap::new();
    let mut sandboxes = BTreeMap::<&SandboxId, Seq>::new();
    for call in history.calls() {
        let began = call.began().seq;
        let failed = !matches!(call.result(), Some(Ok(_)));
        match call.request() {
            Request::StartContainer(id) if failed => drop(removals.entry(id).or_insert(began)),
            Request::RemoveContainer(id) => drop(removals.entry(id).or_insert(began)),
            Request::RemoveSandbox(id) => drop(sandboxes.entry(id).or_insert(began)),
            _ => {}
        }
    }
    for subject in history.subjects() {
        let SubjectKind::Container(spec) = &subject.kind else {
            continue;
        };
        let deleted = subject.first(EventKind::Deleted).map(EventArrival::seq);
        let with_sandbox = sandboxes.get(&spec.sandbox).copied();
        for began in deleted.into_iter().chain(with_sandbox) {
            let first = removals.entry(&subject.id).or_insert(began);
            *first = (*first).min(began);
        }
    }
    removals
}

/// The containers that a call has started.
pub(super) fn started(history: &CaseHistory) -> BTreeSet<&ContainerId> {
    let started = history.calls().filter_map(|call| match call.request() {
        Request::StartContainer(id) if matches!(call.result(), Some(Ok(_))) => Some(id),
        _ => None,
    });
    started.collect()
}

/// Whether a call is about this subject.
pub(crate) fn is_about(call: &Call, subject: &Subject) -> bool {
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

/// Whether a call has returned the subject.
pub(crate) fn makes(call: &Call, subject: &Subject) -> bool {
    match call.result() {
        Some(Ok(Reply::Sandbox(made))) => ContainerId::from(made) == subject.id,
        Some(Ok(Reply::Container(made))) => *made == subject.id,
        _ => false,
    }
}

/// The entries about a subject: its calls and its events, the material of most evidence.
pub(crate) fn entries_about(history: &CaseHistory, subject: &Subject) -> Vec<Seq> {
    let calls = history.calls().filter(|call| is_about(call, subject));
    let calls = calls.flat_map(|call| [Some(call.began().seq), call.ended().map(|end| end.seq)]);
    let mut entries: Vec<Seq> = calls.flatten().collect();
    entries.extend(subject.arrivals.iter().map(EventArrival::seq));
    entries.sort_unstable();
    entries
}

/// How a subject is named in a violation.
pub(crate) fn name_of(subject: &Subject) -> String {
    let label = subject.label();
    if label == subject.id.as_str() {
        label
    } else {
        format!("{label} ({})", subject.id)
    }
}
