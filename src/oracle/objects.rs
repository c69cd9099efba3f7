//! The containers and sandboxes of a case: the calls about each, and what events, lists and
//! statuses say of it.

use std::collections::BTreeMap;

use super::fields::{Made, Message};
use super::life;
use super::subjects::matches_filter;
use crate::history::{
    Call, CallFault, CaseHistory, Entry, EventArrival, EventKind, Reply, Request, SandboxState,
    Seq, StatusCode, Subject, SubjectKind,
};
use crate::outcome::Fact;

/// A message about an object, and where it came.
#[derive(Clone, Copy)]
pub(crate) struct Statement<'a> {
    pub(crate) message: Message<'a>,
    pub(crate) source: Source<'a>,
}

#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    /// The answer of a call, with its entry.
    Call(&'a Call, &'a Entry),
    /// The snapshot of an event.
    Event(&'a EventArrival),
}

/// A container or a sandbox of the case.
pub(crate) struct Object<'a> {
    pub(crate) subject: &'a Subject,
    /// The successful call that made it; none of a foreign one.
    pub(crate) creation: Option<&'a Call>,
    /// The successful `StartContainer`.
    pub(crate) start: Option<&'a Call>,
    /// Each `UpdateContainerResources`, successful or not.
    pub(crate) updates: Vec<&'a Call>,
    /// Those that start, stop or remove it, successful or not.
    pub(crate) calls: Vec<&'a Call>,
    /// The position of a container's sandbox.
    sandbox: Option<usize>,
    /// In the order of their ends.
    pub(crate) statements: Vec<Statement<'a>>,
    /// The answers that lack it, with the code of another failure than `NOT_FOUND`.
    pub(crate) absences: Vec<(Source<'a>, Option<StatusCode>)>,
    /// The calls that have succeeded, and need it ready or running.
    pub(super) uses: Vec<Source<'a>>,
    /// The begin of the first call that ends it, or that may have failed to start it. Other clients
    /// may end a foreign sandbox at any time.
    pub(crate) ending: Option<Seq>,
    /// The entry from which it may be deleted: the begin of its removal or its sandbox's, or of a
    /// start that failed; or its DELETED. A foreign one: the begin of the last list that shows it.
    pub(crate) may_be_gone: Option<Seq>,
}

/// The answer of a call about an object, with its entry.
pub(crate) type Answer<'a> = (&'a Call, &'a Entry, Result<Option<Message<'a>>, StatusCode>);

/// The objects of a case that calls or events have named, in the order of its subjects.
pub(crate) struct Objects<'a> {
    all: Vec<Object<'a>>,
    places: BTreeMap<&'a str, usize>,
    are_foreign: bool,
}

impl<'a> Source<'a> {
    /// The entry with which it was complete.
    pub(crate) fn entry(&self) -> &'a Entry {
        match self {
            Self::Call(_, ended) => ended,
            Self::Event(arrival) => arrival.entry(),
        }
    }

    /// That entry, and the begin of a call.
    pub(crate) fn evidence(&self) -> Vec<Seq> {
        match self {
            Self::Call(call, ended) => vec![call.began().seq, ended.seq],
            Self::Event(arrival) => vec![arrival.seq()],
        }
    }

    /// The event, or the method of the call.
    pub(crate) fn fact(&self) -> Fact {
        match self {
            Self::Call(call, _) => Fact::Method(call.request().method().to_owned()),
            Self::Event(arrival) => Fact::Event(arrival.event().kind),
        }
    }
}

impl<'a> Statement<'a> {
    pub(super) fn seq(&self) -> Seq {
        self.source.entry().seq
    }

