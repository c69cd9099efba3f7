//! Causal links: the call that caused an event, and the first list that shows the same change.
//!
//! A container that exits on its own has no causing call. A list counts if it was requested after
//! the event had arrived.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::causality::{Shown, effects, shown};
use super::places::Places;
use crate::history::{Body, CallId, Entry, Event, EventKind, Reply, Request, Seq};

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
            Request::ListSandboxes(_) => Some(true),
            Request::ListContainers { sandbox: None, .. } => Some(false),
            _ => None,
        }
    }
}
