//! The processes of containers: their start from an image or a checkpoint, commands and signals,
//! the memory limit of their pod, their monitors, and crashes of the OCI runtime.
//!
//! A fatal signal takes effect after the core dump has been written; a frozen process does nothing
//! until it is continued. Each container has one monitor, without which its exit is not detected.

use std::time::Duration;

use super::announce::{NonTransition, Transition};
use super::behaviour::{MonitorDeath, MonitorFreeze, PodKill};
use super::containers::{Container, no_container};
use super::machine::{Machine, Outcome, Timer, fault};
use super::process::{ProcessExit, ProcessPlan};
use crate::history::{
    CallFault, ContainerId, ContainerSpec, ContainerState, EventKind, Flaw, HostInstant, Labels,
    NoEventCall, NoEventCallTarget, Reply, RuntimeNanos, SandboxId, Signal, StatusCode,
};
use crate::host::Condition;
use crate::workload::Workload;

impl Machine {
    pub(super) fn start_container(&mut self, requested: &ContainerId) -> Result<Reply, CallFault> {
        let id = &self.resolve_id(requested);
        let container = self.containers.get(id).ok_or_else(|| no_container(id))?;
        let (spec, state) = (container.spec.clone(), container.status.state);
        if state != ContainerState::Created {
            self.announce_spuriously(NonTransition::RefusedStart, EventKind::Started, id);
            let message =
                format!("container {id} is {state}, and can be started from CREATED only");
            return Err(fault(StatusCode::FAILED_PRECONDITION, message));
        }
        self.running_sandbox(&spec.sandbox)?;
        let now = RuntimeNanos(self.now.realtime_ns);
        let process = match spec.flaw {
            Some(Flaw::User | Flaw::Directory | Flaw::Mount | Flaw::Checkpoint) => {
                Err(format!("cannot be run: {:?}", spec.flaw))
            }
            _ if self.crashes(id, Flaw::CrashAtCreate) || self.crashes(id, Flaw::CrashAtStart) => {
                Err("the OCI runtime was killed".to_owned())
            }
            _ => ProcessPlan::new(&spec.command, self.memory_limit(id), self.now),
        };
        let process = match process {
            Err(_) if self.behaviour.accepts_invalid_calls => {
                ProcessPlan::new(&Workload::UntilTerm.command(), None, self.now)
            }
            process => process,
        };
        let ends_as_one = spec.oom_group && self.behaviour.honours_oom_groups;
        let process = process.map(|process| {
            if ends_as_one {
                process.in_oom_group()
            } else {
                process
            }
        });
        let Some(container) = self.containers.get_mut(id) else {
            return Err(no_container(id));
        };
        let process = match process {
            Ok(process) => process,
            Err(message) => {
                container.status.state = ContainerState::Exited;
                container.status.finished_at = now;
                container.status.exit_code = self.behaviour.failed_start;
                container.status.reason = "StartError".into();
                container.status.message.clone_from(&message);
                self.announce_failed_start(id, &spec);
                return Err(fault(StatusCode::UNKNOWN, message));
            }
        };
        container.status.state = ContainerState::Running;
        container.status.started_at = now;
        container.process = Some(process);
        if spec.checkpoint().is_none() || self.behaviour.reports(Transition::Restore) {
            self.announce(EventKind::Started, id.clone(), &spec.sandbox);
        }
        if let Some(after) = process.child_killed {
            self.after(after, Timer::KillChild(id.clone()));
        }
        self.schedule_signal(id, &process);
        if let Some((after, end)) = process.own_end {
            self.after(after, Timer::Exit(id.clone(), end));
        }
        Ok(Reply::Done)
    }

    fn announce_failed_start(&mut self, id: &ContainerId, spec: &ContainerSpec) {
        let failed = match spec.checkpoint() {
            Some(_) => Transition::FailedRestore,
            None => Transition::FailedStart,
        };
        if self.behaviour.reports(failed) {
            self.announce(EventKind::Stopped, id.clone(), &spec.sandbox);
        }
    }

    /// Whether the OCI runtime crashes at this point, which happens once.
    pub(super) fn crashes(&mut self, id: &ContainerId, at: Flaw) -> bool {
        let Some(container) = self.containers.get_mut(id) else {
            return false;
        };
        let crashes = container.pending_crash == Some(at);
        container.pending_crash.take_if(|_| crashes);
        crashes
    }