    /// The entry with which its answer was asked for; the arrival of an event.
    pub(super) fn began(&self) -> Seq {
        match self.source {
            Source::Call(call, _) => call.began().seq,
            Source::Event(arrival) => arrival.seq(),
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

    /// Whether the filter of its list, apart from a state, matches it.
    pub(super) fn is_asked_for(&self) -> bool {
        let Source::Call(call, _) = self.source else {
            return true;
        };
        let (sandbox, labels) = match self.message {
            Message::Item(item) => (Some(&item.sandbox), &item.labels),
            Message::SandboxItem(item) => (None, &item.labels),
            Message::Status(_) | Message::Sandbox(_) => return true,
        };
        matches_filter(call.request(), self.id(), sandbox, labels) != Some(false)
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
        life::progress(container)
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
    fn new(subject: &'a Subject) -> Self {
        Self {
            subject,
            creation: None,
            start: None,
            updates: Vec::new(),
            calls: Vec::new(),
            sandbox: None,
            statements: Vec::new(),
            absences: Vec::new(),
            uses: Vec::new(),
            ending: None,
            may_be_gone: None,
        }
    }

    /// The request that made it.
    pub(super) fn made(&self) -> Option<Made<'a>> {
        match self.creation?.request() {
            Request::CreateContainer(spec) => Some(Made::Container(spec)),
            Request::RunSandbox(spec) => Some(Made::Sandbox(spec)),
            _ => None,
        }
    }

    /// The answers about it in the order of their calls: the message, `None` of one that does not
    /// show it, or the code of a failure.
    pub(crate) fn answers(&self) -> Vec<Answer<'a>> {
        // Lists with any filter are of one check alone.
        let is_find = |call: &Call| {
            matches!(
                call.request(),
                Request::FindContainers(_) | Request::FindSandboxes(_)
            )
        };
        let said = self
            .statements
            .iter()
            .map(|said| (said.source, Ok(Some(said.message))));
        let absent = self
            .absences
            .iter()
            .map(|(source, code)| (*source, code.map_or(Ok(None), Err)));
        let answers = said
            .chain(absent)
            .filter_map(|(source, said)| match source {
                Source::Call(call, ended) => (!is_find(call)).then_some((call, ended, said)),
                Source::Event(_) => None,
            });
        let mut answers: Vec<_> = answers.collect();
        answers.sort_by_key(|(call, ..)| call.began().seq);
        answers
    }

    /// Whether it certainly exists at an entry: no call has begun to remove it.
    pub(crate) fn is_kept_at(&self, at: Seq) -> bool {
        self.may_be_gone.is_none_or(|gone| at < gone)
    }

    /// The begin of the last list that shows it; entry 0 without one.
    fn last_listed(&self) -> Seq {
        let lists = self
            .statements
            .iter()
            .filter(|statement| statement.is_item());
        lists.map(Statement::began).max().unwrap_or_default()
    }

    /// Whether the filter of a list, apart from a state, matches it.
    fn is_listed_by(&self, request: &Request) -> bool {
        let (sandbox, labels) = match &self.subject.kind {
            SubjectKind::Container(spec) => (Some(&spec.sandbox), &spec.labels),
            SubjectKind::Sandbox(spec) => (None, &spec.labels),
            SubjectKind::Stray => return false,
        };
        matches_filter(request, self.subject.id.as_str(), sandbox, labels) == Some(true)
    }
}

impl<'a> Objects<'a> {
    pub(super) fn new(history: &'a CaseHistory) -> Self {
        let subjects = history.subjects();
        let places = subjects.iter().zip(0..);
        let mut objects = Self {
            all: subjects.iter().map(Object::new).collect(),
            places: places
                .map(|(subject, place)| (subject.id.as_str(), place))
                .collect(),
            are_foreign: history.is_of_foreign_pod(),
        };
        for object in &mut objects.all {
            object.sandbox = match &object.subject.kind {
                SubjectKind::Container(spec) => objects.places.get(spec.sandbox.as_str()).copied(),
                SubjectKind::Sandbox(_) | SubjectKind::Stray => None,
            };
        }
        for call in history.calls() {
            objects.take_call(call);
            if let (Some(ended), Some(result)) = (call.ended(), call.result()) {
                objects.take_answer(call, Source::Call(call, ended), result.as_ref());
            }
        }
        for subject in subjects {
            for arrival in &subject.arrivals {
                objects.take_event(subject, arrival);
            }
        }
        objects.bound();
        for object in &mut objects.all {
            object.statements.sort_by_key(Statement::seq);
        }
        objects
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Object<'a>> {
        self.all.iter()
    }

