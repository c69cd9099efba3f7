//! Causal links in a slice of a history: a call and its return, a call and the event that it
//! causes, an event and the list that shows it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::Lane;
use crate::history::{Body, CallId, Entry, Event, EventKind, Reply, Request, SubscriptionId};
use crate::report::evidence::{effects, shown, subject};
use crate::report::timeline::asks_only;

/// A slice of a history, with its calls. Entries are identified by their indices in the slice.
#[derive(Debug)]
pub(super) struct Threads<'a> {
    entries: &'a [Arc<Entry>],
    calls: BTreeMap<CallId, Call<'a>>,
}

/// A call whose beginning is in the slice.
#[derive(Debug)]
struct Call<'a> {
    request: &'a Request,
    began: usize,
    ended: Option<usize>,
    /// The sandbox or container that it names or has created.
    id: Option<&'a str>,
}

impl<'a> Threads<'a> {
    pub(super) fn new(entries: &'a [Arc<Entry>]) -> Self {
        let mut calls = BTreeMap::new();
        for (at, entry) in entries.iter().enumerate() {
            match &entry.body {
                Body::CallBegan { call, request, .. } => {
                    let begun = Call {
                        request,
                        began: at,
                        ended: None,
                        id: subject(request),
                    };
                    calls.insert(*call, begun);
                }
                Body::CallEnded { call, result, .. } => {
                    if let Some(begun) = calls.get_mut(call) {
                        begun.ended = Some(at);
                        begun.id = begun.id.or(made(result.as_ref().ok()));
                    }
                }
                _ => {}
            }
        }
        Self { entries, calls }
    }

