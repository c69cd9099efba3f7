//! The invariants that can still break after a case was judged: a late repetition, an event after
//! DELETED. For each container of the run only the kinds of its events are kept.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use super::invariants::Invariant;
use super::life::rank;
use super::rules::streams_stay_open::Ends;
use super::rules::{events_in_order, no_duplicate_events, no_replay, streams_stay_open};
use crate::history::{
    Body, ContainerId, Entry, EventKind, HostInstant, PodUid, Request, RuntimeNanos, Seq,
    SubscriptionId,
};
use crate::limits;
use crate::outcome::{Fact, Kind, Mismatch, Violation};

/// A summary of all events about the latest pods of a run.
#[derive(Debug, Default)]
pub struct WholeRun {
    /// Whether it includes foreign pods.
    of_all_pods: bool,
    pods: HashSet<PodUid>,
    pods_by_age: VecDeque<PodUid>,
    /// The time of each stream's request.
    opened: HashMap<SubscriptionId, Seq>,
    seen: HashMap<ContainerId, Vec<(SubscriptionId, Brief)>>,
    seen_by_age: VecDeque<ContainerId>,
    ends: Ends,
    /// The violations of containers that were dropped.
    broken: Vec<(ContainerId, Violation)>,
}

#[derive(Clone, Copy, Debug)]
struct Brief {
    kind: EventKind,
    seq: Seq,
    at: HostInstant,
    created_at: RuntimeNanos,
    /// The time of its stream's request.
    asked: Option<Seq>,
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
                    kind: event.kind,
                    seq: entry.seq,
                    at: entry.at,
                    created_at: event.created_at,
                    asked: self.opened.get(subscription).copied(),
                };
                let brief = (*subscription, brief);
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
fn broken(
    container: &ContainerId,
    events: &[(SubscriptionId, Brief)],
) -> Vec<(SubscriptionId, Violation)> {
    let in_order = |pair: &[(SubscriptionId, Brief)]| {
        let [(earlier_on, earlier), (later_on, later)] = [pair[0], pair[1]];
        earlier_on == later_on && rank(earlier.kind) < rank(later.kind)
    };
    if events.windows(2).all(in_order) {
        return Vec::new();
    }
    let streams: BTreeSet<SubscriptionId> = events.iter().map(|(stream, _)| *stream).collect();
    let of_stream = |stream: SubscriptionId| {
        let events = events.iter().filter(|(of, _)| *of == stream);
        let events: Vec<Brief> = events.map(|(_, brief)| *brief).collect();
        let broken = [repeated(container, &events), reordered(container, &events)];
        let broken = broken.into_iter().flatten();
        broken.map(move |violation| (stream, violation))
    };
    let of_streams = streams.into_iter().flat_map(of_stream);
    of_streams
        .chain(replayed_again(container, events))
        .collect()
}

/// The violation by an event that two subscribers got, one after the other.
fn replayed_again(
    container: &ContainerId,
    events: &[(SubscriptionId, Brief)],
) -> Option<(SubscriptionId, Violation)> {
    events.iter().find_map(|(stream, later)| {
        let same = |earlier: &Brief| {
            let same = (earlier.kind, earlier.created_at) == (later.kind, later.created_at);
            same && later.asked > Some(earlier.seq)
        };
        let (_, earlier) = events.iter().find(|(_, earlier)| same(earlier))?;
        let actual = [Fact::Event(later.kind)];
        let mismatch = Mismatch::new(Kind::ReplayedEvent, [], actual);
        let evidence = [Some(earlier.seq), later.asked, Some(later.seq)];
        let evidence = evidence.into_iter().flatten().collect();
        let violation = no_replay::RULE.violation(container.to_string(), mismatch, evidence);
        Some((*stream, violation))
    })
}

fn repeated(container: &ContainerId, events: &[Brief]) -> Option<Violation> {
    events.iter().enumerate().find_map(|(place, later)| {
        let earlier = events[..place]
            .iter()
            .find(|earlier| earlier.kind == later.kind)?;
        let rule = &no_duplicate_events::RULE;
        let kind = Kind::LateDuplicateEvent;
        Some(violation(rule, container, kind, [earlier, later]))
    })
}

fn reordered(container: &ContainerId, events: &[Brief]) -> Option<Violation> {
    let ranked: Vec<_> = events
        .iter()
        .filter_map(|brief| Some((rank(brief.kind)?, brief)))
        .collect();
    ranked.windows(2).find_map(|pair| {
        let [(before, earlier), (after, later)] = [pair[0], pair[1]];
        if before <= after {
            return None;
        }
        let rule = &events_in_order::RULE;
        let kind = Kind::LateEventOutOfOrder;
        Some(violation(rule, container, kind, [earlier, later]))
    })
}

fn violation(
    rule: &Invariant,
    container: &ContainerId,
    kind: Kind,
    [earlier, later]: [&Brief; 2],
) -> Violation {
    let actual = [
        Fact::Event(later.kind),
        Fact::After(earlier.kind),
        Fact::Pause(later.at.since(earlier.at)),
    ];
    let mismatch = Mismatch::new(kind, [], actual);
    let evidence = vec![earlier.seq, later.seq];
    rule.violation(container.to_string(), mismatch, evidence)
}
