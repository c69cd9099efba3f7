//! An index of a case's history for rules and checks: the life of each container and sandbox, the
//! states that calls and events have shown, and the transitions that calls made.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use super::statements::{Object, objects};
use super::transition::{Streams, Transition, transitions};
use crate::history::{
    Call, CaseHistory, ContainerId, ContainerState, ContainerStatus, Entry, EventArrival,
    EventKind, Reply, Request, SandboxId, Seq, Subject, SubjectKind, SubscriptionId,
};

/// An index of a case's history. Each part is built on first use.
pub struct Index<'a> {
    pub history: &'a CaseHistory,
    lives: OnceCell<Lives<'a>>,
    readings: OnceCell<BTreeMap<&'a ContainerId, Vec<Reading<'a>>>>,
    sandbox_events: OnceCell<BTreeMap<SandboxStream<'a>, Vec<SandboxEvent<'a>>>>,
    streams: OnceCell<Streams<'a>>,
    transitions: OnceCell<BTreeMap<&'a ContainerId, Vec<Transition<'a>>>>,
    objects: OnceCell<Vec<Object<'a>>>,
}

pub(super) type SandboxStream<'a> = (&'a str, SubscriptionId);

/// An event about a sandbox or one of its containers.
pub(super) type SandboxEvent<'a> = (&'a Subject, &'a EventArrival);

/// The life of a container, as the calls and the events of the case show it.
#[derive(Default)]
pub(super) struct ContainerLife<'a> {
    pub(super) subject: Option<&'a Subject>,
    /// The call that created it.
    pub(super) creation: Option<&'a Call>,
    pub(super) is_started: bool,
    /// The begin of the first call that ends its process, or that may have failed to start it.
    pub(super) ending: Option<Seq>,
    /// The entry from which it may be deleted: the begin of its removal or its sandbox's, or of a
    /// start that did not succeed, after which a runtime may remove it; or its DELETED. For a
    /// foreign container, the begin of the last list that shows it.
    pub(super) may_be_gone: Option<Seq>,
    /// The return of the last call that removed it.
    pub(super) removed: Option<Seq>,
}

#[derive(Default)]
pub(super) struct SandboxLife<'a> {
    pub(super) subject: Option<&'a Subject>,
    /// The begin of the first call that stops or removes it. Other clients may do so at any time.
    pub(super) ending: Option<Seq>,
    removal: Option<Seq>,
}

#[derive(Default)]
struct Lives<'a> {
    containers: BTreeMap<&'a ContainerId, ContainerLife<'a>>,
    sandboxes: BTreeMap<&'a str, SandboxLife<'a>>,
}

/// A state of a container in a call or an event.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'a> {
    pub(crate) state: ContainerState,
    pub(crate) source: Source<'a>,
}

#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    /// `StartContainer` has succeeded, so that the container was CREATED when it began.
    Start(CallEnds<'a>),
    /// The answer of `ListContainers`.
    List(CallEnds<'a>),
    /// The answer of `ContainerStatus`.
    Status(CallEnds<'a>, &'a ContainerStatus),
    /// A snapshot of an event.
    Event(&'a EventArrival),
}

/// The begin and the end of a call.
#[derive(Clone, Copy)]
pub(crate) struct CallEnds<'a> {
    pub(crate) began: &'a Entry,
    pub(crate) ended: &'a Entry,
}

impl<'a> Index<'a> {
    pub fn new(history: &'a CaseHistory) -> Self {
        Self {
            history,
            lives: OnceCell::new(),
            readings: OnceCell::new(),
            sandbox_events: OnceCell::new(),
            streams: OnceCell::new(),
            transitions: OnceCell::new(),
            objects: OnceCell::new(),
        }
    }

    /// The life of a container; `None` if neither a call nor a subject has its id.
    pub(super) fn container(&self, id: &ContainerId) -> Option<&ContainerLife<'a>> {
        self.lives().containers.get(id)
    }

    pub(super) fn containers(&self) -> impl Iterator<Item = (&'a ContainerId, &ContainerLife<'a>)> {
        let containers = self.lives().containers.iter();
        containers
            .filter(|(_, life)| life.subject.is_some())
            .map(|(id, life)| (*id, life))
    }

    /// The life of a sandbox; `None` if neither a call nor a subject has its id.
    pub(super) fn sandbox(&self, id: &str) -> Option<&SandboxLife<'a>> {
        self.lives().sandboxes.get(id)
    }

    /// Whether a container certainly exists at an entry: no call has begun to remove it.
    pub(super) fn is_kept_at(&self, id: &ContainerId, at: Seq) -> bool {
        let gone = self.container(id).and_then(|life| life.may_be_gone);
        gone.is_none_or(|gone| at < gone)
    }

    /// The states of a container: those that calls have shown, then those of events.
    pub(crate) fn readings(&self, id: &ContainerId) -> &[Reading<'a>] {
        let readings = self.readings.get_or_init(|| readings(self.history));
        readings.get(id).map_or(&[], Vec::as_slice)
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
            .get_or_init(|| transitions(self.history, self.streams()));
        made.get(id).map_or(&[], Vec::as_slice)
    }

    /// What has been said of each container and sandbox.
    pub(super) fn objects(&self) -> &[Object<'a>] {
        self.objects.get_or_init(|| objects(self.history))
    }

    fn lives(&self) -> &Lives<'a> {
        self.lives.get_or_init(|| Lives::new(self.history))
    }
}