    pub(super) fn exec_sync(
        &mut self,
        container: &ContainerId,
        command: &[String],
        timeout: Duration,
    ) -> Outcome {
        if self.state_of(container) != Some(ContainerState::Running) {
            let message = format!("container {container} does not run");
            return Outcome::Done(Err(fault(StatusCode::FAILED_PRECONDITION, message)));
        }
        let process = ProcessPlan::new(command, self.memory_limit(container), self.now);
        let own_end = process.as_ref().ok().and_then(|process| process.own_end);
        let mut end = command_end(command, process);
        let in_time = end.after.is_some_and(|after| after <= timeout);
        if !timeout.is_zero() && !in_time {
            let message = format!("the command has run for {timeout:?}");
            end = CommandEnd {
                after: Some(timeout),
                result: Err(fault(StatusCode::DEADLINE_EXCEEDED, message)),
            };
        }
        let CommandEnd { after, result } = end;
        if let Some((killed_after, exit)) = own_end
            && exit.oom
            && after == Some(killed_after)
        {
            // The command is a child process of the container, not its init.
            self.after(killed_after, Timer::KillChild(container.clone()));
        }
        Outcome::AtEnd {
            container: container.clone(),
            after,
            result,
        }
    }

    /// Answers a call that changes no state.
    pub(super) fn answer_no_event_call(
        &mut self,
        call: NoEventCall,
        id: &str,
    ) -> Result<Reply, CallFault> {
        let (container, sandbox) = (ContainerId::from(id), SandboxId::from(id));
        let known = match call.target() {
            NoEventCallTarget::Container => self.containers.contains_key(&container),
            NoEventCallTarget::Sandbox => self.sandboxes.contains_key(&sandbox),
            NoEventCallTarget::Nothing => true,
        };
        if !known {
            return Err(fault(StatusCode::NOT_FOUND, format!("no {id}")));
        }
        self.announce_spuriously(NonTransition::NoEventCall, EventKind::Started, &container);
        Ok(Reply::Done)
    }

    pub(super) fn update(&mut self, id: &ContainerId, given: &Labels) -> Result<Reply, CallFault> {
        let container = self
            .containers
            .get_mut(id)
            .ok_or_else(|| no_container(id))?;
        let resources = container.status.setup.resources.get_or_insert_default();
        resources.extend(
            given
                .iter()
                .map(|(name, value)| (name.clone(), value.clone())),
        );
        self.announce_spuriously(NonTransition::NoEventCall, EventKind::Started, id);
        Ok(Reply::Done)
    }

    /// Handles the side effects of a call to the image service: none, if the runtime is correct.
    pub(super) fn image_call(&mut self) {
        let all: Vec<ContainerId> = self.containers.keys().cloned().collect();
        for container in all {
            self.announce_spuriously(NonTransition::ImageCall, EventKind::Created, &container);
        }
    }

    /// Sets a timer for the fatal signal that a process is going to receive, if any.
    fn schedule_signal(&mut self, id: &ContainerId, process: &ProcessPlan) {
        if let Some((after, end)) = process.signalled {
            self.after(after, Timer::Signal(id.clone(), end));
        }
    }

    /// Kills a container's process from outside the runtime. Returns whether it was running.
    pub fn kill_container(&mut self, now: HostInstant, id: &ContainerId) -> bool {
        self.advance(now);
        let running = self
            .containers
            .get(id)
            .is_some_and(|it| it.process.is_some());
        if running {
            self.exit(id.clone(), ProcessExit::exit(137));
        }
        running
    }

    /// Sends a signal to a container's process from outside the runtime. Returns whether it exists.
    pub fn signal_container(&mut self, now: HostInstant, id: &ContainerId, signal: Signal) -> bool {
        self.advance(now);
        let Some(container) = self.containers.get_mut(id) else {
            return false;
        };
        let Some(process) = container.process else {
            return false;
        };
        match signal {
            Signal::KILL => self.exit(id.clone(), ProcessExit::exit(137)),
            Signal::STOP => {
                container.held.get_or_insert_default();
                self.announce_spuriously(NonTransition::Freeze, EventKind::Stopped, id);
            }
            Signal::CONTINUE => {
                for timer in container.held.take().unwrap_or_default() {
                    self.fire(timer);
                }
            }
            _ => {
                if let Some(end) = process.on_signal(signal) {
                    self.fire(Timer::Exit(id.clone(), end));
                }
            }
        }
        true
    }

