//! An index of a case's history for rules and checks.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use super::invariants::Invariant;
use super::objects::{Object, Objects};
use super::transition::{Streams, Transition, transitions};
use crate::history::{
    Call, CaseHistory, ContainerId, EventArrival, Seq, Subject, SubjectKind, SubscriptionId,
};
use crate::outcome::{Fact, Violation};

/// An index of a case's history. Each part is built on first use.
pub struct Index<'a> {
    pub history: &'a CaseHistory,
    objects: OnceCell<Objects<'a>>,
    sandbox_events: OnceCell<BTreeMap<SandboxStream<'a>, Vec<SandboxEvent<'a>>>>,
    streams: OnceCell<Streams<'a>>,
    transitions: OnceCell<BTreeMap<&'a ContainerId, Vec<Transition<'a>>>>,
    broken: RefCell<BTreeMap<&'static str, Rc<Vec<Violation>>>>,
}

pub(super) type SandboxStream<'a> = (&'a str, SubscriptionId);

/// An event about a sandbox or one of its containers.
pub(super) type SandboxEvent<'a> = (&'a Subject, &'a EventArrival);

impl<'a> Index<'a> {
    pub fn new(history: &'a CaseHistory) -> Self {
        Self {
            history,
            objects: OnceCell::new(),
            sandbox_events: OnceCell::new(),
            streams: OnceCell::new(),
            transitions: OnceCell::new(),
            broken: RefCell::default(),
        }
    }

    /// The containers and sandboxes, with all that calls and events say of them.
    pub(crate) fn objects(&self) -> &Objects<'a> {
        self.objects.get_or_init(|| Objects::new(self.history))
    }

    /// `None` if no subject has this id.
    pub(crate) fn object(&self, id: &ContainerId) -> Option<&Object<'a>> {
        self.objects().get(id.as_str())
    }

    /// The violations of a rule, which is judged once: several checks may name it.
    pub(super) fn broken(&self, rule: &Invariant) -> Rc<Vec<Violation>> {
        let known = self.broken.borrow().get(rule.id).cloned();
        known.unwrap_or_else(|| {
            let found = Rc::new((rule.check)(rule, self));
            self.broken.borrow_mut().insert(rule.id, found.clone());
            found
        })
    }

    /// The call that an entry begins or ends, or the event that it records; and the entry.
    pub(super) fn cause(&self, seq: Seq) -> (Fact, Option<Seq>) {
        let mut calls = self.history.calls();
        let of_entry = |call: &&Call| {
            let ended = call.ended().map(|ended| ended.seq);
            call.began().seq == seq || ended == Some(seq)
        };
        let call = calls.find(of_entry);
        let subjects = self.history.subjects().iter();
        let mut arrivals = subjects.flat_map(|subject| &subject.arrivals);
        let mut event = || arrivals.find(|arrival| arrival.seq() == seq);
        let cause = call.map(|call| call.request().method().to_owned());
        let cause = cause.or_else(|| event().map(|event| event.event().kind.to_string()));
        let entry = cause.is_some().then_some(seq);
        let none = || "a call that causes it".to_owned();
        (Fact::Cause(cause.unwrap_or_else(none)), entry)
    }

    /// The events about each sandbox and its containers on each stream, in order of arrival.
    pub(super) fn sandbox_events(&self) -> &BTreeMap<SandboxStream<'a>, Vec<SandboxEvent<'a>>> {
        self.sandbox_events
            .get_or_init(|| sandbox_events(self.history))
    }

    pub(super) fn streams(&self) -> &Streams<'a> {
        self.streams.get_or_init(|| Streams::new(self.history))
    }

    /// The transitions of a container that calls have made.
    pub(crate) fn transitions(&self, id: &ContainerId) -> &[Transition<'a>] {
        let made = self
            .transitions
            .get_or_init(|| transitions(self.history, self.objects(), self.streams()));
        made.get(id).map_or(&[], Vec::as_slice)
    }
}

fn sandbox_events(history: &CaseHistory) -> BTreeMap<SandboxStream<'_>, Vec<SandboxEvent<'_>>> {
    let mut sandboxes = BTreeMap::<_, Vec<_>>::new();
    for subject in history.subjects() {
        let sandbox = match &subject.kind {
            SubjectKind::Sandbox(_) => subject.id.as_str(),
            SubjectKind::Container(spec) => spec.sandbox.as_str(),
            SubjectKind::Stray => continue,
        };
        for arrival in &subject.arrivals {
            let place = (sandbox, arrival.subscription());
            let events = sandboxes.entry(place).or_default();
            events.push((subject, arrival));
        }
    }
    for events in sandboxes.values_mut() {
        events.sort_by_key(|(_, arrival)| arrival.seq());
    }
    sandboxes
}