impl<'a> Lives<'a> {
    fn new(history: &'a CaseHistory) -> Self {
        let mut lives = Self::default();
        let foreign = history.is_of_foreign_pod();
        for call in history.calls() {
            lives.take(call);
        }
        for subject in history.subjects() {
            match &subject.kind {
                SubjectKind::Sandbox(_) => {
                    let life = lives.sandboxes.entry(subject.id.as_str()).or_default();
                    life.subject = Some(subject);
                    if foreign {
                        life.ending = Some(Seq::default());
                    }
                }
                SubjectKind::Container(spec) => {
                    let with_sandbox = lives.sandboxes.get(spec.sandbox.as_str());
                    let with_sandbox = with_sandbox.and_then(|life| life.removal);
                    let deleted = subject.first(EventKind::Deleted).map(EventArrival::seq);
                    let life = lives.containers.entry(&subject.id).or_default();
                    life.subject = Some(subject);
                    let unseen = foreign.then(|| last_listed(history, &subject.id));
                    let all = [life.may_be_gone, deleted, with_sandbox, unseen];
                    life.may_be_gone = all.into_iter().flatten().min();
                }
                SubjectKind::Stray => {}
            }
        }
        lives
    }

    fn take(&mut self, call: &'a Call) {
        let began = call.began().seq;
        let has_succeeded = matches!(call.result(), Some(Ok(_)));
        match call.request() {
            Request::CreateContainer(_) => {
                if let Some(Ok(Reply::Container(id))) = call.result() {
                    self.container(id).creation.get_or_insert(call);
                }
            }
            Request::StartContainer(id) if has_succeeded => self.container(id).is_started = true,
            Request::StartContainer(id) => {
                let life = self.container(id);
                life.ending.get_or_insert(began);
                life.may_be_gone.get_or_insert(began);
            }
            Request::StopContainer { container: id, .. } => {
                self.container(id).ending.get_or_insert(began);
            }
            Request::RemoveContainer(id) => {
                let life = self.container(id);
                life.ending.get_or_insert(began);
                life.may_be_gone.get_or_insert(began);
                let ended = call.ended().filter(|_| has_succeeded);
                life.removed = ended.map(|ended| ended.seq).or(life.removed);
            }
            Request::StopSandbox(id) => {
                self.sandbox(id).ending.get_or_insert(began);
            }
            Request::RemoveSandbox(id) => {
                let life = self.sandbox(id);
                life.ending.get_or_insert(began);
                life.removal.get_or_insert(began);
            }
            _ => {}
        }
    }

    fn container(&mut self, id: &'a ContainerId) -> &mut ContainerLife<'a> {
        self.containers.entry(id).or_default()
    }

    fn sandbox(&mut self, id: &'a SandboxId) -> &mut SandboxLife<'a> {
        self.sandboxes.entry(id.as_str()).or_default()
    }
}

impl CallEnds<'_> {
    pub(crate) fn evidence(&self) -> Vec<Seq> {
        vec![self.began.seq, self.ended.seq]
    }
}

/// The begin of the last list that shows a container; entry 0 without one.
fn last_listed(history: &CaseHistory, id: &ContainerId) -> Seq {
    let shows = |call: &&Call| match call.result() {
        Some(Ok(Reply::Containers(listed))) => listed.iter().any(|listing| listing.id == *id),
        _ => false,
    };
    let last = history.calls().rev().find(shows);
    last.map_or_else(Seq::default, |call| call.began().seq)
}

fn readings(history: &CaseHistory) -> BTreeMap<&ContainerId, Vec<Reading<'_>>> {
    let mut all = BTreeMap::<_, Vec<_>>::new();
    for call in history.calls() {
        let (Some(ended), Some(Ok(reply))) = (call.ended(), call.result()) else {
            continue;
        };
        let began = call.began();
        let ends = CallEnds { began, ended };
        let mut show = |id, state, source| {
            let of_container = all.entry(id).or_default();
            of_container.push(Reading { state, source });
        };
        match (call.request(), reply) {
            (Request::StartContainer(id), _) => {
                show(id, ContainerState::Created, Source::Start(ends));
            }
            (_, Reply::ContainerStatus(report)) => {
                let status: &ContainerStatus = &report.status;
                show(&status.id, status.state, Source::Status(ends, status));
            }
            (_, Reply::Containers(listed)) => {
                for listing in listed {
                    show(&listing.id, listing.state, Source::List(ends));
                }
            }
            _ => {}
        }
    }
    let subjects = history.subjects().iter();
    for arrival in subjects.flat_map(|subject| &subject.arrivals) {
        for status in &arrival.event().containers {
            let status: &ContainerStatus = status;
            all.entry(&status.id).or_default().push(Reading {
                state: status.state,
                source: Source::Event(arrival),
            });
        }
    }
    all
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
