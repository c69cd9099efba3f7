//! INV-27: each snapshot is a state of the pod between the event's cause and its arrival.
//!
//! Only the runtime knows when a container reached a state, and when it read a snapshot. The
//! history contains bounds (a container began to run while `StartContainer` was under way, and had
//! not exited when a later status showed it running) and an order (it was running when a snapshot
//! was read that shows it so). The times of a sandbox are such a partial order of points in time,
//! and a snapshot is explained if there are times that satisfy all of it.

mod order;
mod parts;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::history::{
    ContainerState, EventArrival, EventKind, RuntimeNanos, Seq, Subject, SubjectKind,
};
use crate::oracle::index::{Index, SandboxEvent};
use crate::oracle::invariants::{Invariant, SHOULD_MAY};
use crate::oracle::name_of;
use crate::outcome::{Fact, Facts, Kind, Mismatch, Violation};
use order::{Impossible, Order, Point};
use parts::{Calls, Part, Read, Shown};

pub(in crate::oracle) const RULE: Invariant = Invariant {
    id: "INV-27",
    name: "invariant::explained-snapshots",
    sentence: "The snapshot of an event is a state in which its pod was between the event's cause \
                   and its arrival.",
    source: "KEP-3386, Timestamp of the Pod Status; kubelet evented.go takes a snapshot as a status",
    requirements: &["R17", "R21", "R22"],
    kinds: &[
        Kind::SnapshotStale,
        Kind::SnapshotPremature,
        Kind::SnapshotFractured,
        Kind::SnapshotBeforePrevious,
    ],
    compares_clocks: false,
    of_foreign_pods: false,
    levels: SHOULD_MAY,
    check,
};

/// The maximum number of explained events of a sandbox on one stream; later ones are not judged.
const EVENTS: usize = 1_000;

/// Finds the first unexplained snapshot of each sandbox.
fn check(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    let mut found: Vec<Violation> = Vec::new();
    let calls = Calls::new(index.history);
    let mut sandboxes = BTreeMap::<&str, Vec<&Subject>>::new();
    for subject in index.history.subjects() {
        let of = match &subject.kind {
            SubjectKind::Sandbox(_) => subject.id.as_str(),
            SubjectKind::Container(spec) => spec.sandbox.as_str(),
            SubjectKind::Stray => continue,
        };
        sandboxes.entry(of).or_default().push(subject);
    }
    for ((of, _), events) in index.sandbox_events() {
        let subjects = sandboxes.get(of).into_iter().flatten().copied();
        let Some(sandbox) = Sandbox::new(subjects, index, &calls) else {
            continue;
        };
        let violation = sandbox.first_unexplained(rule, events);
        let is_new = |new: &Violation| found.iter().all(|earlier| earlier.subject != new.subject);
        found.extend(violation.filter(is_new));
    }
    found
}

/// A sandbox and its containers, as shown by calls alone.
struct Sandbox<'a> {
    parts: BTreeMap<&'a str, Part<'a>>,
    order: Order,
}

/// The state of a part in a snapshot.
type View<'a, 'p> = (&'p Part<'a>, Shown);

/// The order of the snapshots of one stream, as far as it has been followed.
struct Timeline {
    order: Order,
    /// The time of the last snapshot.
    last: Option<Point>,
    newest: RuntimeNanos,
}

impl<'a> Sandbox<'a> {
    /// `None` if the calls contradict each other, which other rules judge.
    fn new(
        subjects: impl Iterator<Item = &'a Subject>,
        index: &Index<'a>,
        calls: &Calls<'a>,
    ) -> Option<Self> {
        let mut order = Order::default();
        let parts = subjects.filter_map(|subject| {
            let part = Part::new(subject, index, calls, &mut order)?;
            Some((subject.id.as_str(), part))
        });
        let parts = parts.collect();
        order.settle().is_ok().then_some(Self { parts, order })
    }

