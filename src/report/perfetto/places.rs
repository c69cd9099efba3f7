//! The groups of sandboxes, containers and calls, and causal links: the call that caused an event,
//! and the first list that shows the same change.
//!
//! A container that exits on its own has no causing call. A list counts if it was requested after
//! the event had arrived.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::trace::Path;
use crate::history::{
    Body, CallId, CaseRun, Entry, Event, EventKind, PodUid, Reply, Request, SandboxId,
    SandboxMetadata, Seq,
};
use crate::report::evidence::{Shown, effects, shown, subject};
use crate::report::printable::{cut, short_id};
use crate::report::timeline::attempted;

/// The maximum length of a name, in characters.
const NAME: usize = 80;

/// The group of everything outside cases.
const RUN: &str = "run";

/// The groups of all ids and calls of a history.
#[derive(Debug, Default)]
pub(super) struct Places<'a> {
    cases: BTreeMap<CaseRun, &'a str>,
    pods: BTreeMap<&'a PodUid, Option<CaseRun>>,
    calls: BTreeMap<CallId, (&'a Request, Option<CaseRun>)>,
    /// The ids of the objects that calls have created.
    made: BTreeMap<CallId, &'a str>,
    sandboxes: BTreeMap<&'a str, Path>,
    /// Each with its sandbox and its name.
    containers: BTreeMap<&'a str, (&'a str, String)>,
}

/// The links of all events of a history. An arrow has the number of its event.
#[derive(Debug, Default)]
pub(super) struct Links {
    causes: BTreeMap<Seq, CallId>,
    linked: BTreeSet<Seq>,
    by_call: BTreeMap<CallId, Vec<Seq>>,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    seq: Seq,
    kind: EventKind,
    is_sandbox: bool,
}

/// The state of the search through a history.
#[derive(Debug)]
struct Walk<'a> {
    places: &'a Places<'a>,
    links: Links,
    /// The calls that may cause an event, by the id that they name, in order.
    candidates: BTreeMap<(&'a str, EventKind), Vec<CallId>>,
    failed: BTreeSet<CallId>,
    began: BTreeMap<CallId, Seq>,
    pending: BTreeMap<&'a str, Vec<Pending>>,
}

impl<'a> Places<'a> {
    pub(super) fn new(entries: &'a [Arc<Entry>]) -> Self {
        let mut places = Self::default();
        // An event may arrive before the return of the call that created its subject.
        for entry in entries {
            places.learn_from_call(&entry.body);
        }
        for entry in entries {
            match &entry.body {
                Body::Event { event, .. } => places.learn_from_event(event),
                Body::CallEnded {
                    result: Ok(reply), ..
                } => places.learn_from_list(reply),
                _ => {}
            }
        }
        places
    }

    /// The group of a case, or the group of everything outside cases.
    pub(super) fn of_case(&self, case: Option<CaseRun>) -> Path {
        vec![case.map_or_else(
            || RUN.to_owned(),
            |case| match self.cases.get(&case) {
                Some(id) => format!("{} (execution {case})", cut(id, NAME)),
                None => format!("execution {case}"),
            },
        )]
    }

    /// The group of a sandbox or a container; `None` if unknown.
    pub(super) fn of_id(&self, id: &str) -> Option<Path> {
        let Some((sandbox, name)) = self.containers.get(id) else {
            return self.sandboxes.get(id).cloned();
        };
        let mut path = self.sandboxes.get(sandbox)?.clone();
        path.push(format!("{name} ({})", short_id(id)));
        Some(path)
    }

    /// The group of an event's subject.
    pub(super) fn of_event(&self, event: &Event) -> Path {
        let id = event.container.as_str();
        let unknown = || vec!["unknown ids".to_owned(), short_id(id)];
        self.of_id(id).unwrap_or_else(unknown)
    }

    /// The group of a call's subject: the object that it created or names, or else its case.
    pub(super) fn of_call(&self, call: CallId) -> Path {
        let Some((request, case)) = self.calls.get(&call) else {
            return self.of_case(None);
        };
        let made = self.made.get(&call).copied();
        let id = made.or_else(|| named(request));
        id.and_then(|id| self.of_id(id))
            .unwrap_or_else(|| self.of_case(*case))
    }

