//! The measured times with a limit, kept or not.

#[cfg(test)]
mod tests;

use std::time::Duration;

use super::judge::Claim;
use crate::history::{Body, Call, CaseHistory, Request, Subject, Took};
use crate::limits;
use crate::oracle::{Index, span};
use crate::outcome::{Latency, Limit};

/// All times in a case that have a limit. `call_deadline` is the deadline of each call.
pub fn latencies(
    claim: &Claim<'_>,
    index: &Index<'_>,
    call_deadline: Option<Duration>,
) -> Vec<Latency> {
    let history = index.history;
    let wait = history.scaled(limits::EVENT_WAIT);
    let latency = |limit, bound| move |took| Latency { limit, bound, took };
    let calls = call_deadline.into_iter().flat_map(|bound| {
        let calls = history.calls().filter_map(without_grace);
        calls.map(latency(Limit::Call, bound))
    });
    let after_calls = after_calls(index).map(latency(Limit::EventAfterCall, wait));
    let lags = lags(history).map(latency(Limit::EventLag, wait));
    let checks = claim.expectations.iter();
    let checked = checks.flat_map(|expectation| expectation.check.as_word().latencies(index));
    let general = calls.chain(after_calls).chain(lags);
    general.chain(checked).chain(waits(history)).collect()
}

/// The duration of a call that has returned, without its grace period.
fn without_grace(call: &Call) -> Option<Duration> {
    let took = call.ended()?.at.since(call.began().at);
    Some(match call.request() {
        Request::StopContainer { grace, .. } => took.saturating_sub(*grace),
        _ => took,
    })
}

/// The times from the return of a call to its event; zero if the event arrived before.
fn after_calls(index: &Index<'_>) -> impl Iterator<Item = Duration> {
    let late = |subject: &Subject| {
        let transitions = index.transitions(&subject.id).iter();
        let came = transitions.filter_map(|transition| {
            let came = subject.first(transition.needed)?;
            Some(came.at().since(transition.ended.at))
        });
        came.collect::<Vec<_>>()
    };
    let subjects = index.history.subjects().iter();
    subjects.flat_map(late)
}

/// The times from `created_at` to arrival, of events that are not older than the case.
fn lags(history: &CaseHistory) -> impl Iterator<Item = Duration> {
    let began_ns = history.began().map_or(i64::MAX, |began| began.realtime_ns);
    let arrivals = history.subjects().iter().flat_map(|it| &it.arrivals);
    let within = arrivals.filter(|seen| history.within_steps(seen.seq()));
    within.filter_map(move |seen| {
        let (created_at, arrived) = (seen.event().created_at.0, seen.at().realtime_ns);
        (created_at >= began_ns).then(|| span(created_at, arrived))
    })
}

/// The waits of steps with their own bound.
fn waits(history: &CaseHistory) -> impl Iterator<Item = Latency> {
    let usual = history.scaled(limits::EVENT_WAIT);
    history.entries().iter().filter_map(move |entry| {
        let Body::Waited { bound, took, .. } = entry.body else {
            return None;
        };
        let (limit, took) = match took? {
            Took::Event(took) if bound != usual => (Limit::Await, took),
            Took::End(took) => (Limit::AwaitEnd, took),
            Took::Event(_) => return None,
        };
        Some(Latency { limit, bound, took })
    })
}
