//! Whether snapshots show the siblings of their event's container.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::invariants::Invariant;
use super::name_of;
use crate::history::{
    CaseHistory, ContainerId, EventKind, Reply, Request, SandboxId, Seq, Sighting, Subject,
    SubjectKind, SubscriptionId,
};
use crate::outcome::Violation;

/// A sandbox on one stream.
pub(super) type Place<'a> = (&'a str, SubscriptionId);

/// A container that is known to be there.
struct Known<'a> {
    subject: &'a Subject,
    /// The first event about it.
    by: &'a Sighting,
}

/// Each event that shows no container at all, though its own or a sibling was certainly there: one
/// that nobody has begun to remove, and of a sibling, one that was CREATED before anybody asked for
/// the event's own container.
pub(super) fn snapshots_not_empty(rule: &Invariant, history: &CaseHistory) -> Vec<Violation> {
    let removals = removals(history);
    let asked_for = creations(history);
    let sandboxes = by_sandbox(history);
    rule.on_each_event(history, |subject, sighting| {
        let SubjectKind::Container(spec) = &subject.kind else {
            return None;
        };
        let event = sighting.event();
        let is_kept = |id: &ContainerId| {
            let removal = removals.get(id);
            removal.is_none_or(|began| sighting.seq() < *began)
        };
        let place = (spec.sandbox.as_str(), sighting.subscription());
        let siblings = sandboxes.get(&place).into_iter().flatten();
        let mut earlier = siblings.filter(|(sibling, created)| {
            let asked_for = asked_for.get(&subject.id);
            let is_earlier = asked_for.is_some_and(|asked_for| created.seq() < *asked_for);
            is_earlier && matches!(sibling.kind, SubjectKind::Container(_)) && is_kept(&sibling.id)
        });
        let is_there = is_kept(&subject.id) || earlier.next().is_some();
        (event.containers.is_empty() && is_there).then(|| {
            let expected = format!("a container in {}, as one is there", event.kind);
            (expected, format!("the snapshot of {} is empty", event.kind))
        })
    })
}

/// When each container was asked for.
fn creations(history: &CaseHistory) -> BTreeMap<&ContainerId, Seq> {
    let made = history
        .calls()
        .filter_map(|call| match (call.request(), call.result()) {
            (Request::CreateContainer(_), Some(Ok(Reply::Container(id)))) => {
                Some((id, call.began().seq))
            }
            _ => None,
        });
    made.collect()
}

/// Each container that is missing from the snapshot of a sibling's event. By its own event a
/// container exists, and no snapshot is older than its event: one that was made after that shows
/// the container, unless it is being removed.
pub(super) fn siblings_in_the_snapshot(rule: &Invariant, history: &CaseHistory) -> Vec<Violation> {
    let removals = removals(history);
    let mut found = BTreeMap::<&ContainerId, Violation>::new();
    for events in by_sandbox(history).into_values() {
        let mut known = BTreeMap::<&ContainerId, Known<'_>>::new();
        for (subject, sighting) in events {
            let event = sighting.event();
            known.retain(|id, _| {
                removals
                    .get(*id)
                    .is_none_or(|began| sighting.seq() < *began)
            });
            for (id, sibling) in &known {
                let shown = event.containers.iter().any(|status| status.id == **id);
                let later = sibling.by.event().created_at <= event.created_at;
                if **id != subject.id && later && !shown {
                    let broken = || missing(rule, sibling, subject, sighting);
                    found.entry(*id).or_insert_with(broken);
                }
            }
            if matches!(subject.kind, SubjectKind::Container(_)) && event.kind != EventKind::Deleted
            {
                let by = sighting;
                known.entry(&subject.id).or_insert(Known { subject, by });
            }
        }
    }
    found.into_values().collect()
}

fn missing(
    rule: &Invariant,
    sibling: &Known<'_>,
    subject: &Subject,
    sighting: &Sighting,
) -> Violation {
    let event = sighting.event();
    rule.told(
        name_of(sibling.subject),
        format!(
            "a status of it among the {} in {} of {}",
            event.containers.len(),
            event.kind,
            subject.label()
        ),
        "it is missing".to_owned(),
        vec![sibling.by.seq(), sighting.seq()],
    )
}

/// The events about each sandbox and its containers on each stream, in order of arrival.
pub(super) fn by_sandbox(history: &CaseHistory) -> BTreeMap<Place<'_>, Vec<(&Subject, &Sighting)>> {
    let mut sandboxes = BTreeMap::<_, Vec<_>>::new();
    for subject in history.subjects() {
        let sandbox = match &subject.kind {
            SubjectKind::Sandbox(_) => subject.id.as_str(),
            SubjectKind::Container(spec) => spec.sandbox.as_str(),
            SubjectKind::Stray => continue,
        };
        for sighting in &subject.sightings {
            let place = (sandbox, sighting.subscription());
            let events = sandboxes.entry(place).or_default();
            events.push((subject, sighting));
        }
    }
    for events in sandboxes.values_mut() {
        events.sort_by_key(|(_, sighting)| sighting.seq());
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
        let deleted = subject.first(EventKind::Deleted).map(Sighting::seq);
        let with_sandbox = sandboxes.get(&spec.sandbox).copied();
        for began in deleted.into_iter().chain(with_sandbox) {
            let first = removals.entry(&subject.id).or_insert(began);
            *first = (*first).min(began);
        }
    }
    removals
}
