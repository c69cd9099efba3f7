//! The rules on an event by itself: its type, its id, its time, and its place among the others.

use std::collections::BTreeMap;

use super::invariants::{Invariant, by_stream};
use crate::history::{CaseHistory, ContainerId, EventKind, Sighting, Subject, SubjectKind};
use crate::outcome::Violation;

/// The place of an event in a container's life.
pub(super) fn rank(kind: EventKind) -> Option<u8> {
    match kind {
        EventKind::Created => Some(0),
        EventKind::Started => Some(1),
        EventKind::Stopped => Some(2),
        EventKind::Deleted => Some(3),
        EventKind::Unknown(_) => None,
    }
}

pub(super) fn events_in_order(rule: &Invariant, history: &CaseHistory) -> Vec<Violation> {
    let ranked = |sighting: &Sighting| rank(sighting.event().kind).is_some();
    rule.on_each_pair(history, ranked, |earlier, later| {
        let (before, after) = (earlier.event().kind, later.event().kind);
        (rank(before)? > rank(after)?).then(|| {
            (
                format!("{after} before {before}"),
                format!("{after} after {before}"),
            )
        })
    })
}

pub(super) fn each_event_once(rule: &Invariant, history: &CaseHistory) -> Vec<Violation> {
    let first = |subject: &Subject| {
        by_stream(subject).into_values().find_map(|sightings| {
            let mut seen = BTreeMap::new();
            sightings.into_iter().find_map(|sighting| {
                let kind = sighting.event().kind;
                let earlier: &Sighting = seen.insert(kind, sighting)?;
                let expected = format!("one {kind} event");
                let actual = format!("{kind} again after {:?}", sighting.at().since(earlier.at()));
                Some(rule.broken(subject, expected, actual, [earlier, sighting]))
            })
        })
    };
    history.subjects().iter().filter_map(first).collect()
}

pub(super) fn known_type_and_whole_id(rule: &Invariant, history: &CaseHistory) -> Vec<Violation> {
    let known: Vec<&ContainerId> = history
        .subjects()
        .iter()
        .filter(|subject| !matches!(subject.kind, SubjectKind::Stray))
        .map(|subject| &subject.id)
        .collect();
    rule.on_each_event(history, |subject, sighting| {
        let event = sighting.event();
        let id = event.container.as_str();
        if let EventKind::Unknown(number) = event.kind {
            return Some(("a type from 0 to 3".to_owned(), format!("type {number}")));
        }
        if id.is_empty() {
            return Some(("a container id".to_owned(), "an empty one".to_owned()));
        }
        if !matches!(subject.kind, SubjectKind::Stray) {
            return None;
        }
        let whole = known.iter().find(|whole| whole.as_str().starts_with(id))?;
        Some((
            format!("the whole id {whole}"),
            format!("the shortened id {id}"),
        ))
    })
}

/// The clocks of a runtime and of the suite are the same host's; this is for its adjustments.
pub(super) const SLACK_NS: i64 = 1_000_000_000;

pub(super) fn created_at_is_now(rule: &Invariant, history: &CaseHistory) -> Vec<Violation> {
    let Some(began) = history.began().map(|at| at.realtime_ns) else {
        return Vec::new();
    };
    rule.on_each_event(history, |_, sighting| {
        let at = sighting.event().created_at.0;
        let (earliest, latest) = (began - SLACK_NS, sighting.at().realtime_ns + SLACK_NS);
        (at < earliest || at > latest).then(|| {
            let expected = format!("created_at from {earliest} to {latest}");
            (expected, format!("{at}{}", unit_hint(at, latest)))
        })
    })
}

/// Which unit a time seems to be in, if not nanoseconds.
pub(super) fn unit_hint(at: i64, now_ns: i64) -> &'static str {
    const UNITS: [(i64, &str); 3] = [
        (1_000_000_000, ", which looks like seconds"),
        (1_000_000, ", which looks like milliseconds"),
        (1_000, ", which looks like microseconds"),
    ];
    if at == 0 {
        return ", which means not set";
    }
    let close = |factor: i64| {
        at.checked_mul(factor)
            .is_some_and(|ns| ns.abs_diff(now_ns) < DAY_NS)
    };
    UNITS
        .iter()
        .find(|(factor, _)| close(*factor))
        .map_or("", |(_, hint)| hint)
}

const DAY_NS: u64 = 86_400_000_000_000;

pub(super) fn created_at_never_goes_back(
    rule: &Invariant,
    history: &CaseHistory,
) -> Vec<Violation> {
    rule.on_each_pair(
        history,
        |_| true,
        |earlier, later| {
            let (before, after) = (earlier.event().created_at.0, later.event().created_at.0);
            (after < before).then(|| {
                let expected = format!("created_at of {before} or later");
                (
                    expected,
                    format!("{after}, which is {} ns earlier", before.abs_diff(after)),
                )
            })
        },
    )
}
