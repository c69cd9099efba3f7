//! How event streams end.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::invariants::Invariant;
use crate::history::{
    Body, CallFault, CallId, CaseHistory, Entry, Seq, StatusCode, StreamEnd, SubscriptionId,
};
use crate::limits;
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
            let actual = unasked(end)?;
            let alive = goes_on(history, entry)?;
            Some(broken(rule, subscription, &actual, [entry.seq, alive.seq]))
        });
    ends.collect()
}

/// What a runtime answered after it had ended streams: over the whole run, for a case may have
/// nothing to ask after that.
#[derive(Debug, Default)]
pub(super) struct Ends {
    /// Streams that may end: they ask for it, or do not read.
    excused: BTreeSet<SubscriptionId>,
    open: Vec<Ended>,
    proven: Vec<(Ended, Seq)>,
    /// The calls that began after the first of those that are open.
    asked: BTreeMap<CallId, Seq>,
}

#[derive(Clone, Debug)]
struct Ended {
    stream: SubscriptionId,
    seq: Seq,
    actual: String,
}

impl Ends {
    /// Takes in the next entry of the run.
    pub(super) fn push(&mut self, entry: &Entry) {
        match &entry.body {
            Body::SubscriptionOpened {
                subscription,
                observer: Some(observer),
            } if observer.deadline.is_some() || observer.stalls => {
                self.excused.insert(*subscription);
            }
            Body::SubscriptionEnded { subscription, end } => {
                let actual = unasked(end).filter(|_| !is_of_connection(end));
                let has_room = self.open.len() + self.proven.len() < limits::RUN_CONTAINERS;
                if let Some(actual) = actual
                    && !self.excused.remove(subscription)
                    && has_room
                {
                    let (stream, seq) = (*subscription, entry.seq);
                    self.open.push(Ended {
                        stream,
                        seq,
                        actual,
                    });
                }
            }
            Body::CallBegan { call, .. } if !self.open.is_empty() => {
                self.asked.insert(*call, entry.seq);
            }
            Body::CallEnded { call, result } => {
                if let Some(began) = self.asked.remove(call) {
                    self.answered(began, entry.seq, result.as_ref().map(|_| ()));
                }
            }
            _ => {}
        }
    }

    fn answered(&mut self, began: Seq, ended: Seq, result: Result<(), &CallFault>) {
        let (before, after): (Vec<_>, Vec<_>) =
            self.open.drain(..).partition(|open| open.seq < began);
        self.open = after;
        match result {
            Ok(()) => {
                let proven = before.into_iter().map(|open| (open, ended));
                self.proven.extend(proven);
            }
            Err(fault) if fault.code == StatusCode::UNAVAILABLE => {}
            Err(_) => self.open.extend(before),
        }
        if self.open.is_empty() {
            self.asked.clear();
        }
    }

    /// Each stream that a runtime has ended and gone on, unless that has been told.
    pub(super) fn violations(&self, rule: &Invariant, told: &[Violation]) -> Vec<Violation> {
        let is_new = |(ended, _): &&(Ended, Seq)| {
            let same =
                |told: &Violation| told.rule == rule.id && told.evidence.contains(&ended.seq);
            !told.iter().any(same)
        };
        let new = self.proven.iter().filter(is_new);
        new.map(|(ended, alive)| broken(rule, ended.stream, &ended.actual, [ended.seq, *alive]))
            .collect()
    }
}

/// How the runtime has ended a stream that we have not given up.
pub(super) fn unasked(end: &StreamEnd) -> Option<String> {
    match end {
        StreamEnd::Cancelled => None,
        StreamEnd::Closed => Some("the runtime ended it with OK".to_owned()),
        StreamEnd::Failed(fault) => Some(format!("it ended with {}", fault.code)),
    }
}

/// Whether it may be the connection that has ended, as when the runtime restarts.
fn is_of_connection(end: &StreamEnd) -> bool {
    matches!(end, StreamEnd::Failed(fault) if fault.code == StatusCode::UNAVAILABLE)
}

fn broken(rule: &Invariant, stream: SubscriptionId, actual: &str, evidence: [Seq; 2]) -> Violation {
    rule.told(
        format!("stream {}", stream.0),
        "a stream that stays open as long as the runtime runs".to_owned(),
        actual.to_owned(),
        evidence.to_vec(),
    )
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
    let how = unasked(end)?;
    let is_lost = goes_on(history, last).is_none();
    is_lost.then(|| format!("the event stream ended, and so did the runtime: {how}"))
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
