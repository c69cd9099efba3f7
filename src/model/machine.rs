//! The state of a runtime, and the calls that change it.
//!
//! Every call is accepted at once and gets a [`Ticket`]; its answer becomes available when the
//! operation has completed. Time is an input: the owner of a machine calls [`Machine::advance`], at
//! [`Machine::next_due`] at the latest, and only timers fire in between.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::announce::NonTransition;
use super::behaviour::{Behaviour, Delivery, ExitDetection};
use super::containers::Container;
use super::daemon::names;
use super::event_bus::{EventBus, Subscriber};
use super::process::ProcessExit;
use super::sandboxes::{Sandbox, runtime_status};
use super::timer_queue::{Random, TimerQueue, before, later};
use crate::history::{
    CallFault, ContainerFilter, ContainerId, EventKind, HostInstant, ImageListing, Reply, Request,
    RuntimeVersion, SandboxFilter, SandboxId, StatusCode,
};

/// Identifies a call in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// A runtime: its state and its pending timers.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    pub(super) behaviour: Behaviour,
    pub(super) now: HostInstant,
    pub(super) sandboxes: BTreeMap<SandboxId, Sandbox>,
    pub(super) containers: BTreeMap<ContainerId, Container>,
    /// Containers that were removed and are still listed.
    pub(super) removed: BTreeMap<ContainerId, Container>,
    pub(super) random: Random,
    /// The number of sandboxes and containers created so far.
    pub(super) created_count: u64,
    pub(super) timers: TimerQueue<Timer>,
    /// Containers whose exits are not detected.
    pub(super) unwatched: BTreeSet<ContainerId>,
    pub(super) frozen_monitors: BTreeSet<ContainerId>,
    /// Containers whose monitors have no room on the disk.
    pub(super) full_disks: BTreeSet<ContainerId>,
    /// Whether the daemon runs; containers keep running without it.
    pub(super) up: bool,
    /// The time until which streams are early, after the daemon's start.
    pub(super) early_until: HostInstant,
    /// The time until which exits are missed, during the daemon's start.
    pub(super) deaf_until: HostInstant,
    /// Incremented when the daemon stops: its grace periods end with it.
    pub(super) generation: u32,
    pub(super) images: Vec<ImageListing>,
    /// The checkpoints by path, each with the image of its container.
    pub(super) checkpoints: BTreeMap<String, String>,
    oom_kills: u64,
    pub(super) event_bus: EventBus,
    next_ticket: u64,
    pub(super) waiting: BTreeMap<Ticket, (Request, ContainerId)>,
    answers: BTreeMap<Ticket, Result<Reply, CallFault>>,
    /// Calls whose callers still wait.
    open: BTreeSet<Ticket>,
}

/// An action at a given time.
#[derive(Clone, Debug)]
pub(super) enum Timer {
    /// A process exits on its own.
    Exit(ContainerId, ProcessExit),
    /// A process receives a fatal signal.
    Signal(ContainerId, ProcessExit),
    /// The kernel OOM-kills a child process of a container.
    KillChild(ContainerId),
    DetectExit(ContainerId),
    /// A grace period is over; it was started by this generation of the daemon.
    Kill(ContainerId, u32),
    /// A removed container disappears from the lists.
    Forget(ContainerId),
    Answer(Ticket, Box<Result<Reply, CallFault>>),
    /// A delivery on a stream is due.
    Deliver(Subscriber, Delivery),
    SubscriptionEffective,
    /// A command in a container ends, and with it the `ExecSync` call.
    EndCommand(Ticket, Box<Result<Reply, CallFault>>),
}

/// The time of a call's answer.
pub(super) enum Outcome {
    /// At once.
    Done(Result<Reply, CallFault>),
    WhenExited(ContainerId),
    /// After a delay, or when this container has exited.
    AtEnd {
        container: ContainerId,
        after: Option<Duration>,
        result: Result<Reply, CallFault>,
    },
}

impl Machine {
    /// A runtime with these images and no sandboxes. All random choices derive from the seed.
    pub fn new(behaviour: Behaviour, images: Vec<ImageListing>, seed: u64) -> Self {
        Self {
            behaviour,
            random: Random::new(seed),
            up: true,
            images,
            ..Self::default()
        }
    }

    /// The number of OOM kills so far.
    pub fn oom_kills(&self) -> u64 {
        self.oom_kills
    }