    fn first_unexplained(
        &self,
        rule: &Invariant,
        events: &[SandboxEvent<'a>],
    ) -> Option<Violation> {
        let mut events: Vec<_> = events.iter().copied().take(EVENTS).collect();
        events.retain(|event| self.has_cause(event));
        let mut timeline = Timeline::new(&self.order);
        let explained = events.iter().take_while(|event| {
            let added = self.add(event, &mut timeline);
            added.is_ok()
        });
        let explained = explained.count();
        let (unexplained, before) = events.get(..=explained)?.split_last()?;
        Some(self.violation(rule, unexplained, before))
    }

    /// Whether the reported change can have happened before the event's arrival. If not, the event
    /// itself is wrong, and other rules judge it.
    fn has_cause(&self, (subject, arrival): &SandboxEvent<'_>) -> bool {
        let own = self.parts.get(subject.id.as_str());
        let cause = own.and_then(|own| own.reached(arrival.event().kind));
        cause.is_none_or(|cause| self.order.may_come_before(cause, arrival.seq()))
    }

    /// The time of an event's snapshot: after the reported change, and before the arrival.
    fn read(&self, (subject, arrival): &SandboxEvent<'_>, order: &mut Order) -> Read {
        let at = order.point(Seq::default(), Some(arrival.seq()));
        let own = self.parts.get(subject.id.as_str());
        let cause = own.and_then(|own| own.reached(arrival.event().kind));
        if let Some(cause) = cause {
            order.not_before(at, cause);
        }
        Read { at, cause }
    }

    /// Adds an event to the previous ones of a stream.
    fn add(&self, event: &SandboxEvent<'_>, timeline: &mut Timeline) -> Result<(), Impossible> {
        let read = self.follow(event, timeline)?;
        for (part, shown) in self.views(event.1) {
            part.require(shown, read, &mut timeline.order);
        }
        timeline.order.settle()
    }

    /// Adds the time of an event's snapshot: not before that of the previous event. A kubelet drops
    /// an event that is older than the newest one of the pod.
    fn follow(
        &self,
        event: &SandboxEvent<'_>,
        timeline: &mut Timeline,
    ) -> Result<Read, Impossible> {
        let read = self.read(event, &mut timeline.order);
        let created_at = event.1.event().created_at;
        if created_at >= timeline.newest {
            if let Some(last) = timeline.last {
                timeline.order.not_before(read.at, last);
            }
            timeline.newest = created_at;
            timeline.last = Some(read.at);
        }
        timeline.order.settle()?;
        Ok(read)
    }

    /// The state of each part in a snapshot. A deleted sandbox has its last state.
    fn views(&self, arrival: &EventArrival) -> Vec<View<'a, '_>> {
        let event = arrival.event();
        let Some(sandbox) = event.sandbox.as_deref() else {
            return Vec::new();
        };
        let statuses = event.containers.iter();
        let states: BTreeMap<&str, ContainerState> = statuses
            .map(|status| (status.id.as_str(), status.state))
            .collect();
        let view = |(&id, part): (&&str, &'_ Part<'a>)| {
            if !part.is_sandbox() {
                let shown = states.get(id).copied().map(Shown::of_container);
                return Some(shown.unwrap_or(Shown::Absent));
            }
            let is_gone = event.kind == EventKind::Deleted && event.container.as_str() == id;
            let is_shown = sandbox.id.as_str() == id && !is_gone;
            is_shown.then(|| Shown::of_sandbox(sandbox.state))
        };
        let parts = self.parts.iter();
        let views = parts.filter_map(|entry| Some((entry.1, view(entry)?)));
        views.collect()
    }

    /// The violation of a snapshot that previous ones leave unexplained.
    fn violation(
        &self,
        rule: &Invariant,
        event: &SandboxEvent<'a>,
        before: &[SandboxEvent<'a>],
    ) -> Violation {
        let &(subject, arrival) = event;
        let views = self.views(arrival);
        let place = [Fact::Event(arrival.event().kind), Fact::Of(subject.label())];
        let mut order = self.order.clone();
        let read = self.read(event, &mut order);
        // That it can be read at all was seen before.
        let _ = order.settle();
        let alone = views.iter().find_map(|&(part, shown)| {
            let kind = part.contradicts(shown, read, &order)?;
            let seen = [Fact::State(shown.to_string())];
            Some((part, Mismatch::new(kind, place.clone(), seen)))
        });
        if let Some((part, mismatch)) = alone {
            return rule.violation(name_of(part.subject), mismatch, vec![arrival.seq()]);
        }
        let text = |views: &[&View<'_, '_>]| {
            let views = views.iter();
            let views = views.map(|(part, shown)| format!("{} {shown}", part.subject.label()));
            Fact::Text(views.collect::<Vec<_>>().join(", "))
        };
        if let Some(second) = first_contradiction(&views, read, &mut order.clone()) {
            second.0.require(second.1, read, &mut order);
            let first = first_contradiction(&views, read, &mut order).unwrap_or(second);
            let mismatch = Mismatch::new(Kind::SnapshotFractured, place, [text(&[first, second])]);
            let of = name_of(first.0.subject);
            return rule.violation(of, mismatch, vec![arrival.seq()]);
        }
        let mut timeline = Timeline::new(&self.order);
        let known = before
            .iter()
            .try_for_each(|event| self.add(event, &mut timeline));
        let read = known.and_then(|()| self.follow(event, &mut timeline));
        let outdated = read.ok().and_then(|read| {
            let order = &mut timeline.order;
            first_contradiction(&views, read, order)
        });
        let of = outdated.map_or(subject, |(part, _)| part.subject);
        let seen: Facts = outdated.map(|view| text(&[view])).into_iter().collect();
        let mismatch = Mismatch::new(Kind::SnapshotBeforePrevious, place, seen);
        let last = before.last().map(|(_, arrival)| arrival.seq());
        let evidence = last.into_iter().chain([arrival.seq()]);
        rule.violation(name_of(of), mismatch, evidence.collect())
    }
}

/// The first view that contradicts an order and the views before it.
fn first_contradiction<'v, 'a, 'p>(
    views: &'v [View<'a, 'p>],
    read: Read,
    order: &mut Order,
) -> Option<&'v View<'a, 'p>> {
    views.iter().find(|(part, shown)| {
        part.require(*shown, read, order);
        order.settle().is_err()
    })
}

impl Timeline {
    fn new(order: &Order) -> Self {
        Self {
            order: order.clone(),
            last: None,
            newest: RuntimeNanos(i64::MIN),
        }
    }
}
