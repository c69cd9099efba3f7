//! The state of a runtime, and the calls that change it.
//!
//! Every call is taken at once and gets a [`Ticket`]; its answer is there when what it waits for
//! has happened. Nothing happens between two moments but what was told to be due: whoever holds a
//! machine tells it the time with [`Machine::advance`], at [`Machine::next_due`] at the latest.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::agenda::{Agenda, before, later};
use super::behaviour::{Behaviour, Delivery, ExitNotice, NonTransition};
use super::containers::Container;
use super::images::names;
use super::process::End;
use super::random::Random;
use super::sandboxes::{Sandbox, status};
use super::stage::{Late, Stage, Subscriber, Taken};
use crate::history::{
    CallFault, ContainerFilter, ContainerId, Event, EventKind, HostInstant, ImageListing, Reply,
    Request, RuntimeNanos, RuntimeVersion, SandboxFilter, SandboxId, StatusCode,
};

/// A call that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// A runtime: its state, and what it is about to do.
#[derive(Clone, Debug)]
pub struct Machine {
    pub(super) behaviour: Behaviour,
    pub(super) now: HostInstant,
    pub(super) sandboxes: BTreeMap<SandboxId, Sandbox>,
    pub(super) containers: BTreeMap<ContainerId, Container>,
    /// Those that are removed and not forgotten.
    pub(super) leaving: BTreeMap<ContainerId, Container>,
    pub(super) random: Random,
    pub(super) made: u64,
    pub(super) agenda: Agenda<Deed>,
    /// What ran when the daemon was started again, if it watches only what it has started itself.
    pub(super) unwatched: BTreeSet<ContainerId>,
    /// Whether the daemon runs; containers live without it.
    up: bool,
    /// How often the daemon was stopped: what it had in mind is gone then.
    life: u32,
    pub(super) images: Vec<ImageListing>,
    oom_kills: u64,
    pub(super) stage: Stage,
    next_ticket: u64,
    waiting: BTreeMap<Ticket, (Request, ContainerId)>,
    answers: BTreeMap<Ticket, Result<Reply, CallFault>>,
    /// The calls whose callers still wait.
    open: BTreeSet<Ticket>,
}

/// What is to happen at its time.
#[derive(Clone, Debug)]
pub(super) enum Deed {
    /// A process ends by itself.
    Exit(ContainerId, End),
    /// A process gets the signal that it dies of.
    Signal(ContainerId, End),
    /// The kernel kills a child of a container's process for its memory.
    KillChild(ContainerId),
    /// An exit is noticed.
    Notice(ContainerId),
    /// A grace period is over, in this life of the daemon.
    Kill(ContainerId, u32),
    /// A container that was removed is forgotten.
    Forget(ContainerId),
    /// An answer is given.
    Answer(Ticket, Box<Result<Reply, CallFault>>),
    /// A stream brings something.
    Deliver(Subscriber, Delivery),
    /// A subscription becomes effective.
    Listen,
    /// A command in a container ends, and the call that runs it.
    EndCommand(Ticket, Box<Result<Reply, CallFault>>),
}

/// What a call comes to.
pub(super) enum Outcome {
    Done(Result<Reply, CallFault>),
    /// Done when this container has exited.
    WhenExited(ContainerId),
    /// Done after a time, or when this container has exited.
    AtEnd {
        container: ContainerId,
        after: Option<Duration>,
        result: Result<Reply, CallFault>,
    },
}

impl Machine {
    /// A runtime that has these images and nothing else. What looks random in it follows from the
    /// seed.
    #[must_use]
    pub fn new(behaviour: Behaviour, images: Vec<ImageListing>, seed: u64) -> Self {
        Self {
            behaviour,
            now: HostInstant::default(),
            sandboxes: BTreeMap::new(),
            containers: BTreeMap::new(),
            leaving: BTreeMap::new(),
            random: Random::new(seed),
            made: 0,
            agenda: Agenda::default(),
            unwatched: BTreeSet::new(),
            up: true,
            life: 0,
            images,
            oom_kills: 0,
            stage: Stage::default(),
            next_ticket: 0,
            waiting: BTreeMap::new(),
            answers: BTreeMap::new(),
            open: BTreeSet::new(),
        }
    }

    /// How many processes the kernel has killed for their memory.
    #[must_use]
    pub fn oom_kills(&self) -> u64 {
        self.oom_kills
    }

