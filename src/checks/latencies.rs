//! The measured times for which there is a limit, kept or not.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use super::judge::Claim;
use crate::history::{Body, Call, CaseHistory, Request, Subject, Took};
use crate::limits;
use crate::oracle::{Index, span};
use crate::outcome::{Latency, Limit};

/// The longest time of each kind in a case; none where there is nothing to measure. `call_deadline`
/// is the deadline of each call.
#[must_use]
pub fn latencies(
    claim: &Claim<'_>,
    index: &Index<'_>,
    call_deadline: Option<Duration>,
) -> Vec<Latency> {
    let history = index.history;
    let wait = history.stretched(limits::EVENT_WAIT);
    let latency = |limit, bound| move |took| Latency { limit, bound, took };
    let calls = call_deadline.and_then(|bound| {
        let longest = history.calls().filter_map(without_grace).max();
        longest.map(latency(Limit::Call, bound))
    });
    let after_call = after_calls(index).map(latency(Limit::EventAfterCall, wait));
    let lag = longest_lag(history).map(latency(Limit::EventLag, wait));
    let checks = claim.expectations.iter();
    let checked = checks.flat_map(|expectation| expectation.check.as_word().latencies(index));
    let general = [calls, after_call, lag].into_iter().flatten();
    general.chain(checked).chain(waits(history)).collect()
}

/// The duration of a call that has returned, without the grace period that it was given.
fn without_grace(call: &Call) -> Option<Duration> {
    let took = call.ended()?.at.since(call.began().at);
    Some(match call.request() {
        Request::StopContainer { grace, .. } => took.saturating_sub(*grace),
        _ => took,
    })
}

/// The longest time from the return of a call to its event; zero if the event came before.
fn after_calls(index: &Index<'_>) -> Option<Duration> {
    let late = |subject: &Subject| {
        let transitions = index.transitions(&subject.id).iter();
        let came = transitions.filter_map(|transition| {
            let came = subject.first(transition.needed)?;
            Some(came.at().since(transition.ended.at))
        });
        came.max()
    };
    let subjects = index.history.subjects().iter();
    subjects.filter_map(late).max()
}

/// The longest time from `created_at` to arrival, of events that are not older than the case.
fn longest_lag(history: &CaseHistory) -> Option<Duration> {
    let began_ns = history.began()?.realtime_ns;
    let arrivals = history.subjects().iter().flat_map(|it| &it.arrivals);
    let within = arrivals.filter(|seen| history.within_steps(seen.seq()));
    let lags = within.filter_map(|seen| {
        let (created_at, arrived) = (seen.event().created_at.0, seen.at().realtime_ns);
        (created_at >= began_ns).then(|| span(created_at, arrived))
    });
    lags.max()
}

/// The longest waits of steps that have a bound of their own.
fn waits(history: &CaseHistory) -> Vec<Latency> {
    let usual = history.stretched(limits::EVENT_WAIT);
    let mut longest = BTreeMap::new();
    for entry in history.entries() {
        let Body::Waited { bound, took, .. } = entry.body else {
            continue;
        };
        let (limit, took) = match took {
            Some(Took::Event(took)) if bound != usual => (Limit::Await, took),
            Some(Took::End(took)) => (Limit::AwaitEnd, took),
            _ => continue,
        };
        let known = longest.entry((limit, bound)).or_insert(took);
        *known = took.max(*known);
    }
    let latency = |((limit, bound), took)| Latency { limit, bound, took };
    longest.into_iter().map(latency).collect()
}