    /// Whether they are of a foreign pod, whose calls are not recorded.
    pub(super) fn are_foreign(&self) -> bool {
        self.are_foreign
    }

    pub(super) fn get(&self, id: &str) -> Option<&Object<'a>> {
        self.places.get(id).map(|place| &self.all[*place])
    }

    /// The sandbox of a container.
    pub(super) fn sandbox_of(&self, container: &Object<'a>) -> Option<&Object<'a>> {
        container.sandbox.map(|place| &self.all[place])
    }

    fn get_mut(&mut self, id: &str) -> Option<&mut Object<'a>> {
        self.places.get(id).map(|place| &mut self.all[*place])
    }

    fn say(&mut self, id: &str, message: Message<'a>, source: Source<'a>) {
        if let Some(object) = self.get_mut(id) {
            object.statements.push(Statement { message, source });
        }
    }

    fn take_call(&mut self, call: &'a Call) {
        let (id, made) = match (call.request(), call.result()) {
            (_, Some(Ok(Reply::Container(id)))) => (id.as_str(), true),
            (_, Some(Ok(Reply::Sandbox(id)))) => (id.as_str(), true),
            (
                Request::StartContainer(id)
                | Request::StopContainer { container: id, .. }
                | Request::RemoveContainer(id),
                _,
            ) => (id.as_str(), false),
            (Request::StopSandbox(id) | Request::RemoveSandbox(id), _) => (id.as_str(), false),
            (Request::UpdateContainerResources { container, .. }, _) => {
                if let Some(object) = self.get_mut(container.as_str()) {
                    object.updates.push(call);
                }
                return;
            }
            _ => return,
        };
        let Some(object) = self.get_mut(id) else {
            return;
        };
        if made {
            object.creation.get_or_insert(call);
            return;
        }
        object.calls.push(call);
        if starts(call) && matches!(call.result(), Some(Ok(_))) {
            object.start.get_or_insert(call);
        } else {
            object.ending.get_or_insert(call.began().seq);
        }
    }

    /// The statements of a list or a status.
    fn take_answer(
        &mut self,
        call: &'a Call,
        source: Source<'a>,
        result: Result<&'a Reply, &'a CallFault>,
    ) {
        match (call.request(), result) {
            (Request::ContainerStatus(id), Ok(Reply::ContainerStatus(report))) => {
                self.say(id.as_str(), Message::Status(&report.status), source);
            }
            (Request::SandboxStatus(id), Ok(Reply::SandboxStatus(report))) => {
                self.say(id.as_str(), Message::Sandbox(&report.status), source);
                for status in &report.containers {
                    self.say(status.id.as_str(), Message::Status(status), source);
                }
                // Without containers it reports none, which a runtime may do.
                if !report.containers.is_empty() || report.timestamp.0 != 0 {
                    let sandbox = self.places.get(id.as_str()).copied();
                    self.lack(source, |object| {
                        sandbox.is_some() && object.sandbox == sandbox
                    });
                }
            }
            (request, Ok(Reply::Containers(listed))) => {
                for item in listed {
                    self.say(item.id.as_str(), Message::Item(item), source);
                }
                self.lack(source, |object| object.is_listed_by(request));
            }
            (request, Ok(Reply::Sandboxes(listed))) => {
                for item in listed {
                    self.say(item.id.as_str(), Message::SandboxItem(item), source);
                }
                self.lack(source, |object| object.is_listed_by(request));
            }
            (Request::StartContainer(id), Ok(_)) => {
                if let Some(sandbox) = self.get(id.as_str()).and_then(|it| it.sandbox) {
                    self.all[sandbox].uses.push(source);
                }
            }
            (Request::ExecSync { container: id, .. }, Ok(_)) => {
                if let Some(used) = self.get_mut(id.as_str()) {
                    used.uses.push(source);
                }
            }
            (Request::ContainerStatus(id), Err(fault)) => self.fail(id.as_str(), source, fault),
            (Request::SandboxStatus(id), Err(fault)) => self.fail(id.as_str(), source, fault),
            _ => {}
        }
    }