    /// The request of a call, if the history has its beginning.
    pub(super) fn request(&self, call: CallId) -> Option<&'a Request> {
        self.calls.get(&call).map(|(request, _)| *request)
    }

    /// The id of the object that a call created.
    pub(super) fn made(&self, call: CallId) -> Option<&'a str> {
        self.made.get(&call).copied()
    }

    pub(super) fn sandbox_of(&self, id: &str) -> Option<&'a str> {
        self.containers.get(id).map(|(sandbox, _)| *sandbox)
    }

    fn learn_from_call(&mut self, body: &'a Body) {
        match body {
            Body::CaseBegan { case, id, .. } => {
                self.cases.insert(*case, id);
            }
            Body::CallBegan {
                call,
                case,
                request,
                ..
            } => {
                self.calls.insert(*call, (request, *case));
                if let Request::RunSandbox(spec) = request {
                    self.pods.insert(&spec.uid, *case);
                }
            }
            Body::CallEnded {
                call,
                result: Ok(reply),
                ..
            } => match (self.calls.get(call), reply) {
                (Some((Request::RunSandbox(spec), case)), Reply::Sandbox(id)) => {
                    let mut path = self.of_case(*case);
                    path.push(sandbox_name(&spec.binding, id));
                    self.sandboxes.insert(id.as_str(), path);
                    self.made.insert(*call, id.as_str());
                }
                (Some((Request::CreateContainer(spec), _)), Reply::Container(id)) => {
                    let name = attempted(&spec.binding, spec.attempt);
                    let container = (spec.sandbox.as_str(), name);
                    self.containers.insert(id.as_str(), container);
                    self.made.insert(*call, id.as_str());
                }
                _ => {}
            },
            _ => {}
        }
    }

    fn learn_from_event(&mut self, event: &'a Event) {
        let Some(sandbox) = event.sandbox.as_deref() else {
            return;
        };
        self.sandbox_shown(&sandbox.id, sandbox.metadata.as_ref());
        for status in &event.containers {
            let name = status.metadata.as_ref().map(|own| &*own.name);
            self.container_shown(status.id.as_str(), &sandbox.id, name);
        }
        if event.container.as_str() != sandbox.id.as_str() {
            self.container_shown(event.container.as_str(), &sandbox.id, None);
        }
    }

    fn learn_from_list(&mut self, reply: &'a Reply) {
        match reply {
            Reply::Sandboxes(listed) => {
                for listed in listed {
                    self.sandbox_shown(&listed.id, listed.metadata.as_ref());
                }
            }
            Reply::Containers(listed) => {
                for listed in listed {
                    let name = listed.metadata.as_ref().map(|own| &*own.name);
                    self.container_shown(listed.id.as_str(), &listed.sandbox, name);
                }
            }
            _ => {}
        }
    }

    /// A sandbox that no call of the history created is in the group of the case that chose the UID
    /// of its pod, or in a group for its pod.
    fn sandbox_shown(&mut self, id: &'a SandboxId, metadata: Option<&SandboxMetadata>) {
        if self.sandboxes.contains_key(id.as_str()) {
            return;
        }
        let case = metadata.and_then(|own| self.pods.get(&own.uid));
        let mut path = match (case, metadata) {
            (Some(case), _) => self.of_case(*case),
            (
                None,
                Some(SandboxMetadata {
                    name, namespace, ..
                }),
            ) => {
                vec![format!("{}/{}", cut(namespace, NAME), cut(name, NAME))]
            }
            (None, None) => vec!["unknown pods".to_owned()],
        };
        path.push(sandbox_name("sandbox", id));
        self.sandboxes.insert(id.as_str(), path);
    }

    fn container_shown(&mut self, id: &'a str, sandbox: &'a SandboxId, name: Option<&str>) {
        let name = || cut(name.unwrap_or("container"), NAME);
        let known = self.containers.entry(id);
        known.or_insert_with(|| (sandbox.as_str(), name()));
    }
}

fn sandbox_name(name: &str, id: &SandboxId) -> String {
    format!("{} ({})", cut(name, NAME), short_id(id.as_str()))
}

/// The id of the sandbox or container that a request names, if only as a part or a filter.
fn named(request: &Request) -> Option<&str> {
    match request {
        Request::CreateContainer(spec) => Some(spec.sandbox.as_str()),
        Request::ListContainers { sandbox, .. } => sandbox.as_ref().map(SandboxId::as_str),
        _ => subject(request),
    }
}