    /// When something happens next, if nothing is asked for before.
    #[must_use]
    pub fn next_due(&self) -> Option<HostInstant> {
        self.agenda.next_due()
    }

    /// Does all that is due by now.
    pub fn advance(&mut self, now: HostInstant) {
        while let Some((at, deed)) = self.agenda.pop(now) {
            self.reach(before(now, now.since(at)));
            self.perform(deed);
        }
        self.reach(now);
    }

    /// Time goes on, which the monotonic clock tells. The other one may have been set meanwhile.
    fn reach(&mut self, at: HostInstant) {
        if at.monotonic_ns >= self.now.monotonic_ns {
            self.now = at;
        }
    }

    fn perform(&mut self, deed: Deed) {
        match deed {
            Deed::Exit(container, end) => self.exit(container, end),
            Deed::Signal(container, end) => self.foresee(&container, end),
            Deed::KillChild(container) => self.kill_child(&container),
            Deed::Notice(container) => self.notice(&container, true),
            Deed::Kill(container, life) if life == self.life => self.kill(&container, true),
            Deed::Kill(..) => {}
            Deed::Forget(container) => drop(self.leaving.remove(&container)),
            Deed::Answer(ticket, result) => self.hand_out_late(ticket, *result),
            Deed::EndCommand(ticket, result) => self.end_command(ticket, *result),
            Deed::Deliver(subscriber, delivery) => {
                self.stage.deliver(&self.behaviour, subscriber, delivery);
            }
            Deed::Listen => self.send_backlog(),
        }
    }

    /// A process ends by itself: the daemon notices as it does.
    pub(super) fn exit(&mut self, container: ContainerId, end: End) {
        if !self.end_process(&container, end) {
            return;
        }
        match self.behaviour.exit_notice {
            _ if !self.up || self.unwatched.contains(&container) => {}
            ExitNotice::AtEndOfOutput if self.output_is_open(&container) => {}
            ExitNotice::AtOnce | ExitNotice::AtEndOfOutput => self.notice(&container, true),
            ExitNotice::Late(after) => {
                let noticed = later(self.now, self.behaviour.late_by(after));
                self.agenda.put(noticed, Deed::Notice(container));
            }
            ExitNotice::WhenAsked | ExitNotice::Never => {}
        }
    }

    /// Takes a call.
    pub fn call(&mut self, now: HostInstant, request: Request) -> Ticket {
        self.advance(now);
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.open.insert(ticket);
        if !self.up {
            let gone = fault(StatusCode::UNAVAILABLE, "the runtime is down");
            self.answers.insert(ticket, Err(gone));
            return ticket;
        }
        if self.behaviour.exit_notice == ExitNotice::WhenAsked {
            self.notice_all(true);
        }
        match self.dispatch(&request) {
            Outcome::Done(result) => self.answer(ticket, &request, result),
            Outcome::WhenExited(container) => {
                self.waiting.insert(ticket, (request, container));
            }
            Outcome::AtEnd {
                container,
                after,
                result,
            } => {
                self.waiting.insert(ticket, (request, container));
                if let Some(after) = after {
                    let deed = Deed::EndCommand(ticket, Box::new(result));
                    self.agenda.put(later(self.now, after), deed);
                    self.advance(now);
                }
            }
        }
        ticket
    }

