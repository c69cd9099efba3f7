//! The transitions caused by calls: a call that succeeded proves them as a list does.

use std::collections::BTreeMap;

use crate::history::{
    Body, Call, CaseHistory, ContainerId, Entry, EventKind, Reply, Request, SandboxId, Seq,
    StepsEnd, SubscriptionId,
};
use crate::limits;

/// The first call that proves a transition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transition<'a> {
    pub(crate) needed: EventKind,
    /// The call's name in the CRI.
    pub(crate) method: &'static str,
    pub(crate) began: &'a Entry,
    pub(crate) ended: &'a Entry,
}

/// A container whose creation has succeeded, and its transitions caused by calls so far.
struct Course<'a> {
    sandbox: &'a SandboxId,
    /// The begin of its creation.
    since: Seq,
    made: Seq,
    started: Option<Seq>,
    transitions: Vec<Transition<'a>>,
}

impl<'a> Course<'a> {
    fn goes_through(&mut self, needed: EventKind, call: &'a Call, ended: &'a Entry) {
        let mut known = self.transitions.iter();
        if known.any(|transition| transition.needed == needed) {
            return;
        }
        self.transitions.push(Transition {
            needed,
            method: call.request().method(),
            began: call.began(),
            ended,
        });
    }

    /// Adds the STOPPED that is due if the container was running when a call began that stops it.
    fn ends(&mut self, call: &'a Call, ended: &'a Entry) {
        if self.started.is_some_and(|at| at < call.began().seq) {
            self.goes_through(EventKind::Stopped, call, ended);
        }
    }

    fn is_in(&self, sandbox: &SandboxId, call: &Call) -> bool {
        self.sandbox == sandbox && self.made < call.began().seq
    }
}

/// The transitions of each container that the calls of the case's steps have caused and a stream
/// could report: it was live from the begin of the container's creation until the event's deadline
/// after the call. At the end of complete steps the driver has waited for it.
pub(super) fn transitions<'a>(
    history: &'a CaseHistory,
    streams: &Streams<'_>,
) -> BTreeMap<&'a ContainerId, Vec<Transition<'a>>> {
    let bound = history.scaled(limits::EVENT_WAIT);
    let waited = history.steps_end() == Some(&StepsEnd::Complete);
    let mut containers = BTreeMap::<&ContainerId, Vec<Transition<'_>>>::new();
    for (id, mut course) in courses(history) {
        let since = course.since;
        course.transitions.retain(|transition| {
            let listening = |entry: &Entry| {
                let in_time = entry.at.since(transition.ended.at) <= bound;
                in_time && (history.within_steps(entry.seq) || !waited)
            };
            streams.live(since, listening)
        });
        containers.insert(id, course.transitions);
    }
    containers
}

fn courses(history: &CaseHistory) -> BTreeMap<&ContainerId, Course<'_>> {
    let mut courses = BTreeMap::<&ContainerId, Course<'_>>::new();
    for call in history.calls().filter(|call| !call.is_of_run()) {
        let (Some(ended), Some(Ok(reply))) = (call.ended(), call.result()) else {
            continue;
        };
        if !history.within_steps(ended.seq) {
            continue;
        }
        match (call.request(), reply) {
            (Request::CreateContainer(spec), Reply::Container(id)) => {
                let mut course = Course {
                    sandbox: &spec.sandbox,
                    since: call.began().seq,
                    made: ended.seq,
                    started: None,
                    transitions: Vec::new(),
                };
                course.goes_through(EventKind::Created, call, ended);
                courses.insert(id, course);
            }
            (Request::StartContainer(id), _) => {
                if let Some(course) = courses.get_mut(id) {
                    course.started.get_or_insert(ended.seq);
                    course.goes_through(EventKind::Started, call, ended);
                }
            }
            (Request::StopContainer { container, .. }, _) => {
                if let Some(course) = courses.get_mut(container) {
                    course.ends(call, ended);
                }
            }
            (Request::RemoveContainer(id), _) => {
                if let Some(course) = courses.get_mut(id) {
                    course.ends(call, ended);
                    course.goes_through(EventKind::Deleted, call, ended);
                }
            }
            (Request::StopSandbox(sandbox), _) => {
                let inside = courses
                    .values_mut()
                    .filter(|course| course.is_in(sandbox, call));
                inside.for_each(|course| course.ends(call, ended));
            }
            (Request::RemoveSandbox(sandbox), _) => {
                let inside = courses
                    .values_mut()
                    .filter(|course| course.is_in(sandbox, call));
                inside.for_each(|course| {
                    course.ends(call, ended);
                    course.goes_through(EventKind::Deleted, call, ended);
                });
            }
            _ => {}
        }
    }
    courses
}

/// The entries about streams while a case ran.
pub(crate) struct Streams<'a>(Vec<&'a Entry>);

impl<'a> Streams<'a> {
    pub(super) fn new(history: &'a CaseHistory) -> Self {
        let entries = history.entries().iter().map(AsRef::as_ref);
        let of_streams = entries.filter(|entry| subscription(entry).is_some());
        Self(of_streams.collect())
    }

    /// Whether a stream was live at an entry, and no stream was opened or ended while `listening`.
    pub(crate) fn live(&self, since: Seq, listening: impl Fn(&Entry) -> bool) -> bool {
        let (before, after) = self
            .0
            .split_at(self.0.partition_point(|entry| entry.seq < since));
        if after.iter().any(|entry| listening(entry)) {
            return false;
        }
        // Before a case begins its stream is proven, and that may stand before its history.
        let opened = |entry: &&&Entry| matches!(entry.body, Body::SubscriptionOpened { .. });
        match before.iter().rev().find(opened) {
            None => before.is_empty(),
            Some(opened) => {
                let same = |entry: &&&Entry| subscription(entry) == subscription(opened);
                let last = before.iter().rev().find(same);
                last.is_some_and(|last| matches!(last.body, Body::SubscriptionProven { .. }))
            }
        }
    }
}

fn subscription(entry: &Entry) -> Option<SubscriptionId> {
    match entry.body {
        Body::SubscriptionOpened { subscription, .. }
        | Body::SubscriptionProven { subscription }
        | Body::SubscriptionEnded { subscription, .. } => Some(subscription),
        _ => None,
    }
}