    /// Returns a timer of a container's process, unless the process is frozen: then it fires
    /// afterwards.
    pub(in crate::model) fn unless_frozen(&mut self, timer: Timer) -> Option<Timer> {
        let (Timer::Exit(id, _) | Timer::Signal(id, _) | Timer::KillChild(id)) = &timer else {
            return Some(timer);
        };
        match self.containers.get_mut(id) {
            Some(Container {
                held: Some(held),
                process: Some(_),
                ..
            }) => {
                held.push(timer);
                None
            }
            _ => Some(timer),
        }
    }

    /// Handles the fatal signal of a process: reports the exit at once if so configured.
    pub(in crate::model) fn exit_at_signal(&mut self, id: &ContainerId, end: ProcessExit) {
        if !self.behaviour.reports_exit_at_signal {
            return;
        }
        let now = self.now;
        if let Some(container) = self.containers.get_mut(id)
            && container.process.is_some()
        {
            container.ended = Some((end, now));
            self.detect_exit(id, true);
        }
    }

    /// Whether a container's process exists, independent of its reported state.
    pub fn runs(&self, id: &ContainerId) -> bool {
        match self.containers.get(id) {
            Some(container) => container.process.is_some() || container.process_left,
            None => self.behaviour.leaks_processes,
        }
    }

    /// Kills the monitor of a container from outside the runtime, optionally after the container's
    /// process. Returns whether the container was running.
    pub fn kill_monitor(
        &mut self,
        now: HostInstant,
        id: &ContainerId,
        with_container: bool,
    ) -> bool {
        self.advance(now);
        let Some(container) = self.containers.get_mut(id) else {
            return false;
        };
        if container.process.is_none() {
            return false;
        }
        self.frozen_monitors.remove(id);
        let death = self.behaviour.monitor_death;
        container.process_left = death == MonitorDeath::LeavesProcess && !with_container;
        if death == MonitorDeath::Unwatched {
            self.unwatched.insert(id.clone());
            if !with_container {
                return true;
            }
        }
        self.end_process(id, ProcessExit::exit(137));
        if !matches!(death, MonitorDeath::Unnoticed | MonitorDeath::Unwatched) {
            self.detect_exit(id, true);
        }
        if death == MonitorDeath::EndsContainerTwice {
            self.announce_container(EventKind::Stopped, id);
        }
        true
    }

    /// Begins or ends a condition of a container. Returns whether the container is running.
    pub fn set(
        &mut self,
        now: HostInstant,
        id: &ContainerId,
        condition: Condition,
        begins: bool,
    ) -> bool {
        self.advance(now);
        let container = self.containers.get(id);
        let runs = container.is_some_and(|container| container.process.is_some());
        match condition {
            Condition::Paused => {
                let signal = if begins {
                    Signal::STOP
                } else {
                    Signal::CONTINUE
                };
                return self.signal_container(now, id, signal);
            }
            Condition::FrozenMonitor if !begins => self.thaw_monitor(id),
            Condition::FullDisk if !begins => self.free_disk(id),
            Condition::FrozenMonitor if runs => {
                self.frozen_monitors.insert(id.clone());
            }
            Condition::FullDisk if runs => {
                self.full_disks.insert(id.clone());
            }
            Condition::FrozenMonitor | Condition::FullDisk => {}
        }
        runs
    }

    fn thaw_monitor(&mut self, id: &ContainerId) {
        if !self.frozen_monitors.remove(id) {
            return;
        }
        match self.behaviour.monitor_freeze {
            MonitorFreeze::DelaysExit => self.detect_exit(id, true),
            MonitorFreeze::DelaysAllExits => self.detect_all_exits(true),
            MonitorFreeze::LosesExit => {}
        }
    }

    /// Frees the file system. An exit that was lost meanwhile stays lost.
    fn free_disk(&mut self, id: &ContainerId) {
        let container = self.containers.get(id);
        if self.full_disks.remove(id)
            && self.behaviour.loses_exits_on_full_disk
            && container.is_some_and(|container| container.ended.is_some())
        {
            self.unwatched.insert(id.clone());
        }
    }