    pub(super) fn calls_made(&self) -> u64 {
        self.next_ticket
    }

    /// When the next timer is due.
    pub fn next_due(&self) -> Option<HostInstant> {
        self.timers.next_due()
    }

    /// Fires all timers that are due by now.
    pub fn advance(&mut self, now: HostInstant) {
        while let Some((at, timer)) = self.timers.pop(now) {
            self.set_time(before(now, now.since(at)));
            self.fire(timer);
        }
        self.set_time(now);
    }

    /// Sets the current time, which never goes back by the monotonic clock. The wall clock may
    /// have been set.
    fn set_time(&mut self, at: HostInstant) {
        if at.monotonic_ns >= self.now.monotonic_ns {
            self.now = at;
        }
    }

    pub(super) fn fire(&mut self, timer: Timer) {
        let Some(timer) = self.unless_frozen(timer) else {
            return;
        };
        match timer {
            Timer::Exit(container, end) => self.exit(container, end),
            Timer::Signal(container, end) => self.exit_at_signal(&container, end),
            Timer::KillChild(container) => self.kill_child(&container),
            Timer::DetectExit(container) => self.detect_exit(&container, true),
            Timer::Kill(container, generation) if generation == self.generation => {
                self.kill(&container, true);
            }
            Timer::Kill(..) => {}
            Timer::Forget(container) => drop(self.removed.remove(&container)),
            Timer::Answer(ticket, result) => self.hand_out_late(ticket, *result),
            Timer::EndCommand(ticket, result) => self.end_command(ticket, *result),
            Timer::Deliver(subscriber, delivery) => self.deliver(subscriber, delivery),
            Timer::SubscriptionEffective => self.send_backlog(),
        }
    }

