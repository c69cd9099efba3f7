//! How event streams end.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::invariants::Invariant;
use crate::history::{Body, CaseHistory, Entry, StatusCode, StreamEnd};
use crate::outcome::Violation;

/// Each stream that the runtime ended and went on. That it stopped itself shows in calls that fail
/// with UNAVAILABLE.
pub(super) fn streams_stay_open(rule: &Invariant, history: &CaseHistory) -> Vec<Violation> {
    let own = history
        .entries()
        .iter()
        .filter_map(|entry| match &entry.body {
            Body::SubscriptionEnded { subscription, end } => Some((*subscription, &**entry, end)),
            _ => None,
        });
    let observed = history.observed().filter(|observed| {
        let observer = observed.observer();
        // One that asks for its end gets it, and one that does not read may.
        observer.deadline.is_none() && !observer.stalls
    });
    let observed = observed.filter_map(|observed| {
        let (entry, end) = observed.ended()?;
        Some((observed.id(), entry, end))
    });
    let ends = own
        .chain(observed)
        .filter_map(|(subscription, entry, end)| {
            let actual = how_it_ended(end)?;
            let alive = goes_on(history, entry)?;
            Some(rule.told(
                format!("stream {}", subscription.0),
                "a stream that stays open as long as the runtime runs".to_owned(),
                actual,
                vec![entry.seq, alive.seq],
            ))
        });
    ends.collect()
}

/// How the stream of all cases ended while the case's steps went on, unless we ended it or the
/// runtime is known to have gone on: what did not come after that, nobody can demand.
pub(super) fn lost_with_the_runtime(history: &CaseHistory) -> Option<String> {
    let within = |entry: &&Arc<Entry>| history.within_steps(entry.seq);
    let of_streams = history.entries().iter().filter(within);
    let last = of_streams.rev().find(|entry| {
        matches!(
            entry.body,
            Body::SubscriptionOpened { .. } | Body::SubscriptionEnded { .. }
        )
    })?;
    let Body::SubscriptionEnded { end, .. } = &last.body else {
        return None;
    };
    let how = how_it_ended(end)?;
    let is_lost = goes_on(history, last).is_none();
    is_lost.then(|| format!("the event stream ended, and so did the runtime: {how}"))
}

/// How the runtime ended a stream; none if we did.
fn how_it_ended(end: &StreamEnd) -> Option<String> {
    match end {
        StreamEnd::Cancelled => None,
        StreamEnd::Closed => Some("the runtime ended it with OK".to_owned()),
        StreamEnd::Failed(fault) => Some(format!("it ended with {}", fault.code)),
    }
}

/// The first answer of a runtime to what was asked after a place, unless it was gone meanwhile: a
/// call that was under way then shows that, too.
fn goes_on<'a>(history: &'a CaseHistory, ended: &Entry) -> Option<&'a Entry> {
    let over_later = |over: &&Entry| over.seq > ended.seq;
    for call in history.calls() {
        let Some(over) = call.ended().filter(over_later) else {
            continue;
        };
        match call.result() {
            Some(Ok(_)) if call.began().seq > ended.seq => return Some(over),
            Some(Err(fault)) if fault.code == StatusCode::UNAVAILABLE => return None,
            Some(_) | None => {}
        }
    }
    None
}
