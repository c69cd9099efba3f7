//! INV-27: each snapshot is a state of the pod between the event's cause and its arrival. INV-19:
//! none has a state that began after its arrival.
//!
//! Only the runtime knows when a container reached a state, and when it read a snapshot. The
//! history contains bounds (a container began to run while `StartContainer` was under way, and had
//! not exited when a later status showed it running) and an order (it was running when a snapshot
//! was read that shows it so). The times of a sandbox are such a partial order of points in time,
//! and a snapshot is explained if there are times that satisfy all of it.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::history::{EventArrival, EventKind, RuntimeNanos, Seq, SubjectKind};
use crate::oracle::index::{Index, SandboxEvent};
use crate::oracle::invariants::{Invariant, MUST_MAY, SHOULD_MAY};
use crate::oracle::life::{Contradiction, Impossible, Judged, Life, Order, Point, Read, Shown};
use crate::oracle::name_of;
use crate::oracle::objects::{Object, Objects};
use crate::outcome::{Fact, Facts, Kind, Mismatch, Violation};

pub(in crate::oracle) const PREMATURE: Invariant = Invariant {
    id: "INV-19",
    name: "invariant::no-premature-snapshots",
    sentence: "No event shows a container or sandbox in a state that it reached later, as calls prove.",
    source: "KEP-3386, failure modes (incorrect container statuses); R22 of the kubelet",
    requirements: &["R17", "R22"],
    kinds: &[Kind::SnapshotPremature],
    compares_clocks: false,
    of_foreign_pods: true,
    levels: MUST_MAY,
    check: premature,
};