    /// Ends a process on its own: the exit is detected as configured.
    pub(super) fn exit(&mut self, container: ContainerId, end: ProcessExit) {
        if !self.end_process(&container, end) {
            return;
        }
        match self.behaviour.exit_detection {
            _ if !self.detects_exit_of(&container) => {}
            ExitDetection::AtEndOfOutput if self.holds_output_open(&container) => {}
            ExitDetection::Immediate | ExitDetection::AtEndOfOutput => {
                self.detect_exit(&container, true);
            }
            ExitDetection::Delayed(after) => {
                self.after(self.behaviour.scaled(after), Timer::DetectExit(container));
            }
            ExitDetection::OnQuery | ExitDetection::Never => {}
        }
    }

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
        if self.behaviour.exit_detection == ExitDetection::OnQuery {
            self.detect_all_exits(true);
        }
        if self.leaves_unanswered(&request) {
            return ticket;
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
                    self.after(after, Timer::EndCommand(ticket, Box::new(result)));
                    self.advance(now);
                }
            }
        }
        ticket
    }

    /// Whether a call is never answered, and changes nothing.
    fn leaves_unanswered(&self, request: &Request) -> bool {
        match request {
            Request::StartContainer(_) => self.behaviour.leaves_starts_unanswered,
            Request::RunSandbox(_) | Request::CreateContainer(_) => {
                self.calls_made() > self.behaviour.creates_until
            }
            _ => false,
        }
    }

    fn dispatch(&mut self, request: &Request) -> Outcome {
        if request.is_streamed() && !self.behaviour.streams_lists {
            let fault = fault(StatusCode::UNIMPLEMENTED, "lists are not streamed");
            return Outcome::Done(Err(fault));
        }
        Outcome::Done(match request {
            Request::Version => Ok(Reply::Version(RuntimeVersion {
                runtime_name: "model".to_owned(),
                runtime_version: env!("CARGO_PKG_VERSION").to_owned(),
                api_version: "v1".to_owned(),
            })),
            Request::RunSandbox(spec) => self.run_sandbox(spec),
            Request::StopSandbox(id) => Ok(self.stop_sandbox(id)),
            Request::RemoveSandbox(id) => self.remove_sandbox(id),
            Request::SandboxStatus(id) => self.sandbox_status(id),
            Request::RuntimeStatus => Ok(runtime_status()),
            Request::ListSandboxes { labels, .. } => Ok(self.list_sandboxes(&SandboxFilter {
                labels: labels.clone(),
                ..SandboxFilter::default()
            })),
            Request::FindSandboxes(filter) => Ok(self.list_sandboxes(filter)),
            Request::CreateContainer(spec) => self.create_container(spec),
            Request::StartContainer(_) if self.behaviour.ignores_starts => Ok(Reply::Done),
            Request::StartContainer(id) => self.start_container(id),
            Request::StopContainer { container, grace } => {
                return self.stop_container(container, *grace);
            }
            Request::RemoveContainer(id) => self.remove_container(id),
            Request::ContainerStatus(id) => self.container_status(id),
            Request::ListContainers {
                sandbox, labels, ..
            } => Ok(self.list_containers(&ContainerFilter {
                sandbox: sandbox.clone(),
                labels: labels.clone(),
                ..ContainerFilter::default()
            })),
            Request::FindContainers(filter) => Ok(self.list_containers(filter)),
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
            Request::CheckpointContainer {
                container,
                location,
            } => self.checkpoint_container(container, location),
            Request::UpdateContainerResources {
                container,
                resources,
            } => self.update(container, resources),
            Request::NoEventCall(call, id) => self.answer_no_event_call(*call, id),
        })
    }

    fn answer(&mut self, ticket: Ticket, request: &Request, result: Result<Reply, CallFault>) {
        let answer = self.apply_reply_hooks(request, result);
        match answer.after {
            Some(Duration::ZERO) => self.hand_out(ticket, answer.result),
            Some(after) => {
                let timer = Timer::Answer(ticket, Box::new(answer.result));
                self.after(self.behaviour.scaled(after), timer);
            }
            None => {}
        }
    }

    pub(super) fn hand_out(&mut self, ticket: Ticket, result: Result<Reply, CallFault>) {
        if self.open.contains(&ticket) {
            self.answers.insert(ticket, result);
        }
    }

    /// Sends a delayed answer, unless its caller has abandoned the call.
    fn hand_out_late(&mut self, ticket: Ticket, result: Result<Reply, CallFault>) {
        let gone = !self.open.contains(&ticket);
        if let Ok(Reply::Container(created)) = &result
            && gone
            && self.behaviour.cleans_up_silently
        {
            self.delete_container(created, false);
        }
        self.hand_out(ticket, result);
    }

    /// Ends a command, unless its container has ended before.
    fn end_command(&mut self, ticket: Ticket, result: Result<Reply, CallFault>) {
        if let Some((request, container)) = self.waiting.remove(&ticket) {
            self.announce_spuriously(NonTransition::ExecEnd, EventKind::Stopped, &container);
            self.answer(ticket, &request, result);
        }
    }

    /// Removes the answer to a call, if it is available.
    pub fn take_answer(&mut self, ticket: Ticket) -> Option<Result<Reply, CallFault>> {
        let answer = self.answers.remove(&ticket)?;
        self.open.remove(&ticket);
        Some(answer)
    }

    /// The caller has abandoned the call; the operation continues.
    pub fn forget(&mut self, ticket: Ticket) {
        self.open.remove(&ticket);
        self.answers.remove(&ticket);
    }

    /// Whether a `StopContainer` call waits for the container's exit.
    pub(super) fn is_being_stopped(&self, id: &ContainerId) -> bool {
        let mut waiting = self.waiting.values();
        waiting.any(|(request, container)| {
            container == id && matches!(request, Request::StopContainer { .. })
        })
    }

    /// Answers the calls that wait for a container's exit.
    pub(super) fn answer_waiting(&mut self, container: &ContainerId) {
        let ready: Vec<Ticket> = self
            .waiting
            .iter()
            .filter(|(_, (_, waits_for))| waits_for == container)
            .map(|(ticket, _)| *ticket)
            .collect();
        for ticket in ready {
            if let Some((request, _)) = self.waiting.remove(&ticket) {
                let reply = match request {
                    // With a container's init the kernel kills all of its processes.
                    Request::ExecSync { .. } => Reply::Exec(137),
                    _ => Reply::Done,
                };
                self.answer(ticket, &request, Ok(reply));
            }
        }
    }

    pub(super) fn count_oom_kill(&mut self) {
        self.oom_kills += 1;
    }

    pub(super) fn after(&mut self, delay: Duration, timer: Timer) {
        self.timers.put(later(self.now, delay), timer);
    }
}

pub(super) fn fault(code: StatusCode, message: impl Into<String>) -> CallFault {
    CallFault {
        code,
        message: message.into(),
        deadline: Duration::ZERO,
    }
}
