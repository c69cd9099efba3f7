//! Whether the events of a pod come in the order in which they were made.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::invariants::Invariant;
use super::name_of;
use super::siblings::by_sandbox;
use crate::history::{Body, CaseHistory, Sighting, Subject, SubscriptionId};
use crate::outcome::Violation;

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
