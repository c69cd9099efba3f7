//! The sandbox and the containers of a snapshot, and when they reached their states.

use std::collections::BTreeMap;
use std::fmt;

use super::order::{Order, Point};
use crate::history::{
    Call, CaseHistory, ContainerState, EventArrival, EventKind, Reply, Request, SandboxState, Seq,
    Subject, SubjectKind,
};
use crate::oracle::index::{Index, Source};
use crate::outcome::Kind;

/// A sandbox or container of the case.
pub(super) struct Part<'a> {
    pub(super) subject: &'a Subject,
    /// The times at which it was created, ran, ended and was deleted.
    pub(super) reached: [Point; 4],
}

/// A state of a part in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    Created,
    Running,
    Exited,
    Ready,
    NotReady,
    /// It exists, in any state.
    Present,
    Absent,
}

/// The time of an event's snapshot: not before the event's cause.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read {
    pub(super) at: Point,
    pub(super) cause: Option<Point>,
}

pub(super) struct Calls<'a>(BTreeMap<&'a str, Vec<Done>>);

/// A call: its begin, and its end if it succeeded.
#[derive(Clone, Copy)]
struct Done {
    what: What,
    began: Seq,
    succeeded: Option<Seq>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Run,
    Start,
    Stop,
    Remove,
    Show(SandboxState),
}

impl<'a> Calls<'a> {
    pub(super) fn new(history: &'a CaseHistory) -> Self {
        let mut calls = Self(BTreeMap::new());
        for call in history.calls() {
            match (call.request(), call.result()) {
                (Request::RunSandbox(_), Some(Ok(Reply::Sandbox(made)))) => {
                    calls.add(made.as_str(), What::Run, call);
                }
                (Request::StartContainer(on), _) => calls.add(on.as_str(), What::Start, call),
                (Request::StopContainer { container: on, .. }, _) => {
                    calls.add(on.as_str(), What::Stop, call);
                }
                (Request::RemoveContainer(on), _) => calls.add(on.as_str(), What::Remove, call),
                (Request::StopSandbox(on), _) => calls.add(on.as_str(), What::Stop, call),
                (Request::RemoveSandbox(on), _) => calls.add(on.as_str(), What::Remove, call),
                (_, Some(Ok(Reply::SandboxStatus(report)))) => {
                    let status = &report.status;
                    calls.add(status.id.as_str(), What::Show(status.state), call);
                }
                (_, Some(Ok(Reply::Sandboxes(listed)))) => {
                    for listing in listed {
                        calls.add(listing.id.as_str(), What::Show(listing.state), call);
                    }
                }
                _ => {}
            }
        }
        calls
    }

    fn add(&mut self, id: &'a str, what: What, call: &Call) {
        self.0.entry(id).or_default().push(Done::new(what, call));
    }

    fn about(&self, id: &str) -> &[Done] {
        self.0.get(id).map_or(&[], Vec::as_slice)
    }
}

impl Done {
    fn new(what: What, call: &Call) -> Self {
        let has_succeeded = matches!(call.result(), Some(Ok(_)));
        let ended = call.ended().filter(|_| has_succeeded);
        Self {
            what,
            began: call.began().seq,
            succeeded: ended.map(|ended| ended.seq),
        }
    }
}

impl<'a> Part<'a> {
    /// A sandbox or container as shown by the calls alone; `None` if no call of the case created
    /// it.
    pub(super) fn new(
        subject: &'a Subject,
        index: &Index<'a>,
        calls: &Calls<'_>,
        order: &mut Order,
    ) -> Option<Self> {
        let reached = match &subject.kind {
            SubjectKind::Sandbox(_) => reached_by_sandbox(subject, calls, order)?,
            SubjectKind::Container(spec) => {
                let with = spec.sandbox.as_str();
                reached_by_container(subject, with, index, calls, order)?
            }
            SubjectKind::Stray => return None,
        };
        for pair in reached.windows(2) {
            order.not_before(pair[1], pair[0]);
        }
        Some(Self { subject, reached })
    }
}

fn reached_by_sandbox(
    subject: &Subject,
    calls: &Calls<'_>,
    order: &mut Order,
) -> Option<[Point; 4]> {
    let calls = calls.about(subject.id.as_str());
    let made = calls.iter().find(|done| done.what == What::Run)?;
    let created = order.point(made.began, made.succeeded);
    let ready = order.point(made.began, made.succeeded);
    // A sandbox may exit on its own.
    let not_ready = order.point(made.began, None);
    let gone = gone(
        subject,
        calls.iter().filter(|done| done.what == What::Remove),
        order,
    );
    for done in calls {
        let Some(ended) = done.succeeded else {
            continue;
        };
        match done.what {
            What::Stop => order.before(not_ready, ended),
            What::Show(state) => {
                order.after(gone, done.began);
                match state {
                    SandboxState::Ready => order.after(not_ready, done.began),
                    // Before that it need not have been READY.
                    SandboxState::NotReady if made.succeeded < Some(done.began) => {
                        order.before(not_ready, ended);
                    }
                    SandboxState::NotReady | SandboxState::Unknown(_) => {}
                }
            }
            What::Run | What::Start | What::Remove => {}
        }
    }
    Some([created, ready, not_ready, gone])
}

