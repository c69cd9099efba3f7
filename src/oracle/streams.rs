//! The ends of event streams, and whether the runtime kept running.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::history::{Body, Call, CallFault, CaseHistory, Entry, StatusCode, StreamEnd};
use crate::limits;

/// A description of an end that the runtime caused; `None` if the suite cancelled the stream.
pub(crate) fn unexpected_end(end: &StreamEnd) -> Option<String> {
    match end {
        StreamEnd::Cancelled => None,
        StreamEnd::Closed => Some("the runtime ended it with OK".to_owned()),
        StreamEnd::Failed(fault) => Some(format!("it ended with {}", fault.code)),
    }
}

/// A description of the end of the stream of all cases during the case's steps, unless the suite
/// ended it or the runtime is known to have kept running: no event is due after that.
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
    let how = unexpected_end(end)?;
    let is_lost = later_answer(history, last).is_none();
    is_lost.then(|| format!("the event stream ended, and so did the runtime: {how}"))
}

/// The first answer of a runtime to a call that began after a stream had ended, unless the runtime
/// was down: the last call that ended before shows that, a later one, and one that was under way.
/// One that stops ends its streams first, and may answer until it has stopped. In a watch, calls
/// about other pods show it, too.
pub(super) fn later_answer<'a>(history: &'a CaseHistory, ended: &Entry) -> Option<&'a Entry> {
    let is_gone = |fault: &CallFault| fault.code == StatusCode::UNAVAILABLE;
    let is_unavailable = |call: &Call| matches!(call.result(), Some(Err(fault)) if is_gone(fault));
    let over = |call: &&Call| call.ended().map(|over| over.seq);
    let before = history.calls().filter(|call| over(call) < Some(ended.seq));
    let last = before.max_by_key(over);
    let of_others = history.unavailable();
    if last.is_some_and(is_unavailable)
        || of_others.before(ended.seq) > last.and_then(|it| over(&it))
    {
        return None;
    }
    let over_later = |over: &&Entry| over.seq > ended.seq;
    let mut answer = None;
    for call in history.calls() {
        let Some(over) = call.ended().filter(over_later) else {
            continue;
        };
        match call.result() {
            Some(Ok(_)) if call.began().seq > ended.seq => {
                answer.get_or_insert(over);
            }
            Some(Err(fault)) if is_gone(fault) => {
                let stops = over.at.since(ended.at) < limits::RUNTIME_STOPS;
                return answer.filter(|_| !stops);
            }
            Some(_) | None => {}
        }
    }
    answer.filter(|answer| {
        let gone = of_others.after(ended.seq);
        gone.is_none_or(|(gone, at)| {
            gone > answer.seq && at.since(ended.at) >= limits::RUNTIME_STOPS
        })
    })
}
