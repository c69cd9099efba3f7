//! The missing events, and their positions in a diagram.

use std::collections::BTreeSet;

use super::lane::Lane;
use super::threads::Threads;
use crate::history::EventKind;
use crate::outcome::{Fact, Facts, Kind, Mismatch, Violation};
use crate::report::printable::cut;

#[derive(Debug)]
pub(super) struct Missing {
    pub(super) lane: Lane,
    pub(super) label: String,
    /// The index of the entry before which it is missing; that of an undrawn entry for the end.
    pub(super) before: usize,
    /// The index of the call that should cause it.
    pub(super) cause: Option<usize>,
}

/// The missing events of a violation, among these entries.
pub(super) fn of(
    threads: &Threads<'_>,
    violation: &Violation,
    subject: Option<&str>,
    chosen: &BTreeSet<usize>,
) -> Vec<Missing> {
    let lane = Lane::Events(threads.first_stream());
    let end = threads.entries().len();
    let kinds = kinds(&violation.mismatch);
    if kinds.is_empty() && violation.mismatch.kind == Kind::UnmetWait {
        let waited = violation.mismatch.expected.get("of").map(Fact::text);
        let waited = waited.unwrap_or_default();
        let (name, _id) = waited.split_once(" (").unwrap_or((&waited, ""));
        let label = cut(name, LABEL);
        let waits = super::selection::convicting(threads, violation);
        let before = waits.first().copied().unwrap_or(end);
        let cause = None;
        return vec![Missing {
            lane,
            label,
            before,
            cause,
        }];
    }
    let missing = kinds.into_iter().map(|kind| {
        // It was due before what could only follow, and before a list that shows it has happened.
        let later = subject.and_then(|id| {
            let mut drawn = chosen.iter().copied();
            drawn.find(|at| threads.is_after(*at, id, kind))
        });
        let before = later.unwrap_or(end);
        let cause = subject.and_then(|id| threads.cause_of(kind, id, None, before));
        Missing {
            lane,
            label: kind.to_string(),
            before,
            cause,
        }
    });
    missing.collect()
}

/// The maximum length of a missing event's name, in characters.
const LABEL: usize = 26;

/// The kinds of the missing events.
fn kinds(mismatch: &Mismatch) -> Vec<EventKind> {
    let is_missing = Kind::MISSING.contains(&mismatch.kind)
        || matches!(
            mismatch.kind,
            Kind::MissingOnSubscription | Kind::MissingOnMainStream
        );
    match mismatch.expected.get("event") {
        Some(Fact::Event(kind)) if is_missing => return vec![*kind],
        _ => {}
    }
    let events = |facts: &Facts| match facts.get("events") {
        Some(Fact::Events(kinds)) => kinds.clone(),
        _ => Vec::new(),
    };
    if mismatch.kind != Kind::WrongEvents {
        return Vec::new();
    }
    let mut came = events(&mismatch.actual);
    let mut missing = events(&mismatch.expected);
    missing.retain(|kind| match came.iter().position(|it| it == kind) {
        Some(at) => {
            came.remove(at);
            false
        }
        None => true,
    });
    missing
}