impl Links {
    pub(super) fn new(entries: &[Arc<Entry>], places: &Places<'_>) -> Self {
        let mut walk = Walk {
            places,
            links: Self::default(),
            candidates: BTreeMap::new(),
            failed: BTreeSet::new(),
            began: BTreeMap::new(),
            pending: BTreeMap::new(),
        };
        for entry in entries {
            walk.take(entry);
        }
        walk.links
    }

    /// The call that caused an event, if any.
    pub(super) fn cause(&self, event: Seq) -> Option<CallId> {
        self.causes.get(&event).copied()
    }

    pub(super) fn of_call(&self, call: CallId) -> Vec<u64> {
        let events = self.by_call.get(&call).into_iter().flatten();
        events.copied().map(arrow).collect()
    }

    /// The arrow of an event, if it has another end.
    pub(super) fn of_event(&self, event: Seq) -> Vec<u64> {
        let linked = self.linked.get(&event);
        linked.copied().map(arrow).into_iter().collect()
    }

    fn link(&mut self, event: Seq, call: CallId) {
        self.linked.insert(event);
        self.by_call.entry(call).or_default().push(event);
    }
}

/// The number of an event's arrow, which must not be 0.
fn arrow(event: Seq) -> u64 {
    event.0.saturating_add(1)
}

impl<'a> Walk<'a> {
    fn take(&mut self, entry: &'a Entry) {
        match &entry.body {
            Body::CallBegan { call, request, .. } => {
                self.began.insert(*call, entry.seq);
                for of in effects(request, self.places.made(*call)) {
                    self.candidates.entry(of).or_default().push(*call);
                }
            }
            Body::CallEnded {
                call,
                result: Err(_),
                ..
            } => {
                self.failed.insert(*call);
            }
            Body::CallEnded {
                call,
                result: Ok(reply),
                ..
            } => self.listed(*call, reply),
            Body::Event { event, .. } => self.arrived(entry.seq, event),
            _ => {}
        }
    }

    fn arrived(&mut self, seq: Seq, event: &'a Event) {
        let id = event.container.as_str();
        let sandbox = self.places.sandbox_of(id);
        if let Some(call) = self.cause(id, sandbox, event.kind) {
            self.links.causes.insert(seq, call);
            self.links.link(seq, call);
        }
        let pending = Pending {
            seq,
            kind: event.kind,
            is_sandbox: sandbox.is_none(),
        };
        self.pending.entry(id).or_default().push(pending);
    }

    /// The first call that may be the cause and has not failed yet, or else the first.
    fn cause(&self, id: &'a str, sandbox: Option<&'a str>, kind: EventKind) -> Option<CallId> {
        // A call on a sandbox may end its containers, but starts none.
        let ends = matches!(kind, EventKind::Stopped | EventKind::Deleted);
        let by_sandbox = sandbox.filter(|_| ends);
        let of = |id: &'a str| self.candidates.get(&(id, kind)).into_iter().flatten();
        let mut calls: Vec<CallId> = of(id).copied().collect();
        calls.extend(by_sandbox.into_iter().flat_map(of));
        calls.sort_by_key(|call| (self.failed.contains(call), self.began.get(call).copied()));
        calls.first().copied()
    }

    fn listed(&mut self, call: CallId, reply: &'a Reply) {
        let states: BTreeMap<&str, Shown> = shown(reply).into_iter().collect();
        let Some(began) = self.began.get(&call).copied() else {
            return;
        };
        for (id, state) in &states {
            if let Some(pending) = self.pending.get_mut(id) {
                let is_shown = |it: &mut Pending| it.seq < began && state.is_past(it.kind);
                for event in pending.extract_if(.., is_shown) {
                    self.links.link(event.seq, call);
                }
            }
        }
        if let Some(of_sandboxes) = self.lists_all(call) {
            self.pending.retain(|id, pending| {
                let mut gone = pending.iter().filter(|pending| {
                    let is_gone = pending.kind == EventKind::Deleted && pending.seq < began;
                    is_gone && pending.is_sandbox == of_sandboxes
                });
                let deleted = gone.next().filter(|_| !states.contains_key(id));
                if let Some(deleted) = deleted {
                    self.links.link(deleted.seq, call);
                }
                deleted.is_none()
            });
        }
    }

    /// Whether a call lists all sandboxes, or all containers; `None` if it lists only some.
    fn lists_all(&self, call: CallId) -> Option<bool> {
        match self.places.request(call)? {
            Request::ListSandboxes { .. } => Some(true),
            Request::ListContainers { sandbox: None, .. } => Some(false),
            _ => None,
        }
    }
}
