//! The events of a case's subscribers, compared with the stream of all cases.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use super::name_of;
use crate::history::{
    Body, CaseHistory, ContainerId, Entry, EventArrival, EventKind, Observed, RuntimeNanos, Seq,
    StreamEnd, Subject,
};
use crate::outcome::{Fact, Kind, Mismatch};

/// The maximum delay of an event between two streams. An event that is younger at the end of the
/// steps is not missed.
const UNDER_WAY: Duration = Duration::from_secs(1);

/// An event that arrived on one stream and not, or in another place, on another.
#[derive(Clone, Debug)]
pub(crate) struct Difference {
    pub(crate) subject: String,
    pub(crate) mismatch: Mismatch,
    pub(crate) evidence: Vec<Seq>,
    /// Whether it may still arrive.
    pub(crate) is_open: bool,
}

/// Whether a subscription of the case got an event that the stream of all cases did not, such as
/// when subscribers compete for events.
pub(crate) fn is_split(history: &CaseHistory) -> bool {
    let misses = |observed: &Observed| {
        let theirs = observed.events();
        let missed = |seen: EventArrival| {
            let subjects = history.subjects().iter();
            let mut of = subjects.filter(|subject| subject.id == seen.event().container);
            of.any(|subject| !has(&subject.arrivals, &seen))
        };
        theirs
            .filter(|seen| history.within_steps(seen.seq()))
            .any(missed)
    };
    history.observed().any(misses)
}

/// Whether a subscription of the case got such an event of the subject.
pub(crate) fn is_on_other_stream(
    history: &CaseHistory,
    subject: &Subject,
    kind: EventKind,
) -> bool {
    let is_same =
        |seen: EventArrival| seen.event().kind == kind && seen.event().container == subject.id;
    history
        .observed()
        .any(|observed| observed.events().any(is_same))
}

/// The first difference between the events of a subscription since it was live and those of the
/// stream of all cases.
pub(crate) fn difference(history: &CaseHistory, observed: &Observed) -> Option<Difference> {
    let mut seen: BTreeMap<ContainerId, Vec<EventArrival>> = BTreeMap::new();
    let within = |arrival: &EventArrival| history.within_steps(arrival.seq());
    for arrival in observed.events().filter(within) {
        let of = arrival.event().container.clone();
        seen.entry(of).or_default().push(arrival);
    }
    let compared = Compared {
        history,
        observed,
        proven: observed.proven()?,
        seen,
        last: observed.events().last().map(|seen| seen.seq()),
    };
    history.subjects().iter().find_map(|subject| {
        compared
            .unlike(subject)
            .map(|found| compared.describe(subject, found))
    })
}

struct Compared<'a> {
    history: &'a CaseHistory,
    observed: &'a Observed,
    /// The entry from which it is live.
    proven: &'a Entry,
    /// Its events in the steps, by what they are about.
    seen: BTreeMap<ContainerId, Vec<EventArrival>>,
    /// Its last event, also after the steps.
    last: Option<Seq>,
}

enum Unlike {
    Missed(EventArrival),
    Alone(EventArrival),
    Displaced(EventArrival),
}

impl Compared<'_> {
    fn unlike(&self, subject: &Subject) -> Option<Unlike> {
        let within = |seen: &EventArrival| self.history.within_steps(seen.seq());
        let own = subject.arrivals.iter().filter(|seen| within(seen)).cloned();
        let own: Vec<EventArrival> = own.collect();
        let theirs = self.seen.get(&subject.id).map_or(&[][..], Vec::as_slice);
        let is_live = |seen: &&EventArrival| {
            seen.seq() > self.proven.seq && seen.event().created_at.0 >= self.proven.at.realtime_ns
        };
        let until = if self.ended_in_steps().is_some() {
            // It need not have got an event after its end.
            let last = own.iter().rposition(|seen| has(theirs, seen));
            last.unwrap_or(0)
        } else {
            own.len()
        };
        let passed = |seen: &&EventArrival| self.is_old(seen) || self.last > Some(seen.seq());
        let needed = own[..until].iter().filter(is_live);
        let mut needed = needed.filter(passed);
        if let Some(missed) = needed.find(|seen| !has(theirs, seen)) {
            return Some(Unlike::Missed(missed.clone()));
        }
        let mut live = theirs.iter().filter(is_live);
        if let Some(alone) = live
            .find(|seen| self.is_old(seen) && !has(&own, seen))
            .filter(|_| self.listened())
        {
            return Some(Unlike::Alone(alone.clone()));
        }
        let own = own.iter().filter(|seen| has(theirs, seen)).map(identity);
        let common = theirs.iter().filter(|seen| has(&subject.arrivals, seen));
        let mut pairs = own.zip(common);
        let displaced = pairs.find(|(own, seen)| *own != identity(seen));
        displaced.map(|(_, seen)| Unlike::Displaced(seen.clone()))
    }

    fn describe(&self, subject: &Subject, unlike: Unlike) -> Difference {
        let by = &self.observed.observer().binding;
        let (seen, kind) = match unlike {
            Unlike::Missed(seen) => (seen, Kind::MissingOnSubscription),
            Unlike::Alone(seen) => (seen, Kind::MissingOnMainStream),
            Unlike::Displaced(seen) => (seen, Kind::DifferentOrder),
        };
        let expected = [Fact::Event(seen.event().kind), Fact::Of(by.clone())];
        let mut evidence = vec![self.observed.opened().seq, seen.seq()];
        evidence.extend(self.observed.proven().map(|proven| proven.seq));
        evidence.sort_unstable();
        Difference {
            subject: format!(
                "{} on {by}, stream {}",
                name_of(subject),
                self.observed.id()
            ),
            mismatch: Mismatch::new(kind, expected, []),
            evidence,
            is_open: kind != Kind::DifferentOrder && self.ended_in_steps().is_none(),
        }
    }

    /// Whether an event arrived so early that it is no longer in transit to any subscriber.
    fn is_old(&self, seen: &EventArrival) -> bool {
        let ended = self.history.steps_ended_at();
        ended.is_none_or(|ended| ended.since(seen.at()) >= UNDER_WAY)
    }

    fn ended_in_steps(&self) -> Option<&StreamEnd> {
        let (ended, end) = self.observed.ended()?;
        self.history.within_steps(ended.seq).then_some(end)
    }

    /// Whether the stream of all cases was open all the time.
    fn listened(&self) -> bool {
        let mut entries = self.history.entries().iter();
        !entries.any(|entry| {
            let ended = matches!(entry.body, Body::SubscriptionEnded { .. });
            ended && self.history.within_steps(entry.seq)
        })
    }
}

/// The identity of an event across streams.
fn identity(seen: &EventArrival) -> (EventKind, RuntimeNanos) {
    (seen.event().kind, seen.event().created_at)
}

fn has(arrivals: &[EventArrival], wanted: &EventArrival) -> bool {
    let mut arrivals = arrivals.iter();
    arrivals.any(|seen| identity(seen) == identity(wanted))
}