    /// Notes the absence of each object that an answer would show, and has not shown.
    fn lack(&mut self, source: Source<'a>, shows: impl Fn(&Object<'a>) -> bool) {
        let seq = source.entry().seq;
        for object in &mut self.all {
            let last = object.statements.last();
            let is_shown = last.is_some_and(|statement| statement.seq() == seq);
            if !is_shown && shows(object) {
                object.absences.push((source, None));
            }
        }
    }

    /// A runtime that cannot be reached, or that is slow, has answered nothing.
    fn fail(&mut self, id: &str, source: Source<'a>, fault: &CallFault) {
        if let Some(object) = self.get_mut(id).filter(|_| is_answer(fault)) {
            let code = (fault.code != StatusCode::NOT_FOUND).then_some(fault.code);
            object.absences.push((source, code));
        }
    }

    /// The statements of an event: of the sandbox, and of each container.
    fn take_event(&mut self, subject: &Subject, arrival: &'a EventArrival) {
        let event = arrival.event();
        let source = Source::Event(arrival);
        let own = match &subject.kind {
            SubjectKind::Sandbox(_) => Some(subject.id.as_str()),
            SubjectKind::Container(spec) => Some(spec.sandbox.as_str()),
            SubjectKind::Stray => None,
        };
        if let (Some(sandbox), Some(own)) = (&event.sandbox, own) {
            self.say(own, Message::Sandbox(sandbox), source);
        }
        for status in &event.containers {
            let named = if status.id.as_str().is_empty() {
                &event.container
            } else {
                &status.id
            };
            self.say(named.as_str(), Message::Status(status), source);
        }
    }

    /// Finds the entries from which objects may be over.
    fn bound(&mut self) {
        let is_foreign = self.are_foreign;
        let begin = |object: &Object<'_>, ends: fn(&Call) -> bool| {
            let mut calls = object.calls.iter().filter(|call| ends(call));
            calls.next().map(|call| call.began().seq)
        };
        let removals = self.all.iter().map(|object| begin(object, removes));
        let removals: Vec<_> = removals.collect();
        for object in &mut self.all {
            let deleted = object.subject.first(EventKind::Deleted);
            let all = [
                begin(object, |call| removes(call) || failed_to_start(call)),
                deleted.map(EventArrival::seq),
                object.sandbox.and_then(|sandbox| removals[sandbox]),
                is_foreign.then(|| object.last_listed()),
            ];
            object.may_be_gone = all.into_iter().flatten().min();
            if is_foreign && matches!(object.subject.kind, SubjectKind::Sandbox(_)) {
                object.ending = Some(Seq::default());
            }
        }
    }
}

/// Whether a call removes its object.
pub(super) fn removes(call: &Call) -> bool {
    matches!(
        call.request(),
        Request::RemoveContainer(_) | Request::RemoveSandbox(_)
    )
}

pub(super) fn starts(call: &Call) -> bool {
    matches!(call.request(), Request::StartContainer(_))
}

/// Whether a failure is an answer of the runtime.
pub(super) fn is_answer(fault: &CallFault) -> bool {
    use StatusCode as Code;
    ![Code::UNAVAILABLE, Code::DEADLINE_EXCEEDED, Code::CANCELLED].contains(&fault.code)
}

pub(super) fn failed_to_start(call: &Call) -> bool {
    starts(call) && !matches!(call.result(), Some(Ok(_)))
}