    fn dispatch(&mut self, request: &Request) -> Outcome {
        Outcome::Done(match request {
            Request::Version => Ok(Reply::Version(RuntimeVersion {
                runtime_name: "model".to_owned(),
                runtime_version: env!("CARGO_PKG_VERSION").to_owned(),
                api_version: "v1".to_owned(),
            })),
            Request::RunSandbox(spec) => self.run_sandbox(spec),
            Request::StopSandbox(id) => Ok(self.stop_sandbox(id)),
            Request::RemoveSandbox(id) => Ok(self.remove_sandbox(id)),
            Request::SandboxStatus(id) => self.sandbox_status(id),
            Request::RuntimeStatus => Ok(status()),
            Request::ListSandboxes(labels) => Ok(self.list_sandboxes(&SandboxFilter {
                labels: labels.clone(),
                ..SandboxFilter::default()
            })),
            Request::FindSandboxes(filter) => self
                .can_stream(filter.streamed)
                .map(|()| self.list_sandboxes(filter)),
            Request::CreateContainer(spec) => self.create_container(spec),
            Request::StartContainer(id) => self.start_container(id),
            Request::StopContainer { container, grace } => {
                return self.stop_container(container, *grace);
            }
            Request::RemoveContainer(id) => self.remove_container(id),
            Request::ContainerStatus(id) => self.container_status(id),
            Request::ListContainers { sandbox, labels } => {
                Ok(self.list_containers(&ContainerFilter {
                    sandbox: sandbox.clone(),
                    labels: labels.clone(),
                    ..ContainerFilter::default()
                }))
            }
            Request::FindContainers(filter) => self
                .can_stream(filter.streamed)
                .map(|()| self.list_containers(filter)),
            Request::ImageStatus(reference) => Ok(Reply::Image(self.image(reference).cloned())),
            Request::PullImage(reference) => {
                self.image_call();
                Ok(self.pull_image(reference))
            }
            Request::RemoveImage(reference) => {
                self.image_call();
                self.images.retain(|image| !names(image, reference));
                Ok(Reply::Done)
            }
            Request::ListImages => {
                self.image_call();
                Ok(Reply::Images(self.images.clone()))
            }
            Request::ExecSync {
                container,
                command,
                timeout,
            } => return self.exec_sync(container, command, *timeout),
            Request::Aside(aside, id) => self.aside(*aside, id),
        })
    }

    fn answer(&mut self, ticket: Ticket, request: &Request, result: Result<Reply, CallFault>) {
        let answer = self.hooked(request, result);
        match answer.after {
            Some(Duration::ZERO) => self.hand_out(ticket, answer.result),
            Some(after) => {
                let deed = Deed::Answer(ticket, Box::new(answer.result));
                let given = later(self.now, self.behaviour.late_by(after));
                self.agenda.put(given, deed);
            }
            None => {}
        }
    }

    fn hand_out(&mut self, ticket: Ticket, result: Result<Reply, CallFault>) {
        if self.open.contains(&ticket) {
            self.answers.insert(ticket, result);
        }
    }

    /// An answer that was kept back: its caller may have gone meanwhile.
    fn hand_out_late(&mut self, ticket: Ticket, result: Result<Reply, CallFault>) {
        let gone = !self.open.contains(&ticket);
        if let Ok(Reply::Container(made)) = &result
            && gone
            && self.behaviour.undoes_silently
        {
            self.delete_container(made, false);
        }
        self.hand_out(ticket, result);
    }

    /// A command ends, unless its container has ended before.
    fn end_command(&mut self, ticket: Ticket, result: Result<Reply, CallFault>) {
        if let Some((request, container)) = self.waiting.remove(&ticket) {
            self.command_ended(&container);
            self.answer(ticket, &request, result);
        }
    }

    /// Takes the answer to a call, if it is there.
    pub fn take_answer(&mut self, ticket: Ticket) -> Option<Result<Reply, CallFault>> {
        let answer = self.answers.remove(&ticket)?;
        self.open.remove(&ticket);
        Some(answer)
    }

    /// The caller has gone; what it asked for goes on.
    pub fn forget(&mut self, ticket: Ticket) {
        self.open.remove(&ticket);
        self.answers.remove(&ticket);
    }

    /// Whether a call waits for the container's end that was to stop it, or its caller has gone.
    pub(super) fn is_being_stopped(&self, id: &ContainerId) -> bool {
        let mut waiting = self.waiting.values();
        waiting.any(|(request, container)| {
            container == id && matches!(request, Request::StopContainer { .. })
        })
    }

    /// Answers the calls that have waited for a container's exit.
    pub(super) fn answer_waiting(&mut self, container: &ContainerId) {
        let ready = self.waiting.iter();
        let ready: Vec<Ticket> = ready
            .filter(|(_, (_, waits_for))| waits_for == container)
            .map(|(ticket, _)| *ticket)
            .collect();
        for ticket in ready {
            if let Some((request, _)) = self.waiting.remove(&ticket) {
                let reply = match request {
                    // The kernel kills whatever runs beside an init that has ended.
                    Request::ExecSync { .. } => Reply::Exec(137),
                    _ => Reply::Done,
                };
                self.answer(ticket, &request, Ok(reply));
            }
        }
    }