    /// Whether the exit of a container is detected only when a monitor continues.
    pub(in crate::model) fn awaits_monitor(&self, id: &ContainerId) -> bool {
        let all = self.behaviour.monitor_freeze == MonitorFreeze::DelaysAllExits;
        self.frozen_monitors.contains(id) || all && !self.frozen_monitors.is_empty()
    }

    /// The effective memory limit of a container: the lower of its own and its pod's.
    pub(in crate::model) fn memory_limit(&self, id: &ContainerId) -> Option<u64> {
        let own = self.containers.get(id)?.spec.memory_bytes;
        own.into_iter().chain(self.pod_memory_limit(id)).min()
    }

    fn pod_memory_limit(&self, id: &ContainerId) -> Option<u64> {
        let container = self.containers.get(id)?;
        let sandbox = self.sandboxes.get(&container.spec.sandbox)?;
        sandbox.spec.memory_bytes
    }

    /// Handles an OOM kill that the pod's limit caused: the pod has one and the container has none.
    pub(super) fn apply_pod_kill(&mut self, id: &ContainerId) {
        if self.pod_memory_limit(id).is_none() {
            return;
        }
        let Some(killed) = self.containers.get_mut(id) else {
            return;
        };
        if killed.spec.memory_bytes.is_some() {
            return;
        }
        let sandbox = killed.spec.sandbox.clone();
        match self.behaviour.pod_kill {
            PodKill::MarksOwner => {}
            PodKill::MarksNone => {
                if let Some((end, _)) = &mut killed.ended {
                    end.oom = false;
                }
            }
            PodKill::MarksAll => {
                for sibling in self.containers_in(&sandbox) {
                    self.mark_oom_killed(&sibling);
                }
            }
            PodKill::EndsAll => {
                for sibling in self.containers_in(&sandbox) {
                    self.kill(&sibling, true);
                }
            }
        }
    }

    /// Marks a container as OOM killed, for any later exit.
    pub(super) fn mark_oom_killed(&mut self, id: &ContainerId) {
        let Some(container) = self.containers.get_mut(id) else {
            return;
        };
        if container.status.state == ContainerState::Running {
            container.child_killed = true;
            container.status.reason = (self.behaviour.exit_reason)(ProcessExit::KILLED).into();
        }
    }

    /// Writes a checkpoint of a running container, which continues.
    pub(super) fn checkpoint_container(
        &mut self,
        id: &ContainerId,
        location: &str,
    ) -> Result<Reply, CallFault> {
        let container = self.containers.get(id).ok_or_else(|| no_container(id))?;
        let state = container.status.state;
        if state != ContainerState::Running {
            let message =
                format!("container {id} is {state}, and only a running container has a checkpoint");
            return Err(fault(StatusCode::FAILED_PRECONDITION, message));
        }
        let image = container.spec.image.clone();
        self.checkpoints.insert(location.to_owned(), image);
        self.announce_spuriously(NonTransition::Checkpoint, EventKind::Stopped, id);
        Ok(Reply::Done)
    }

    /// The reference of a container's image; for a restored one, that of the checkpointed
    /// container.
    pub(super) fn reference_of<'a>(&'a self, spec: &'a ContainerSpec) -> &'a str {
        let checkpoint = spec
            .checkpoint()
            .and_then(|path| self.checkpoints.get(path));
        checkpoint.unwrap_or(&spec.image)
    }
}

struct CommandEnd {
    /// Its duration; forever if `None`.
    after: Option<Duration>,
    result: Result<Reply, CallFault>,
}

fn command_end(command: &[String], process: Result<ProcessPlan, String>) -> CommandEnd {
    let exits = |after, code| CommandEnd {
        after,
        result: Ok(Reply::Exec(code)),
    };
    // A command is not the init of its PID namespace: every signal without a handler kills it.
    if let Some(Workload::Die { signal, after }) = Workload::parse(command) {
        return exits(Some(after), 128 + i32::from(signal));
    }
    match process {
        Ok(process) => match process.own_end {
            Some((after, end)) => exits(Some(after), end.code),
            None => exits(None, 0),
        },
        Err(message) => CommandEnd {
            after: Some(Duration::ZERO),
            result: Err(fault(StatusCode::UNKNOWN, message)),
        },
    }
}
