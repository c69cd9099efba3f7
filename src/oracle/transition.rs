//! The transitions caused by calls: a call that succeeded proves them as a list does.

use std::collections::BTreeMap;

use super::objects::{Object, Objects, removes, starts};
use crate::history::{
    Body, Call, CaseHistory, ContainerId, Entry, EventKind, Seq, StepsEnd, SubjectKind,
    SubscriptionId,
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

/// The transitions of each container and sandbox that the calls of the case's steps have caused and
/// a stream could report: it was live from the begin of the object's creation until the event's
/// deadline after the call. At the end of complete steps the driver has waited for it.
pub(super) fn transitions<'a>(
    history: &CaseHistory,
    objects: &Objects<'a>,
    streams: &Streams<'_>,
) -> BTreeMap<&'a ContainerId, Vec<Transition<'a>>> {
    let bound = history.scaled(limits::EVENT_WAIT);
    let waited = history.steps_end() == Some(&StepsEnd::Complete);
    let by_object = objects.iter().filter_map(|object| {
        let creation = object.creation.filter(|call| !call.is_of_run())?;
        let since = creation.began().seq;
        let mut made = caused(history, object, objects.sandbox_of(object));
        made.retain(|transition| {
            let listening = |entry: &Entry| {
                let in_time = entry.at.since(transition.ended.at) <= bound;
                in_time && (history.within_steps(entry.seq) || !waited)
            };
            streams.live(since, listening)
        });
        Some((&object.subject.id, made))
    });
    by_object.collect()
}

/// The transitions that calls of the steps have caused: each by the first that proves it.
fn caused<'a>(
    history: &CaseHistory,
    object: &Object<'a>,
    sandbox: Option<&Object<'a>>,
) -> Vec<Transition<'a>> {
    // A sandbox that is made runs.
    let start = match (&object.subject.kind, sandbox) {
        (SubjectKind::Sandbox(_), _) => object.creation,
        (SubjectKind::Container(_), Some(_)) => object.start,
        _ => return Vec::new(),
    };
    let ended = |call: &'a Call| {
        let succeeded = matches!(call.result(), Some(Ok(_))) && !call.is_of_run();
        let ended = call.ended().filter(|_| succeeded)?;
        history.within_steps(ended.seq).then_some(ended)
    };
    let by = |needed, call: Option<&'a Call>| {
        let ended = ended(call?)?;
        Some(Transition {
            needed,
            method: call?.request().method(),
            began: call?.began(),
            ended,
        })
    };
    let created = object.creation.and_then(ended).map(|ended| ended.seq);
    let started = start.and_then(ended).map(|ended| ended.seq);
    let after = |since: Option<Seq>, call: &Call| since.is_some_and(|at| at < call.began().seq);
    let of_sandbox = sandbox.into_iter().flat_map(|sandbox| &sandbox.calls);
    let mut ends: Vec<&Call> = object.calls.iter().chain(of_sandbox).copied().collect();
    ends.sort_by_key(|call| call.began().seq);
    let mut ends = ends.into_iter().filter(|call| ended(call).is_some());
    let mut stops = ends.clone().filter(|call| !starts(call));
    let deleted = ends.find(|call| removes(call) && after(created, call));
    let all = [
        by(EventKind::Created, object.creation),
        by(EventKind::Started, start),
        by(EventKind::Stopped, stops.find(|call| after(started, call))),
        by(EventKind::Deleted, deleted),
    ];
    all.into_iter().flatten().collect()
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
