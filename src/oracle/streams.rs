//! How event streams end, and whether the runtime went on.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::history::{Body, CaseHistory, Entry, StatusCode, StreamEnd};

/// How the runtime has ended a stream that we have not given up.
pub(crate) fn unasked(end: &StreamEnd) -> Option<String> {
    match end {
        StreamEnd::Cancelled => None,
        StreamEnd::Closed => Some("the runtime ended it with OK".to_owned()),
        StreamEnd::Failed(fault) => Some(format!("it ended with {}", fault.code)),
    }
}

/// How the stream of all cases ended while the case's steps went on, unless we ended it or the
/// runtime is known to have gone on: what did not come after that, nobody can demand.
pub(crate) fn lost_with_the_runtime(history: &CaseHistory) -> Option<String> {
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
    let how = unasked(end)?;
    let is_lost = goes_on(history, last).is_none();
    is_lost.then(|| format!("the event stream ended, and so did the runtime: {how}"))
}

/// The first answer of a runtime to what was asked after a place, unless it was gone meanwhile: a
/// call that was under way then shows that, too.
pub(super) fn goes_on<'a>(history: &'a CaseHistory, ended: &Entry) -> Option<&'a Entry> {
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
