//! The life of a container or a sandbox: between which entries of the history it reached each of
//! its states, and whether a message can show a state.

mod order;

use std::fmt;

pub(super) use self::order::{Impossible, Order, Point};
use super::fields::Message;
use super::objects::{Object, Objects, Source, Statement, failed_to_start, removes, starts};
use crate::history::{
    Call, ContainerState, EventArrival, EventKind, Request, SandboxState, Seq, SubjectKind,
};

/// The messages that are judged by a life, which decides what is evidence beside the calls.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Judged {
    /// Snapshots: by all answers, earlier and later ones.
    Snapshots,
    /// Answers: by earlier answers and by the object's own events.
    Answers,
}

/// The life of a sandbox or container of the case.
pub(super) struct Life<'i, 'a> {
    pub(super) object: &'i Object<'a>,
    /// The times at which it was created, ran or was ready, ended and was deleted.
    reached: [Point; 4],
}

/// A state of an object in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    Created,
    Running,
    Exited,
    Ready,
    NotReady,
    /// It exists, in any state.
    Unknown,
    Absent,
}

/// The time at which a message was read: for a snapshot, not before the event's cause.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read {
    pub(super) at: Point,
    pub(super) cause: Option<Point>,
}

/// Why a message cannot show a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contradiction {
    /// The state was over, or the object, which exists, is absent.
    Stale,
    /// The state began later.
    Premature,
}

impl<'i, 'a> Life<'i, 'a> {
    /// `None` for an object that no call of the case created, unless it is foreign, or that is
    /// neither a container nor a sandbox.
    pub(super) fn new(
        object: &'i Object<'a>,
        objects: &Objects<'a>,
        judged: Judged,
        order: &mut Order,
    ) -> Option<Self> {
        let sandbox = objects.sandbox_of(object);
        let reached = match &object.subject.kind {
            SubjectKind::Stray => return None,
            _ if object.creation.is_none() && !objects.are_foreign() => return None,
            SubjectKind::Sandbox(_) => of_sandbox(object, order),
            SubjectKind::Container(_) => of_container(object, sandbox, order),
        };
        let life = Self { object, reached };
        for statement in &object.statements {
            if let Source::Call(call, ended) = statement.source {
                life.narrow(statement, call, ended.seq, judged, order);
            }
        }
        if judged == Judged::Answers {
            // DELETED can be sent before an object is removed from the lists.
            for arrival in &object.subject.arrivals {
                let kind = arrival.event().kind;
                let reached = life.reached(kind).filter(|_| kind != EventKind::Deleted);
                if let Some(at) = reached {
                    order.before(at, arrival.seq());
                }
            }
        }
        for pair in reached.windows(2) {
            order.not_before(pair[1], pair[0]);
        }
        Some(life)
    }

    /// Narrows the times at which states were reached by an answer.
    fn narrow(
        &self,
        statement: &Statement<'_>,
        call: &Call,
        ended: Seq,
        judged: Judged,
        order: &mut Order,
    ) {
        let [_, running, over, gone] = self.reached;
        let began = call.began().seq;
        let shown = Shown::of(statement);
        match shown {
            // Before it was ready, a sandbox is not ready, too.
            Shown::NotReady if self.object.creation.and_then(returned) >= Some(began) => {}
            Shown::Exited | Shown::NotReady => order.before(over, ended),
            Shown::Running => order.before(running, ended),
            _ => {}
        }
        if judged == Judged::Snapshots {
            order.after(gone, began);
            match shown {
                Shown::Created => order.after(running, began),
                Shown::Running | Shown::Ready => order.after(over, began),
                _ => {}
            }
        }
    }
}

fn of_sandbox(object: &Object<'_>, order: &mut Order) -> [Point; 4] {
    let (began, made) = creation(object);
    let created = order.point(began, made);
    let ready = order.point(began, made);
    // A sandbox may exit on its own.
    let not_ready = order.point(began, None);
    let gone = gone(
        object,
        object.calls.iter().copied().filter(|call| removes(call)),
        order,
    );
    let stops = object.calls.iter().filter(|call| stops(call));
    stops
        .filter_map(|call| returned(call))
        .for_each(|ended| order.before(not_ready, ended));
    [created, ready, not_ready, gone]
}