fn reached_by_container(
    subject: &Subject,
    sandbox: &str,
    index: &Index<'_>,
    calls: &Calls<'_>,
    order: &mut Order,
) -> Option<[Point; 4]> {
    let life = index.container(&subject.id)?;
    let made = Done::new(What::Run, life.creation?);
    let (own, with) = (calls.about(subject.id.as_str()), calls.about(sandbox));
    let created = order.point(made.began, made.succeeded);
    let starts = own.iter().filter(|done| done.what == What::Start);
    let started = starts.clone().find_map(|done| done.succeeded);
    let mut began = starts.map(|done| done.began).min();
    if started.is_none() {
        // A call may end a container that never ran.
        let with_sandbox = index.sandbox(sandbox).and_then(|life| life.ending);
        let ends = [began, life.ending, life.may_be_gone, with_sandbox];
        began = ends.into_iter().flatten().min();
    }
    let running = match began {
        Some(began) => order.point(began, started),
        None => order.never(),
    };
    let exited = order.point(made.began, None);
    // A runtime may remove a container that it could not start.
    let failed = |done: &&Done| done.what == What::Start && done.succeeded.is_none();
    let all = own.iter().chain(with);
    let removals = all
        .clone()
        .filter(|done| done.what == What::Remove || failed(done));
    let gone = gone(subject, removals, order);
    let stops = all.filter(|done| done.what == What::Stop);
    for stop in stops.filter(|stop| started.is_some_and(|started| started < stop.began)) {
        stop.succeeded
            .into_iter()
            .for_each(|ended| order.before(exited, ended));
    }
    for reading in index.readings(&subject.id) {
        let (Source::List(call) | Source::Status(call, _)) = reading.source else {
            continue;
        };
        let (began, ended) = (call.began.seq, call.ended.seq);
        order.after(gone, began);
        match reading.state {
            ContainerState::Created => order.after(running, began),
            ContainerState::Running => {
                order.before(running, ended);
                order.after(exited, began);
            }
            ContainerState::Exited => order.before(exited, ended),
            ContainerState::Unknown(_) => {}
        }
    }
    Some([created, running, exited, gone])
}

/// The time at which a part was deleted: calls have removed it, or its DELETED was sent before any
/// of them began.
fn gone<'a>(
    subject: &Subject,
    removals: impl Iterator<Item = &'a Done> + Clone,
    order: &mut Order,
) -> Point {
    let first = removals.clone().map(|done| done.began).min();
    let deleted = subject.first(EventKind::Deleted).map(EventArrival::seq);
    match (first, deleted) {
        (Some(first), deleted) if deleted.is_none_or(|deleted| first < deleted) => {
            order.point(first, removals.filter_map(|done| done.succeeded).min())
        }
        (_, Some(_)) => order.point(Seq::default(), None),
        (_, None) => order.never(),
    }
}

impl Part<'_> {
    pub(super) fn is_sandbox(&self) -> bool {
        matches!(self.subject.kind, SubjectKind::Sandbox(_))
    }

    /// The time at which it reached the state that an event reports.
    pub(super) fn reached(&self, event: EventKind) -> Option<Point> {
        let nth = match event {
            EventKind::Created => 0,
            EventKind::Started => 1,
            EventKind::Stopped => 2,
            EventKind::Deleted => 3,
            EventKind::Unknown(_) => return None,
        };
        Some(self.reached[nth])
    }

    /// Requires that the part was in this state at the time of a snapshot. A part is absent before
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

    /// The kind of finding if the calls alone exclude this state of the part at the time of a
    /// snapshot. A part that is absent and should not be counts as not created yet.
    pub(super) fn contradicts(&self, shown: Shown, read: Read, order: &Order) -> Option<Kind> {
        let (since, until) = self.span(shown);
        if let Some((reached, left)) = self.alternative(shown) {
            let was = read.cause == Some(reached) || order.is_not_before(read.at, reached);
            if was && order.is_after(left, read.at) {
                return Some(match shown {
                    Shown::Absent => Kind::SnapshotStale,
                    _ => Kind::SnapshotPremature,
                });
            }
        } else if order.is_after(since, read.at) {
            return Some(Kind::SnapshotPremature);
        }
        let is_over = shown != Shown::Absent && order.is_not_before(read.at, until);
        is_over.then_some(Kind::SnapshotStale)
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

    /// The points at which the part reached and left a state; for its absence, its whole life.
    fn span(&self, shown: Shown) -> (Point, Point) {
        let [created, running, ended, gone] = self.reached;
        match shown {
            Shown::Created => (created, running),
            Shown::Running | Shown::Ready => (running, ended),
            Shown::Exited | Shown::NotReady => (ended, gone),
            Shown::Present | Shown::Absent => (created, gone),
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
            Self::Present => "present",
            Self::Absent => "absent",
        })
    }
}

impl Shown {
    pub(super) fn of_container(state: ContainerState) -> Self {
        match state {
            ContainerState::Created => Self::Created,
            ContainerState::Running => Self::Running,
            ContainerState::Exited => Self::Exited,
            ContainerState::Unknown(_) => Self::Present,
        }
    }

    pub(super) fn of_sandbox(state: SandboxState) -> Self {
        match state {
            SandboxState::Ready => Self::Ready,
            SandboxState::NotReady => Self::NotReady,
            SandboxState::Unknown(_) => Self::Present,
        }
    }
}