    /// Opens an event stream.
    ///
    /// # Errors
    /// If the runtime is down, or has no events.
    pub fn subscribe(
        &mut self,
        now: HostInstant,
        deadline: Option<Duration>,
    ) -> Result<Subscriber, CallFault> {
        self.advance(now);
        if !self.up {
            return Err(fault(StatusCode::UNAVAILABLE, "the runtime is down"));
        }
        let subscriber = self.stage.subscribe(&self.behaviour, self.now)?;
        let effective = later(self.now, self.behaviour.effective_in());
        self.agenda.put(effective, Deed::Listen);
        let ends = Stage::ends(&self.behaviour, self.now, subscriber, deadline);
        self.schedule(ends);
        self.advance(now);
        Ok(subscriber)
    }

    /// The subscriber has gone.
    pub fn unsubscribe(&mut self, subscriber: Subscriber) {
        self.stage.unsubscribe(&self.behaviour, subscriber);
    }

    /// Whether the headers of the stream's response have been sent.
    #[must_use]
    pub fn answers(&self, subscriber: Subscriber) -> bool {
        self.behaviour.answers_at_once || self.stage.has_something(subscriber)
    }

    /// What comes next on a stream.
    pub fn take(&mut self, subscriber: Subscriber) -> Taken {
        let taken = self.stage.take(subscriber);
        self.send_backlog();
        taken
    }

    /// Stops the daemon. Containers run on; calls and streams break.
    pub fn stop_daemon(&mut self, now: HostInstant) {
        self.advance(now);
        self.up = false;
        self.life += 1;
        let gone = fault(StatusCode::UNAVAILABLE, "the runtime is shutting down");
        for (ticket, _) in std::mem::take(&mut self.waiting) {
            self.hand_out(ticket, Err(gone.clone()));
        }
        self.stage.end_all(&gone);
    }

    /// Starts the daemon again, which finds what has happened meanwhile.
    pub fn start_daemon(&mut self, now: HostInstant) {
        self.advance(now);
        self.up = true;
        self.find_exits();
        self.lose_monitors();
    }

    /// Tells an event about a container, or about a sandbox under its own id, to all who listen.
    pub(super) fn announce(&mut self, kind: EventKind, id: ContainerId, sandbox: &SandboxId) {
        let Some(sandbox) = self.sandboxes.get(sandbox) else {
            return;
        };
        let mut status = sandbox.status();
        if self.behaviour.finds_sandboxes_by_uid {
            status = self.latest_of_pod(status);
        }
        let event = Event {
            container: id,
            kind,
            created_at: self.stamp(),
            containers: self.statuses_in(&status.id),
            sandbox: Some(status.into()),
        };
        self.send(&event);
    }

    /// Tells an event of what there is not, if the behaviour wants that.
    pub(super) fn tell_unknown(&mut self, kind: EventKind, id: &ContainerId) {
        if self.behaviour.also_tells(NonTransition::UnknownId) {
            self.tell_of_nothing(kind, id);
        }
    }

    /// Tells an event of what is in no sandbox.
    pub(super) fn tell_of_nothing(&mut self, kind: EventKind, id: &ContainerId) {
        let event = Event {
            container: id.clone(),
            kind,
            created_at: self.stamp(),
            containers: Vec::new(),
            sandbox: None,
        };
        self.send(&event);
    }

    fn send(&mut self, event: &Event) {
        let late = self
            .stage
            .send(&self.behaviour, self.now, event, &mut self.random);
        self.schedule(late);
    }

    /// Now, as the runtime tells it: later than all that it has told before.
    pub(super) fn stamp(&mut self) -> RuntimeNanos {
        self.stage.stamp(self.now)
    }

    fn send_backlog(&mut self) {
        let late = self
            .stage
            .send_backlog(&self.behaviour, self.now, &mut self.random);
        self.schedule(late);
    }

    fn schedule(&mut self, late: Vec<Late>) {
        for (at, subscriber, delivery) in late {
            self.agenda.put(at, Deed::Deliver(subscriber, delivery));
        }
    }

    pub(super) fn count_oom_kill(&mut self) {
        self.oom_kills += 1;
    }

    /// The kill at the end of a grace period, by this life of the daemon.
    pub(super) fn kill_after(&mut self, grace: Duration, container: &ContainerId) {
        let at = later(self.now, grace);
        self.agenda
            .put(at, Deed::Kill(container.clone(), self.life));
    }
}

/// A fault in the runtime's words.
pub(super) fn fault(code: StatusCode, message: impl Into<String>) -> CallFault {
    CallFault {
        code,
        message: message.into(),
        deadline: Duration::ZERO,
    }
}