pub(in crate::oracle) const RULE: Invariant = Invariant {
    id: "INV-27",
    name: "invariant::explained-snapshots",
    sentence: "The snapshot of an event is a state in which its pod was between the event's cause \
                   and its arrival.",
    source: "KEP-3386, Timestamp of the Pod Status; kubelet evented.go takes a snapshot as a status",
    requirements: &["R17", "R21", "R22"],
    kinds: &[
        Kind::SnapshotStale,
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
    of_each_sandbox(index, |sandbox, events| {
        sandbox.first_unexplained(rule, events)
    })
}

/// Finds the first snapshot of each sandbox with a state that began after its arrival.
fn premature(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    of_each_sandbox(index, |sandbox, events| {
        let events = events.iter().take(EVENTS);
        let mut events = events.filter(|event| sandbox.has_cause(event));
        events.find_map(|event| sandbox.premature(rule, index, event))
    })
}

/// The violations of the sandboxes by the events of each stream, the first of each subject.
fn of_each_sandbox<'a>(
    index: &Index<'a>,
    judge: impl Fn(&Sandbox<'_, 'a>, &[SandboxEvent<'a>]) -> Option<Violation>,
) -> Vec<Violation> {
    let mut objects = BTreeMap::<&str, Vec<&Object<'_>>>::new();
    for object in index.objects().iter() {
        let of = match &object.subject.kind {
            SubjectKind::Sandbox(_) => object.subject.id.as_str(),
            SubjectKind::Container(spec) => spec.sandbox.as_str(),
            SubjectKind::Stray => continue,
        };
        objects.entry(of).or_default().push(object);
    }
    let mut found: Vec<Violation> = Vec::new();
    for ((of, _), events) in index.sandbox_events() {
        let objects = objects.get(of).into_iter().flatten().copied();
        let sandbox = Sandbox::new(objects, index.objects());
        let violation = sandbox.and_then(|sandbox| judge(&sandbox, events));
        let is_new = |new: &Violation| found.iter().all(|earlier| earlier.subject != new.subject);
        found.extend(violation.filter(is_new));
    }
    found
}

/// A sandbox and its containers, as calls and answers show them.
struct Sandbox<'i, 'a> {
    lives: BTreeMap<&'a str, Life<'i, 'a>>,
    order: Order,
}

/// The state of an object in a snapshot.
type View<'s, 'i, 'a> = (&'s Life<'i, 'a>, Shown);

/// The order of the snapshots of one stream, as far as it has been followed.
struct Timeline {
    order: Order,
    /// The time of the last snapshot.
    last: Option<Point>,
    newest: RuntimeNanos,
}

impl<'i, 'a> Sandbox<'i, 'a> {
    /// `None` if the calls contradict each other, which other rules judge.
    fn new(of: impl Iterator<Item = &'i Object<'a>>, objects: &Objects<'a>) -> Option<Self> {
        let mut order = Order::default();
        let lives = of.filter_map(|object| {
            let life = Life::new(object, objects, Judged::Snapshots, &mut order)?;
            Some((object.subject.id.as_str(), life))
        });
        let lives = lives.collect();
        order.settle().is_ok().then_some(Self { lives, order })
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
        self.violation(rule, unexplained, before)
    }

    fn premature(
        &self,
        rule: &Invariant,
        index: &Index<'a>,
        event: &SandboxEvent<'a>,
    ) -> Option<Violation> {
        let arrival = event.1;
        let mut order = self.order.clone();
        let read = self.read(event, &mut order);
        self.views(arrival).into_iter().find_map(|(life, shown)| {
            let wrong = life.contradicts(shown, read, &order)?;
            (wrong == Contradiction::Premature).then(|| {
                let proof = life.proof(shown, wrong, &order);
                let (cause, proof) = index.cause(proof);
                let event = Fact::Event(arrival.event().kind);
                let seen = [event, Fact::State(shown.to_string())];
                let mismatch = Mismatch::new(Kind::SnapshotPremature, [cause], seen);
                let evidence = [arrival.seq()].into_iter().chain(proof);
                rule.violation(name_of(life.object.subject), mismatch, evidence.collect())
            })
        })
    }

    /// Whether the reported change can have happened before the event's arrival. If not, the event
    /// itself is wrong, and other rules judge it.
    fn has_cause(&self, (subject, arrival): &SandboxEvent<'_>) -> bool {
        let own = self.lives.get(subject.id.as_str());
        let cause = own.and_then(|own| own.reached(arrival.event().kind));
        cause.is_none_or(|cause| self.order.may_come_before(cause, arrival.seq()))
    }

    /// The time of an event's snapshot: after the reported change, and before the arrival.
    fn read(&self, (subject, arrival): &SandboxEvent<'_>, order: &mut Order) -> Read {
        let at = order.point(Seq::default(), Some(arrival.seq()));
        let own = self.lives.get(subject.id.as_str());
        let cause = own.and_then(|own| own.reached(arrival.event().kind));
        if let Some(cause) = cause {
            order.not_before(at, cause);
        }
        Read { at, cause }
    }

    /// Adds an event to the previous ones of a stream.
    fn add(&self, event: &SandboxEvent<'_>, timeline: &mut Timeline) -> Result<(), Impossible> {
        let read = self.follow(event, timeline)?;
        for (life, shown) in self.views(event.1) {
            life.require(shown, read, &mut timeline.order);
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

    /// The state of each object in a snapshot. A deleted sandbox has its last state.
    fn views(&self, arrival: &EventArrival) -> Vec<View<'_, 'i, 'a>> {
        let event = arrival.event();
        let Some(sandbox) = event.sandbox.as_deref() else {
            return Vec::new();
        };
        let statuses = event.containers.iter();
        let states: BTreeMap<&str, Shown> = statuses
            .map(|status| (status.id.as_str(), Shown::of_container(status.state)))
            .collect();
        let view = |(&id, life): (&&str, &'_ Life<'_, '_>)| {
            if !matches!(life.object.subject.kind, SubjectKind::Sandbox(_)) {
                return Some(states.get(id).copied().unwrap_or(Shown::Absent));
            }
            let is_gone = event.kind == EventKind::Deleted && event.container.as_str() == id;
            let is_shown = sandbox.id.as_str() == id && !is_gone;
            is_shown.then(|| Shown::of_sandbox(sandbox.state))
        };
        let lives = self.lives.iter();
        let views = lives.filter_map(|entry| Some((entry.1, view(entry)?)));
        views.collect()
    }

    /// The violation of a snapshot that previous ones leave unexplained.
    fn violation(
        &self,
        rule: &Invariant,
        event: &SandboxEvent<'a>,
        before: &[SandboxEvent<'a>],
    ) -> Option<Violation> {
        let &(subject, arrival) = event;
        let views = self.views(arrival);
        let place = [Fact::Event(arrival.event().kind), Fact::Of(subject.label())];
        let mut order = self.order.clone();
        let read = self.read(event, &mut order);
        // That it can be read at all was seen before.
        let _ = order.settle();
        let alone = views.iter().find_map(|&(life, shown)| {
            let wrong = life.contradicts(shown, read, &order)?;
            Some((life, shown, wrong))
        });
        if let Some((life, shown, wrong)) = alone {
            // Another rule reports a state that began later.
            let is_over = wrong == Contradiction::Stale;
            let seen = [Fact::State(shown.to_string())];
            let mismatch = Mismatch::new(Kind::SnapshotStale, place, seen);
            let of = name_of(life.object.subject);
            return is_over.then(|| rule.violation(of, mismatch, vec![arrival.seq()]));
        }
        let text = |views: &[&View<'_, '_, '_>]| {
            let views = views.iter();
            let views =
                views.map(|(life, shown)| format!("{} {shown}", life.object.subject.label()));
            Fact::Text(views.collect::<Vec<_>>().join(", "))
        };
        if let Some(second) = first_contradiction(&views, read, &mut order.clone()) {
            second.0.require(second.1, read, &mut order);
            let first = first_contradiction(&views, read, &mut order).unwrap_or(second);
            let mismatch = Mismatch::new(Kind::SnapshotFractured, place, [text(&[first, second])]);
            let of = name_of(first.0.object.subject);
            return Some(rule.violation(of, mismatch, vec![arrival.seq()]));
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
        let of = outdated.map_or(subject, |(life, _)| life.object.subject);
        let seen: Facts = outdated.map(|view| text(&[view])).into_iter().collect();
        let mismatch = Mismatch::new(Kind::SnapshotBeforePrevious, place, seen);
        let last = before.last().map(|(_, arrival)| arrival.seq());
        let evidence = last.into_iter().chain([arrival.seq()]);
        Some(rule.violation(name_of(of), mismatch, evidence.collect()))
    }
}

/// The first view that contradicts an order and the views before it.
fn first_contradiction<'v, 's, 'i, 'a>(
    views: &'v [View<'s, 'i, 'a>],
    read: Read,
    order: &mut Order,
) -> Option<&'v View<'s, 'i, 'a>> {
    views.iter().find(|(life, shown)| {
        life.require(*shown, read, order);
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
