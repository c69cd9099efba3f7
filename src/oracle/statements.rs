//! What events, lists and statuses say of each container and sandbox of a case.

use std::collections::BTreeMap;

use super::fields::{Made, Message};
use super::index::CallEnds;
use crate::history::{
    Call, CaseHistory, EventArrival, EventKind, Reply, Request, SandboxState, Seq, Subject,
    SubjectKind,
};
use crate::outcome::Fact;

/// A message about an object, and where it came.
#[derive(Clone, Copy)]
pub(super) struct Statement<'a> {
    pub(super) message: Message<'a>,
    pub(super) source: Source<'a>,
}

#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    Call(&'a Call, CallEnds<'a>),
    /// The snapshot of an event.
    Event(&'a EventArrival),
}

/// A container or a sandbox of the case, with the calls that set its fields.
pub(super) struct Object<'a> {
    pub(super) subject: &'a Subject,
    /// The successful call that made it; none of a foreign one.
    pub(super) creation: Option<&'a Call>,
    /// The successful `StartContainer`.
    pub(super) start: Option<&'a Call>,
    /// In the order of their ends.
    pub(super) statements: Vec<Statement<'a>>,
}

impl<'a> Statement<'a> {
    /// The entry with which it was complete.
    pub(super) fn seq(&self) -> Seq {
        match self.source {
            Source::Call(_, call) => call.ended.seq,
            Source::Event(arrival) => arrival.seq(),
        }
    }

    /// The time of that entry, by the wall clock.
    pub(super) fn at_ns(&self) -> i64 {
        match self.source {
            Source::Call(_, call) => call.ended.at.realtime_ns,
            Source::Event(arrival) => arrival.at().realtime_ns,
        }
    }

    pub(super) fn is_of_event(&self) -> bool {
        matches!(self.source, Source::Event(_))
    }

    /// The kind of a sandbox's own event, if it is the sandbox's status in that.
    pub(super) fn own_event_of_sandbox(&self) -> Option<EventKind> {
        let (Message::Sandbox(status), Source::Event(arrival)) = (self.message, self.source) else {
            return None;
        };
        let event = arrival.event();
        (event.container.as_str() == status.id.as_str()).then_some(event.kind)
    }

    pub(super) fn evidence(&self) -> Vec<Seq> {
        match self.source {
            Source::Call(_, call) => call.evidence(),
            Source::Event(arrival) => vec![arrival.seq()],
        }
    }

    /// Its source: the event, or the method of the call.
    pub(super) fn fact(&self) -> Fact {
        match self.source {
            Source::Call(call, _) => Fact::Method(call.request().method().to_owned()),
            Source::Event(arrival) => Fact::Event(arrival.event().kind),
        }
    }

    /// The id in the message.
    pub(super) fn id(&self) -> &'a str {
        match self.message {
            Message::Status(status) => status.id.as_str(),
            Message::Item(item) => item.id.as_str(),
            Message::Sandbox(status) => status.id.as_str(),
            Message::SandboxItem(item) => item.id.as_str(),
        }
    }

    /// Whether it is an item of a list.
    pub(super) fn is_item(&self) -> bool {
        matches!(self.message, Message::Item(_) | Message::SandboxItem(_))
    }

    /// Its position in the life of its object: 0 created, 1 running or ready, 2 exited or not
    /// ready; `None` of an unknown state.
    pub(super) fn progress(&self) -> Option<u8> {
        let container = match self.message {
            Message::Status(status) => status.state,
            Message::Item(item) => item.state,
            // Its CREATED can show it before it is ready.
            Message::Sandbox(_) if self.own_event_of_sandbox() == Some(EventKind::Created) => {
                return Some(0);
            }
            Message::Sandbox(status) => return of_sandbox(status.state),
            Message::SandboxItem(item) => return of_sandbox(item.state),
        };
        super::lifecycle::progress(container)
    }

    /// Its state, in words.
    pub(super) fn state(&self) -> String {
        match self.message {
            Message::Status(status) => status.state.to_string(),
            Message::Item(item) => item.state.to_string(),
            Message::Sandbox(status) => status.state.to_string(),
            Message::SandboxItem(item) => item.state.to_string(),
        }
    }
}

fn of_sandbox(state: SandboxState) -> Option<u8> {
    match state {
        SandboxState::Ready => Some(1),
        SandboxState::NotReady => Some(2),
        SandboxState::Unknown(_) => None,
    }
}

