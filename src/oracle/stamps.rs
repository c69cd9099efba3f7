//! Whether the events of a pod come in the order in which they were made.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::invariants::Invariant;
use super::name_of;
use super::siblings::by_sandbox;
use crate::history::{
    Body, CaseHistory, EventKind, Reply, Request, Sighting, Subject, SubscriptionId,
};
use crate::outcome::Violation;

/// The wall clock is slewed while a run goes on, and some runtimes read it in ticks of the kernel.
const APART_NS: i64 = 10_000_000;

const FAR_NS: i64 = 24 * 3_600 * 1_000_000_000;

/// Each sandbox of which a stream brings an event that is older than one before it about another
/// of the sandbox and its containers. A kubelet's cache has one time for each pod, the newest.
pub(super) fn stamps_in_order(rule: &Invariant, history: &CaseHistory) -> Vec<Violation> {
    let mut found: Vec<Violation> = Vec::new();
    let opened = opened(history);
    for ((sandbox, stream), mut events) in by_sandbox(history) {
        let since = opened.get(&stream).copied();
        events.retain(|(_, sighting)| since.is_none_or(|ns| sighting.event().created_at.0 >= ns));
        let mut subjects = history.subjects().iter();
        let subject = subjects.find(|subject| subject.id.as_str() == sandbox);
        let name = subject.map_or_else(|| sandbox.to_owned(), name_of);
        let Some([newest, later]) = first_inversion(&events) else {
            continue;
        };
        if found.iter().all(|earlier| earlier.subject != name) {
            found.push(told(rule, name, newest, later));
        }
    }
    found
}

/// Each container of which an event was made after the call had returned that it tells of.
pub(super) fn made_within_the_call(rule: &Invariant, history: &CaseHistory) -> Vec<Violation> {
    let mut found: Vec<Violation> = Vec::new();
    for (call, ended) in history
        .calls()
        .filter_map(|call| Some((call, call.ended()?)))
    {
        let (id, kind) = match (call.request(), call.result()) {
            (Request::CreateContainer(_), Some(Ok(Reply::Container(id)))) => {
                (id, EventKind::Created)
            }
            (Request::StartContainer(id), Some(Ok(_))) => (id, EventKind::Started),
            (Request::RemoveContainer(id), Some(Ok(_))) => (id, EventKind::Deleted),
            _ => continue,
        };
        let mut subjects = history.subjects().iter();
        let Some(subject) = subjects.find(|subject| subject.id == *id) else {
            continue;
        };
        let Some(seen) = subject.first(kind) else {
            continue;
        };
        let late_ns = seen
            .event()
            .created_at
            .0
            .saturating_sub(ended.at.realtime_ns);
        let name = name_of(subject);
        // Of a time that is far from now another rule tells.
        let is_late = (APART_NS..FAR_NS).contains(&late_ns);
        if is_late && found.iter().all(|earlier| earlier.subject != name) {
            found.push(rule.told(
                name,
                format!(
                    "{kind} to be made before {} returned",
                    call.request().method()
                ),
                // Without a figure, so that an expectation file can list it.
                "its created_at is later".to_owned(),
                vec![call.began().seq, ended.seq, seen.seq()],
            ));
        }
    }
    found
}

/// When the streams were asked for that were opened while the case ran. What was made before that
/// is told again, if at all, and may come at any time.
fn opened(history: &CaseHistory) -> BTreeMap<SubscriptionId, i64> {
    let entries = history.entries().iter();
    let opened = entries.filter_map(|entry| match entry.body {
        Body::SubscriptionOpened { subscription, .. } => Some((subscription, entry.at.realtime_ns)),
        _ => None,
    });
    opened.collect()
}

type Told<'a> = (&'a Subject, &'a Sighting);

/// The first event that is older than one before it about another, after the newest of those.
fn first_inversion<'a>(events: &[Told<'a>]) -> Option<[Told<'a>; 2]> {
    let made = |told: &Told<'_>| told.1.event().created_at;
    let same = |one: &Told<'_>, other: &Told<'_>| one.0.id == other.0.id;
    let mut newest = *events.first()?;
    // The newest that is not about the same one.
    let mut beside: Option<Told<'a>> = None;
    for later in events {
        let is_same = same(&newest, later);
        let other = if is_same { beside } else { Some(newest) };
        if let Some(other) = other.filter(|other| made(later) < made(other)) {
            return Some([other, *later]);
        }
        if !is_same {
            beside = Some(newest);
        }
        if !is_same || made(later) > made(&newest) {
            newest = *later;
        }
    }
    None
}

fn told(rule: &Invariant, name: String, newest: Told<'_>, later: Told<'_>) -> Violation {
    let [before, after] = [newest, later].map(|(_, sighting)| sighting.event().created_at.0);
    let [first, then] = [newest, later]
        .map(|(subject, sighting)| format!("{} of {}", sighting.event().kind, subject.label()));
    rule.told(
        name,
        format!(
            "{then}, which came after {first}, to be made after it, too, and not {} ns before",
            before.abs_diff(after)
        ),
        // Without a figure, so that an expectation file can list it.
        "its created_at is earlier".to_owned(),
        vec![newest.1.seq(), later.1.seq()],
    )
}