fn of_container(
    object: &Object<'_>,
    sandbox: Option<&Object<'_>>,
    order: &mut Order,
) -> [Point; 4] {
    let (began, made) = creation(object);
    let created = order.point(began, made);
    let started = object.start.and_then(returned);
    let mut from = object
        .calls
        .iter()
        .find(|call| starts(call))
        .map(|call| call.began().seq);
    if started.is_none() {
        // A call may end a container that never ran.
        let with_sandbox = sandbox.and_then(|sandbox| sandbox.ending);
        let ends = [from, object.ending, object.may_be_gone, with_sandbox];
        from = ends.into_iter().flatten().min();
    }
    let running = match from {
        _ if object.creation.is_none() => order.point(Seq::default(), None),
        Some(began) => order.point(began, started),
        None => order.never(),
    };
    let exited = order.point(began, None);
    let with_sandbox = sandbox.into_iter().flat_map(|sandbox| &sandbox.calls);
    let all = object.calls.iter().chain(with_sandbox).copied();
    // A runtime may remove a container that it could not start.
    let removals = all
        .clone()
        .filter(|call| removes(call) || failed_to_start(call));
    let gone = gone(object, removals, order);
    let after_start = |call: &&Call| started.is_some_and(|started| started < call.began().seq);
    let stops = all.filter(|call| stops(call)).filter(after_start);
    stops
        .filter_map(returned)
        .for_each(|ended| order.before(exited, ended));
    [created, running, exited, gone]
}

/// The begin and the end of the creation.
fn creation(object: &Object<'_>) -> (Seq, Option<Seq>) {
    let creation = object.creation;
    let began = creation.map(|call| call.began().seq);
    (began.unwrap_or_default(), creation.and_then(returned))
}

/// The end of a call that succeeded.
fn returned(call: &Call) -> Option<Seq> {
    let ended = call
        .ended()
        .filter(|_| matches!(call.result(), Some(Ok(_))));
    ended.map(|ended| ended.seq)
}

fn stops(call: &Call) -> bool {
    matches!(
        call.request(),
        Request::StopContainer { .. } | Request::StopSandbox(_)
    )
}

/// The time at which an object was deleted: calls have removed it, or its DELETED was sent before
/// any of them began.
fn gone<'a>(
    object: &Object<'_>,
    removals: impl Iterator<Item = &'a Call> + Clone,
    order: &mut Order,
) -> Point {
    let first = removals.clone().map(|call| call.began().seq).min();
    let deleted = object.subject.first(EventKind::Deleted);
    match (first, deleted.map(EventArrival::seq)) {
        (Some(first), deleted) if deleted.is_none_or(|deleted| first < deleted) => {
            // One that is being created meanwhile may stay.
            let made = object.creation.and_then(returned);
            let removals = removals.filter(|call| made.is_some_and(|made| made < call.began().seq));
            order.point(first, removals.filter_map(returned).min())
        }
        (None, None) if object.creation.is_some() => order.never(),
        _ => order.point(Seq::default(), None),
    }
}

impl Life<'_, '_> {
    /// The time at which it reached the state that an event reports.
    pub(super) fn reached(&self, event: EventKind) -> Option<Point> {
        Some(self.reached[usize::from(rank(event)?)])
    }

    /// Requires that the object was in this state at the time of a snapshot. It is absent before
    /// and after its life, and a sandbox not ready before and after it was ready: which of the two
    /// applies stays open unless the bounds decide it.
    pub(super) fn require(&self, shown: Shown, read: Read, order: &mut Order) {
        let [created, .., gone] = self.reached;
        let Some((reached, left)) = self.alternative(shown) else {
            let (since, until) = self.span(shown);
            order.not_before(read.at, since);
            order.strictly_after(until, read.at);
            return;
        };
        if read.cause == Some(reached) || order.is_not_before(read.at, reached) {
            order.not_before(read.at, left);
        } else if order.is_not_before(left, read.at) {
            order.strictly_after(reached, read.at);
        }
        if shown == Shown::NotReady {
            order.not_before(read.at, created);
            order.strictly_after(gone, read.at);
        }
    }

    /// Whether bounds alone exclude this state at the time of a message.
    pub(super) fn contradicts(
        &self,
        shown: Shown,
        read: Read,
        order: &Order,
    ) -> Option<Contradiction> {
        let (since, until) = self.span(shown);
        if let Some((reached, left)) = self.alternative(shown) {
            let was = read.cause == Some(reached) || order.is_not_before(read.at, reached);
            if was && order.is_after(left, read.at) {
                return Some(match shown {
                    Shown::Absent => Contradiction::Stale,
                    _ => Contradiction::Premature,
                });
            }
        } else if order.is_after(since, read.at) {
            return Some(Contradiction::Premature);
        }
        let is_over = shown != Shown::Absent && order.is_not_before(read.at, until);
        is_over.then_some(Contradiction::Stale)
    }