impl<'a> Object<'a> {
    /// The request that made it.
    pub(super) fn made(&self) -> Option<Made<'a>> {
        match self.creation?.request() {
            Request::CreateContainer(spec) => Some(Made::Container(spec)),
            Request::RunSandbox(spec) => Some(Made::Sandbox(spec)),
            _ => None,
        }
    }
}

/// The objects of a case that calls or events have named, each with all statements about it.
pub(super) fn objects(history: &CaseHistory) -> Vec<Object<'_>> {
    let subjects = history.subjects();
    let mut objects: Vec<Object<'_>> = subjects.iter().map(Object::new).collect();
    let places: BTreeMap<&str, usize> = (0..)
        .zip(subjects)
        .map(|(place, subject)| (subject.id.as_str(), place))
        .collect();
    let mut say = |id: &str, message, source| {
        if let Some(place) = places.get(id) {
            let said = &mut objects[*place].statements;
            said.push(Statement { message, source });
        }
    };
    answers(history, &mut say);
    for subject in subjects {
        for arrival in &subject.arrivals {
            snapshot(subject, arrival, &mut say);
        }
    }
    for call in history.calls() {
        let (id, starts) = match (call.request(), call.result()) {
            (_, Some(Ok(Reply::Container(id)))) => (id.as_str(), false),
            (_, Some(Ok(Reply::Sandbox(id)))) => (id.as_str(), false),
            (Request::StartContainer(id), Some(Ok(_))) => (id.as_str(), true),
            _ => continue,
        };
        if let Some(object) = places.get(id).map(|place| &mut objects[*place]) {
            let own = if starts {
                &mut object.start
            } else {
                &mut object.creation
            };
            own.get_or_insert(call);
        }
    }
    for object in &mut objects {
        object.statements.sort_by_key(Statement::seq);
    }
    objects
}

/// The statements of the lists and statuses that the case has asked for.
fn answers<'a>(history: &'a CaseHistory, say: &mut impl FnMut(&str, Message<'a>, Source<'a>)) {
    for call in history.calls() {
        let (began, result) = (call.began(), call.result());
        let (Some(ended), Some(Ok(reply))) = (call.ended(), result) else {
            continue;
        };
        let source = Source::Call(call, CallEnds { began, ended });
        match (call.request(), reply) {
            (Request::ContainerStatus(id), Reply::ContainerStatus(report)) => {
                say(id.as_str(), Message::Status(&report.status), source);
            }
            (Request::SandboxStatus(id), Reply::SandboxStatus(report)) => {
                say(id.as_str(), Message::Sandbox(&report.status), source);
                for status in &report.containers {
                    say(status.id.as_str(), Message::Status(status), source);
                }
            }
            (_, Reply::Containers(listed)) => {
                for item in listed {
                    say(item.id.as_str(), Message::Item(item), source);
                }
            }
            (_, Reply::Sandboxes(listed)) => {
                for item in listed {
                    say(item.id.as_str(), Message::SandboxItem(item), source);
                }
            }
            _ => {}
        }
    }
}

/// The statements of an event: of the sandbox, and of each container.
fn snapshot<'a>(
    subject: &'a Subject,
    arrival: &'a EventArrival,
    say: &mut impl FnMut(&str, Message<'a>, Source<'a>),
) {
    let event = arrival.event();
    let source = Source::Event(arrival);
    if let (Some(sandbox), Some(own)) = (&event.sandbox, own_sandbox(subject)) {
        say(own, Message::Sandbox(sandbox), source);
    }
    for status in &event.containers {
        let named = if status.id.as_str().is_empty() {
            &event.container
        } else {
            &status.id
        };
        say(named.as_str(), Message::Status(status), source);
    }
}

impl<'a> Object<'a> {
    fn new(subject: &'a Subject) -> Self {
        Self {
            subject,
            creation: None,
            start: None,
            statements: Vec::new(),
        }
    }
}

/// The id of a subject's sandbox.
fn own_sandbox(subject: &Subject) -> Option<&str> {
    match &subject.kind {
        SubjectKind::Sandbox(_) => Some(subject.id.as_str()),
        SubjectKind::Container(spec) => Some(spec.sandbox.as_str()),
        SubjectKind::Stray => None,
    }
}
