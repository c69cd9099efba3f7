//! Selects the entries of a slice that a diagram shows.

use std::collections::BTreeSet;

use super::threads::Threads;
use crate::outcome::Violation;

/// The indices of the drawn entries that are evidence.
pub(super) fn convicting(threads: &Threads<'_>, violation: &Violation) -> BTreeSet<usize> {
    let entries = threads.entries();
    let place = |seq| entries.binary_search_by_key(seq, |entry| entry.seq).ok();
    let places = violation.evidence.iter().filter_map(place);
    places.map(|at| threads.drawn(at)).collect()
}

/// The indices of at most `budget` entries, in order. By priority: the evidence, the other ends of
/// its calls, their causes and the lists that show them, then all entries of the same subject, then
/// neighbouring ones.
pub(super) fn select(
    threads: &Threads<'_>,
    violation: &Violation,
    subject: Option<&str>,
    budget: usize,
) -> BTreeSet<usize> {
    let marked = convicting(threads, violation);
    let linked = marked.iter().flat_map(|at| {
        let ends = threads.both_ends(*at);
        let cause = threads.cause(*at).into_iter();
        let causes = cause.flat_map(|cause| threads.both_ends(cause));
        ends.chain(causes).chain(threads.shown_by(*at))
    });
    let about = subject.into_iter().flat_map(|id| {
        let calls = threads.calls_on(id);
        let calls = calls.flat_map(|call| threads.both_ends(call));
        calls.chain(threads.events_of(id).map(|(at, _)| at))
    });
    let last = threads.entries().len().saturating_sub(1);
    let beside = marked
        .iter()
        .flat_map(|at| [at.saturating_sub(1), (at + 1).min(last)]);
    let all = marked.iter().copied().chain(linked).chain(about);
    let mut chosen = BTreeSet::new();
    if marked.is_empty() {
        return chosen;
    }
    for at in all.chain(beside) {
        if chosen.len() == budget {
            break;
        }
        chosen.insert(threads.drawn(at));
    }
    chosen
}