    pub(super) fn entries(&self) -> &'a [Arc<Entry>] {
        self.entries
    }

    pub(super) fn lane(&self, at: usize) -> Lane {
        match &self.entries[at].body {
            Body::CallBegan { .. } | Body::CallEnded { .. } => match self.call(at) {
                Some(call) if asks_only(call.request) => Lane::Lists,
                _ => Lane::Calls,
            },
            Body::Event { subscription, .. }
            | Body::SubscriptionOpened { subscription, .. }
            | Body::SubscriptionAnswered { subscription }
            | Body::SubscriptionProven { subscription }
            | Body::SubscriptionEnded { subscription, .. } => Lane::Events(*subscription),
            Body::Fact { .. } => Lane::Kernel,
            _ => Lane::Faults,
        }
    }

    /// Whether the entry reports a failure.
    pub(super) fn is_fault(&self, at: usize) -> bool {
        matches!(
            &self.entries[at].body,
            Body::CallEnded { result: Err(_), .. }
                | Body::Waited { met: false, .. }
                | Body::HeldUp { .. }
        )
    }

    /// The drawn entry for this one: for a list its reply alone.
    pub(super) fn drawn(&self, at: usize) -> usize {
        match self.call(at) {
            Some(call) if asks_only(call.request) => call.ended.unwrap_or(at),
            _ => at,
        }
    }

    /// The number of these entries that a diagram would draw.
    pub(super) fn count_drawn(&self, range: Range<usize>) -> usize {
        range.filter(|at| self.drawn(*at) == *at).count()
    }

    /// The return of the call that begins there, except for lists.
    pub(super) fn end_of_call(&self, at: usize) -> Option<usize> {
        let call = self.call(at)?;
        let begins = call.began == at && !asks_only(call.request);
        call.ended.filter(|_| begins)
    }

    /// The beginning and the end of the call that is recorded there.
    pub(super) fn both_ends(&self, at: usize) -> impl Iterator<Item = usize> {
        let call = self.call(at);
        let ends = call.map(|call| [Some(call.began), call.ended]);
        ends.into_iter().flatten().flatten()
    }

    /// The subscription of all events in the slice, or the first of several.
    pub(super) fn first_stream(&self) -> SubscriptionId {
        let streams = self.entries.iter().filter_map(|entry| match &entry.body {
            Body::Event { subscription, .. } => Some(*subscription),
            _ => None,
        });
        streams.min().unwrap_or_default()
    }

    /// The id of a sandbox or container in a text, such as `c (3f2a…)`.
    pub(super) fn id_in(&self, text: &str) -> Option<&'a str> {
        let of_calls = self.calls.values().filter_map(|call| call.id);
        let of_events = self.events().map(|(_, _, event)| event.container.as_str());
        let mut ids = of_calls.chain(of_events);
        ids.find(|id| !id.is_empty() && text.contains(id))
    }

    pub(super) fn events_of(&self, id: &str) -> impl Iterator<Item = (usize, &'a Event)> {
        let events = self.events();
        let events = events.filter(move |(_, _, event)| event.container.as_str() == id);
        events.map(|(at, _, event)| (at, event))
    }

    /// The beginnings of the calls that change a sandbox or container.
    pub(super) fn calls_on(&self, id: &str) -> impl Iterator<Item = usize> {
        let calls = self.calls.values();
        let calls = calls.filter(move |call| call.id == Some(id) && !asks_only(call.request));
        calls.map(|call| call.began)
    }

    /// The beginning of the call that causes the event which is recorded there.
    pub(super) fn cause(&self, at: usize) -> Option<usize> {
        let Body::Event { event, .. } = &self.entries[at].body else {
            return None;
        };
        let sandbox = event.sandbox.as_deref().map(|status| status.id.as_str());
        self.cause_of(event.kind, event.container.as_str(), sandbox, at)
    }

    /// The beginning of the last call before `before` that causes such an event.
    pub(super) fn cause_of(
        &self,
        kind: EventKind,
        id: &str,
        sandbox: Option<&str>,
        before: usize,
    ) -> Option<usize> {
        let ends = matches!(kind, EventKind::Stopped | EventKind::Deleted);
        let by_sandbox = sandbox.filter(|_| ends);
        let begun = self.calls.values().filter(|call| call.began < before);
        let causes = begun.filter(|call| {
            let mut effects = effects(call.request, call.id).into_iter();
            effects.any(|(of, effect)| effect == kind && (of == id || Some(of) == by_sandbox))
        });
        causes.map(|call| call.began).max()
    }

    /// The first reply after the event that shows its change, before the next event of the same
    /// container on the same stream.
    pub(super) fn shown_by(&self, at: usize) -> Option<usize> {
        let Body::Event {
            event,
            subscription,
            ..
        } = &self.entries[at].body
        else {
            return None;
        };
        let id = event.container.as_str();
        let mut later = self.events().filter(|(place, stream, other)| {
            *place > at && stream == subscription && other.container.as_str() == id
        });
        let until = later.next().map_or(self.entries.len(), |(place, ..)| place);
        let shows = |place: &usize| match &self.entries[*place].body {
            Body::CallEnded {
                result: Ok(reply), ..
            } => shows(reply, id, event.kind),
            _ => false,
        };
        (at + 1..until).find(shows)
    }

    /// Whether the entry is an event of the container that follows one of this kind, or a list that
    /// shows the change it reports.
    pub(super) fn is_after(&self, at: usize, id: &str, kind: EventKind) -> bool {
        match &self.entries[at].body {
            Body::Event { event, .. } => {
                event.container.as_str() == id && rank(event.kind) > rank(kind)
            }
            Body::CallEnded {
                result: Ok(reply), ..
            } => shows(reply, id, kind),
            _ => false,
        }
    }

    fn events(&self) -> impl Iterator<Item = (usize, SubscriptionId, &'a Event)> {
        let entries = self.entries.iter().enumerate();
        entries.filter_map(|(at, entry)| match &entry.body {
            Body::Event {
                event,
                subscription,
                ..
            } => Some((at, *subscription, event)),
            _ => None,
        })
    }

    fn call(&self, at: usize) -> Option<&Call<'a>> {
        match &self.entries[at].body {
            Body::CallBegan { call, .. } | Body::CallEnded { call, .. } => self.calls.get(call),
            _ => None,
        }
    }
}

/// The rank of an event in the life of a container.
fn rank(kind: EventKind) -> usize {
    match kind {
        EventKind::Created | EventKind::Unknown(_) => 0,
        EventKind::Started => 1,
        EventKind::Stopped => 2,
        EventKind::Deleted => 3,
    }
}

fn made(reply: Option<&Reply>) -> Option<&str> {
    match reply? {
        Reply::Sandbox(id) => Some(id.as_str()),
        Reply::Container(id) => Some(id.as_str()),
        _ => None,
    }
}

/// Whether a reply shows at least the change that an event of this kind reports for a sandbox or
/// container.
fn shows(reply: &Reply, id: &str, kind: EventKind) -> bool {
    let mut shown = shown(reply).into_iter();
    shown.any(|(of, state)| of == id && state.is_past(kind))
}