    /// The entry after which it was in a state for as long as an answer was read, which a later
    /// answer can prove, too; `None` if it may have been in another one.
    pub(super) fn certain_since(
        &self,
        state: Shown,
        (read, ended): (Point, Seq),
        order: &Order,
    ) -> Option<Seq> {
        let (since, until) = self.span(state);
        let statements = self.object.statements.iter();
        let mut later = statements.filter(|one| !one.is_of_event() && one.began() > ended);
        let is_still = order.is_after(until, read) || later.any(|one| Shown::of(one) == state);
        (is_still && order.is_not_before(read, since)).then(|| order.entry_after(since))
    }

    /// The entry that proves a contradiction.
    pub(super) fn proof(&self, shown: Shown, wrong: Contradiction, order: &Order) -> Seq {
        let (since, until) = self.alternative(shown).unwrap_or_else(|| self.span(shown));
        match (wrong, shown) {
            (Contradiction::Premature, Shown::NotReady) => order.entry_before(until),
            (Contradiction::Premature, _) => order.entry_before(since),
            (Contradiction::Stale, Shown::Absent) => order.entry_after(since),
            (Contradiction::Stale, Shown::NotReady) => order.entry_after(self.reached[3]),
            (Contradiction::Stale, _) => order.entry_after(until),
        }
    }

    /// The two points between which a repeatable state does not hold, the first and the last of a
    /// life: absent until created and after deletion, not ready until ready and afterwards.
    fn alternative(&self, shown: Shown) -> Option<(Point, Point)> {
        let [created, ready, not_ready, gone] = self.reached;
        match shown {
            Shown::Absent => Some((created, gone)),
            Shown::NotReady => Some((ready, not_ready)),
            _ => None,
        }
    }

    /// The points at which the object reached and left a state; for its absence, its whole life.
    fn span(&self, shown: Shown) -> (Point, Point) {
        let [created, running, ended, gone] = self.reached;
        match shown {
            Shown::Created => (created, running),
            Shown::Running | Shown::Ready => (running, ended),
            Shown::Exited | Shown::NotReady => (ended, gone),
            Shown::Unknown | Shown::Absent => (created, gone),
        }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Created => "CREATED",
            Self::Running => "RUNNING",
            Self::Ready => "READY",
            Self::Exited => "EXITED",
            Self::NotReady => "NOTREADY",
            Self::Unknown => "UNKNOWN",
            Self::Absent => "absent",
        })
    }
}

impl Shown {
    pub(super) fn of(statement: &Statement<'_>) -> Self {
        Self::in_message(statement.message)
    }

    pub(crate) fn in_message(message: Message<'_>) -> Self {
        let container = match message {
            Message::Status(status) => status.state,
            Message::Item(item) => item.state,
            Message::Sandbox(status) => return Self::of_sandbox(status.state),
            Message::SandboxItem(item) => return Self::of_sandbox(item.state),
        };
        Self::of_container(container)
    }

    pub(super) fn of_container(state: ContainerState) -> Self {
        match state {
            ContainerState::Created => Self::Created,
            ContainerState::Running => Self::Running,
            ContainerState::Exited => Self::Exited,
            ContainerState::Unknown(_) => Self::Unknown,
        }
    }

    pub(super) fn of_sandbox(state: SandboxState) -> Self {
        match state {
            SandboxState::Ready => Self::Ready,
            SandboxState::NotReady => Self::NotReady,
            SandboxState::Unknown(_) => Self::Unknown,
        }
    }
}

/// The position of an event in the order of a container's events.
pub(super) fn rank(kind: EventKind) -> Option<u8> {
    match kind {
        EventKind::Created => Some(0),
        EventKind::Started => Some(1),
        EventKind::Stopped => Some(2),
        EventKind::Deleted => Some(3),
        EventKind::Unknown(_) => None,
    }
}

/// The position of a state in the order of a container's states; `None` if the CRI does not define
/// it.
pub(super) fn progress(state: ContainerState) -> Option<u8> {
    match state {
        ContainerState::Created => Some(0),
        ContainerState::Running => Some(1),
        ContainerState::Exited => Some(2),
        ContainerState::Unknown(_) => None,
    }
}
