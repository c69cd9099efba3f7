//! The invariants that can still break after a case was judged: a late repetition, an event after
//! DELETED. For each container of the run only the kinds of its events are kept.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use super::invariants::{Broken, Invariant};
use super::rules::events_in_order::{ONCE, ORDER, REPLAY, reordered, repeated, replayed};
use super::rules::streams_stay_open::{self, Ends};
use crate::history::{
    Body, ContainerId, Entry, EventArrival, EventKind, HostInstant, PodUid, Request, RuntimeNanos,
    Seq, SubscriptionId,
};
use crate::limits;
use crate::outcome::{Fact, Violation};

/// A summary of all events about the latest pods of a run.
#[derive(Debug, Default)]
pub struct WholeRun {
    /// Whether it includes foreign pods.
    of_all_pods: bool,
    pods: HashSet<PodUid>,
    pods_by_age: VecDeque<PodUid>,
    /// The time of each stream's request.
    opened: HashMap<SubscriptionId, Seq>,
    seen: HashMap<ContainerId, Vec<Brief>>,
    seen_by_age: VecDeque<ContainerId>,
    ends: Ends,
    /// The violations of containers that were dropped.
    broken: Vec<(ContainerId, Violation)>,
}

/// What is kept of an event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Brief {
    pub(super) stream: SubscriptionId,
    pub(super) kind: EventKind,
    pub(super) seq: Seq,
    pub(super) at: HostInstant,
    pub(super) created_at: RuntimeNanos,
    /// The time of its stream's request, if known.
    pub(super) asked: Option<Seq>,
}

impl Brief {
    pub(super) fn of(arrival: &EventArrival) -> Self {
        Self {
            stream: arrival.subscription(),
            kind: arrival.event().kind,
            seq: arrival.seq(),
            at: arrival.at(),
            created_at: arrival.event().created_at,
            asked: None,
        }
    }
}

/// The events of each stream, in the order of arrival.
pub(super) fn by_stream(events: Vec<Brief>) -> BTreeMap<SubscriptionId, Vec<Brief>> {
    let mut streams = BTreeMap::<_, Vec<_>>::new();
    for event in events {
        streams.entry(event.stream).or_default().push(event);
    }
    streams
}

impl WholeRun {
    /// Processes the next entry of the run.
    pub fn push(&mut self, entry: &Entry) {
        self.ends.push(entry);
        match &entry.body {
            Body::RunPlanned(plan) => self.of_all_pods = plan.watch_within.is_some(),
            Body::CallBegan {
                request: Request::RunSandbox(spec),
                ..
            } => {
                if self.pods.insert(spec.uid.clone()) {
                    self.pods_by_age.push_back(spec.uid.clone());
                }
                if self.pods_by_age.len() > limits::RUN_CONTAINERS
                    && let Some(oldest) = self.pods_by_age.pop_front()
                {
                    self.pods.remove(&oldest);
                }
            }
            Body::Event {
                subscription,
                event,
                ..
            } => {
                let brief = Brief {
                    stream: *subscription,
                    kind: event.kind,
                    seq: entry.seq,
                    at: entry.at,
                    created_at: event.created_at,
                    asked: self.opened.get(subscription).copied(),
                };
                if let Some(seen) = self.seen.get_mut(&event.container) {
                    if seen.len() < limits::EVENTS_OF_A_KIND {
                        seen.push(brief);
                    }
                } else if event
                    .pod_uid()
                    .is_some_and(|uid| self.of_all_pods || self.pods.contains(uid))
                {
                    self.seen.insert(event.container.clone(), vec![brief]);
                    self.seen_by_age.push_back(event.container.clone());
                    self.drop_oldest();
                }
            }
            // A run has some hundreds of streams; of a file that has more, some are enough.
            Body::SubscriptionOpened { subscription, .. }
                if self.opened.len() < limits::RUN_CONTAINERS =>
            {
                self.opened.insert(*subscription, entry.seq);
            }
            _ => {}
        }
    }

    /// The first violation of each container and of each stream, without those that a case has
    /// reported.
    pub fn violations(&self, reported: &[Violation]) -> Vec<Violation> {
        let is_new = |(container, found): &(ContainerId, Violation)| {
            let same = |reported: &Violation| {
                reported.rule == found.rule && reported.subject.contains(container.as_str())
            };
            !reported.iter().any(same)
        };
        let dropped = self.broken.iter().filter(|broken| is_new(broken));
        let mut found: Vec<_> = dropped.map(|(_, found)| found.clone()).collect();
        let mut seen: Vec<_> = self.seen.iter().collect();
        seen.sort_unstable_by_key(|(container, _)| *container);
        for (container, events) in seen {
            let broken = broken(container, events).into_iter();
            let mut of_stream = BTreeSet::new();
            for (stream, violation) in broken {
                let broken = (container.clone(), violation);
                if is_new(&broken) && of_stream.insert(stream) {
                    found.push(broken.1);
                }
            }
        }
        found.extend(self.ends.violations(&streams_stay_open::RULE, reported));
        found
    }

    /// Drops the oldest container if there are too many.
    fn drop_oldest(&mut self) {
        if self.seen_by_age.len() <= limits::RUN_CONTAINERS {
            return;
        }
        let Some(oldest) = self.seen_by_age.pop_front() else {
            return;
        };
        let events = self.seen.remove(&oldest).unwrap_or_default();
        if self.broken.len() < limits::RUN_CONTAINERS {
            let broken = broken(&oldest, &events).into_iter();
            let broken = broken.map(|(_, violation)| (oldest.clone(), violation));
            self.broken.extend(broken);
        }
    }
}

/// The violations by the events of a container, stream by stream.
fn broken(container: &ContainerId, events: &[Brief]) -> Vec<(SubscriptionId, Violation)> {
    let violation = |rule: &Invariant, (mismatch, proof): Broken| {
        let of_last = |event: &&Brief| Some(&event.seq) == proof.last();
        let stream = events.iter().find(of_last).map(|event| event.stream);
        let late = Fact::Because("when its case had been judged".to_owned());
        let actual = mismatch.actual.iter().cloned().chain([late]).collect();
        let violation = rule.violation(container.to_string(), mismatch.with(actual), proof);
        Some((stream?, violation))
    };
    let mut found = Vec::new();
    for events in by_stream(events.to_vec()).into_values() {
        let [repeated, reordered] = [repeated(&events), reordered(&events)];
        found.extend(repeated.map(|broken| violation(&ONCE, broken)));
        found.extend(reordered.map(|broken| violation(&ORDER, broken)));
    }
    found.extend(replayed(events).map(|broken| violation(&REPLAY, broken)));
    found.into_iter().flatten().collect()
}
