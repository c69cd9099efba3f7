//! Containers: creation, stop, removal, status and lists; and the processes in them.

use std::sync::Arc;
use std::time::Duration;

use super::announce::{Leftover, NonTransition, Transition};
use super::behaviour::{ChildKill, Order, StopSignals, Twin};
use super::machine::{Machine, Outcome, Timer, fault};
use super::process::{ProcessExit, ProcessPlan};
use super::sandboxes::{FAULTY, carries, no_sandbox};
use crate::history::{
    CallFault, ContainerFilter, ContainerId, ContainerListing, ContainerMetadata, ContainerSetup,
    ContainerSpec, ContainerState, ContainerStatus, EventKind, Flaw, HostInstant, Reply,
    RuntimeNanos, SandboxId, SandboxState, Shared, Signal, StatusCode, Text, User,
};

#[derive(Clone, Debug)]
pub(super) struct Container {
    pub(super) spec: Arc<ContainerSpec>,
    pub(super) status: ContainerStatus,
    /// Position in the order of creation.
    created_nth: u64,
    /// Its process, while it runs.
    pub(super) process: Option<ProcessPlan>,
    /// The end of its process, even if the runtime has not detected it.
    pub(super) ended: Option<(ProcessExit, HostInstant)>,
    /// Whether the OOM kill of a child process is to be reported as the exit reason.
    pub(super) child_killed: bool,
    /// Whether it has exited while a child process keeps running.
    child_left: bool,
    /// The pending effects on its frozen process; `None` if it is not frozen.
    pub(super) held: Option<Vec<Timer>>,
    /// Whether its process keeps running although the runtime has reported its end.
    pub(super) process_left: bool,
    /// The OCI runtime crash that is still to happen, if the sandbox's handler crashes on demand.
    pub(super) pending_crash: Option<Flaw>,
}

impl Container {
    fn listing(&self) -> ContainerListing {
        let status = self.status.clone();
        ContainerListing {
            id: status.id,
            sandbox: self.spec.sandbox.clone(),
            metadata: status.metadata,
            state: status.state,
            created_at: status.created_at,
            labels: status.labels,
            annotations: status.annotations,
            image: status.image,
            image_ref: status.image_ref,
            image_id: status.setup.image_id.clone(),
        }
    }
}

impl Machine {
    pub(super) fn create_container(
        &mut self,
        spec: &Arc<ContainerSpec>,
    ) -> Result<Reply, CallFault> {
        let created = self.try_create(spec);
        if created.is_err() && self.sandboxes.contains_key(&spec.sandbox) {
            let id = ContainerId::from(self.random.id());
            match self.behaviour.leftover {
                Leftover::None => {}
                Leftover::Announced => self.announce(EventKind::Created, id, &spec.sandbox),
                Leftover::Listed => self.insert_container(id, spec, Text::default()),
            }
        }
        created
    }

    fn try_create(&mut self, spec: &Arc<ContainerSpec>) -> Result<Reply, CallFault> {
        self.running_sandbox(&spec.sandbox)?;
        let reference = self.reference_of(spec);
        let accepts = self.behaviour.accepts_invalid_calls;
        let image_ref = match self.image(reference) {
            Some(image) => Text::from(image.id.as_str()),
            None if accepts => Text::from(reference),
            None => {
                let message = format!("no image {reference}: pull it first");
                return Err(fault(StatusCode::NOT_FOUND, message));
            }
        };
        if spec.flaw == Some(Flaw::User) && !accepts {
            let message = format!("image {} has no such user", spec.image);
            return Err(fault(StatusCode::UNKNOWN, message));
        }
        let metadata = metadata_of(spec);
        let same = |other: &Container| {
            other.spec.sandbox == spec.sandbox && other.status.metadata.as_ref() == Some(&metadata)
        };
        let twin = self.containers.values().find(|other| same(other));
        let twin = twin.filter(|_| self.behaviour.twin != Twin::Second);
        if let Some(other) = twin {
            if self.behaviour.twin == Twin::First {
                return Ok(Reply::Container(other.status.id.clone()));
            }
            let message = format!(
                "container {} has the same name and attempt",
                other.status.id
            );
            return Err(fault(StatusCode::ALREADY_EXISTS, message));
        }
        if let Some(target) = &spec.pid_target
            && self.state_of(target) != Some(ContainerState::Running)
        {
            let message =
                format!("container {target}, whose PID namespace is requested, is not running");
            return Err(fault(StatusCode::FAILED_PRECONDITION, message));
        }
        let id = ContainerId::from(self.random.id());
        self.insert_container(id.clone(), spec, image_ref);
        self.announce(EventKind::Created, id.clone(), &spec.sandbox);
        Ok(Reply::Container(id))
    }

    fn insert_container(&mut self, id: ContainerId, spec: &Arc<ContainerSpec>, image_ref: Text) {
        let details = details_of(spec, &image_ref);
        let status = ContainerStatus {
            id: id.clone(),
            metadata: Some(metadata_of(spec)),
            state: ContainerState::Created,
            created_at: RuntimeNanos(self.now.realtime_ns),
            started_at: RuntimeNanos(0),
            finished_at: RuntimeNanos(0),
            exit_code: 0,
            image: Some(self.reference_of(spec).into()),
            image_ref,
            reason: Text::default(),
            message: String::new(),
            labels: spec.labels.clone(),
            annotations: spec.annotations.clone(),
            setup: details.into(),
        };
        let sandbox = self.sandboxes.get(&spec.sandbox);
        let faulty = sandbox.is_some_and(|it| it.spec.runtime_handler == FAULTY);
        let container = Container {
            spec: spec.clone(),
            status,
            created_nth: self.created_count,
            process: None,
            ended: None,
            child_killed: false,
            child_left: false,
            held: None,
            process_left: false,
            pending_crash: spec.flaw.filter(|_| faulty),
        };
        self.created_count += 1;
        self.containers.insert(id, container);
    }

    /// The state of a container; `None` if it does not exist.
    pub(super) fn state_of(&self, id: &ContainerId) -> Option<ContainerState> {
        self.containers
            .get(id)
            .map(|container| container.status.state)
    }

    /// Sends an event about an unchanged container.
    pub(super) fn announce_container(&mut self, kind: EventKind, id: &ContainerId) {
        if let Some(container) = self.containers.get(id) {
            let sandbox = container.spec.sandbox.clone();
            self.announce(kind, id.clone(), &sandbox);
        }
    }

    /// Does so if the runtime mistakes this occurrence for a transition.
    pub(super) fn announce_spuriously(
        &mut self,
        occurrence: NonTransition,
        kind: EventKind,
        id: &ContainerId,
    ) {
        if self.behaviour.reports_spuriously(occurrence) {
            self.announce_container(kind, id);
        }
    }

    pub(super) fn stop_container(&mut self, requested: &ContainerId, grace: Duration) -> Outcome {
        let id = &self.resolve_id(requested);
        let done = Outcome::Done(Ok(Reply::Done));
        let Some(container) = self.containers.get(id) else {
            self.announce_unknown_id(EventKind::Stopped, id);
            return done;
        };
        if container.status.state != ContainerState::Running {
            self.announce_spuriously(NonTransition::RepeatedStop, EventKind::Stopped, id);
            return done;
        }
        let (given, process) = (container.spec.stop_signal, container.process);
        if self.crashes(id, Flaw::CrashAtKill) {
            self.announce_spuriously(NonTransition::FailedKill, EventKind::Stopped, id);
            let message = "the OCI runtime was killed";
            return Outcome::Done(Err(fault(StatusCode::UNKNOWN, message)));
        }
        let signal = match self.behaviour.stop_signals {
            StopSignals::Supported | StopSignals::Unreported => given,
            StopSignals::ReportedOnly | StopSignals::Unknown => Signal::DEFAULT,
        };
        let on_stop = process.and_then(|process| process.on_signal(signal));
        if self.behaviour.stops_wait_for_stops && self.is_being_stopped(id) {
            return Outcome::WhenExited(id.clone());
        }
        let grace = (self.behaviour.grace)(grace);
        if grace.is_zero() {
            self.kill(id, true);
            if self.awaits_monitor(id) {
                return Outcome::WhenExited(id.clone());
            }
            return done;
        }
        if let Some(end) = on_stop.filter(|_| self.behaviour.sends_stop_signal)
            && self.unless_frozen(Timer::Exit(id.clone(), end)).is_some()
        {
            self.end_process(id, end);
            self.detect_exit(id, true);
            return done;
        }
        self.after(grace, Timer::Kill(id.clone(), self.generation));
        Outcome::WhenExited(id.clone())
    }

    pub(super) fn remove_container(&mut self, requested: &ContainerId) -> Result<Reply, CallFault> {
        let id = &self.resolve_id(requested);
        let Some(container) = self.containers.get(id) else {
            self.announce_unknown_id(EventKind::Deleted, id);
            return Ok(Reply::Done);
        };
        if self.behaviour.refuses_removal_of_started && container.status.started_at.0 != 0 {
            let message = format!("cannot delete running task {id}");
            return Err(fault(StatusCode::FAILED_PRECONDITION, message));
        }
        let sandbox = container.spec.sandbox.clone();
        let spurious_stop = self
            .behaviour
            .reports_spuriously(NonTransition::StopOfNeverRun);
        match container.status.state {
            ContainerState::Created if spurious_stop => {
                self.announce(EventKind::Stopped, id.clone(), &sandbox);
            }
            ContainerState::Running => {
                let reports = self.behaviour.reports(Transition::ForcedRemoval);
                self.kill(id, reports);
            }
            ContainerState::Created | ContainerState::Exited | ContainerState::Unknown(_) => {}
        }
        self.delete_by_requested_id(id, requested);
        Ok(Reply::Done)
    }

    /// Deletes a container, with an event if `reports`.
    pub(super) fn delete_container(&mut self, id: &ContainerId, reports: bool) {
        let Some(container) = self.containers.remove(id) else {
            return;
        };
        if reports {
            self.announce(EventKind::Deleted, id.clone(), &container.spec.sandbox);
        }
        let listed_after_removal = self.behaviour.scaled(self.behaviour.listed_after_removal);
        if !listed_after_removal.is_zero() {
            self.after(listed_after_removal, Timer::Forget(id.clone()));
            self.removed.insert(id.clone(), container);
        }
    }

    /// Kills a container's process, if it runs, and detects the exit at once.
    pub(super) fn kill(&mut self, id: &ContainerId, reports: bool) {
        self.kill_with(137, id, reports);
    }

    /// Like `kill`, and records this exit code.
    pub(super) fn kill_with(&mut self, code: i32, id: &ContainerId, reports: bool) {
        self.end_process(id, ProcessExit::exit(code));
        self.detect_exit(id, reports);
    }

    /// Ends a container's process without detecting the exit; returns whether it was running.
    pub(super) fn end_process(&mut self, id: &ContainerId, end: ProcessExit) -> bool {
        let Some(container) = self.containers.get_mut(id) else {
            return false;
        };
        let Some(process) = container.process.take() else {
            return false;
        };
        let oom = end.oom || container.child_killed;
        container.ended = Some((ProcessExit { oom, ..end }, self.now));
        let sandbox = self.sandboxes.get(&container.spec.sandbox);
        let shared = sandbox.is_some_and(|sandbox| sandbox.spec.shared_pid);
        let is_first = !shared && container.spec.pid_target.is_none();
        container.child_left = process.orphans_child && !is_first;
        if end.oom {
            self.count_oom_kill();
            self.apply_pod_kill(id);
        }
        if is_first {
            self.end_namespace(id);
        }
        true
    }

    /// Kills the containers that share the PID namespace of a container whose init has ended, as
    /// the kernel does.
    fn end_namespace(&mut self, target: &ContainerId) {
        let joined: Vec<ContainerId> = self
            .containers
            .values()
            .filter(|container| container.spec.pid_target.as_ref() == Some(target))
            .map(|container| container.status.id.clone())
            .collect();
        let reports = self.behaviour.reports(Transition::EndWithTarget);
        for id in joined {
            self.kill(&id, reports);
        }
    }

    /// Whether a container has exited and a child of it still holds its output open.
    pub(super) fn holds_output_open(&self, id: &ContainerId) -> bool {
        let container = self.containers.get(id);
        container.is_some_and(|container| container.child_left)
    }

    /// The kernel OOM-kills a child process; the container's own process keeps running.
    pub(super) fn kill_child(&mut self, id: &ContainerId) {
        if let Some(container) = self.containers.get(id)
            && container.process.is_some()
        {
            if self.behaviour.child_kill == ChildKill::MarksContainer {
                self.mark_oom_killed(id);
            }
            self.count_oom_kill();
            if self.behaviour.child_kill == ChildKill::EndsContainer {
                self.end_process(id, ProcessExit::exit(137));
                self.detect_exit(id, true);
            }
        }
    }

    /// Detects the exit of a container's process, if it has exited, with an event if `reports`.
    pub(super) fn detect_exit(&mut self, id: &ContainerId, reports: bool) {
        if self.awaits_monitor(id) {
            return;
        }
        let Some(container) = self.containers.get_mut(id) else {
            return;
        };
        let Some((end, at)) = container.ended else {
            return;
        };
        if container.status.state != ContainerState::Running {
            return;
        }
        let status = &mut container.status;
        status.state = ContainerState::Exited;
        status.finished_at = RuntimeNanos(at.realtime_ns);
        status.exit_code = (self.behaviour.exit_code)(end);
        status.reason = (self.behaviour.exit_reason)(end).into();
        let sandbox = container.spec.sandbox.clone();
        let target = container.spec.pid_target.clone();
        let was_paused = container.held.is_some();
        let mistaken = target.filter(|_| self.behaviour.reports_pid_target);
        let crashes = self.crashes(id, Flaw::CrashAtDelete);
        let reports = reports && (!crashes || self.behaviour.reports(Transition::EndInCrash));
        let reports =
            reports && (!was_paused || self.behaviour.reports(Transition::EndWhilePaused));
        if reports {
            let reported_id = mistaken.unwrap_or_else(|| id.clone());
            self.announce(EventKind::Stopped, reported_id, &sandbox);
        }
        self.answer_waiting(id);
    }

    pub(super) fn detect_all_exits(&mut self, reports: bool) {
        let all: Vec<ContainerId> = self.containers.keys().cloned().collect();
        for id in all {
            self.detect_exit(&id, reports);
        }
    }

    pub(super) fn container_status(&self, id: &ContainerId) -> Result<Reply, CallFault> {
        let containers = [&self.containers, &self.removed];
        match containers.iter().find_map(|some| some.get(id)) {
            Some(container) => {
                let mut status = container.status.clone();
                let reported = match (self.behaviour.stop_signals, container.spec.stop_signal) {
                    (StopSignals::Unreported | StopSignals::Unknown, _) => Signal::DEFAULT,
                    (_, Signal::DEFAULT) => Signal::TERMINATE,
                    (_, given) => given,
                };
                status.setup.stop_signal = reported;
                Ok(Reply::ContainerStatus(status.into()))
            }
            None => Err(no_container(id)),
        }
    }

    pub(super) fn list_containers(&mut self, filter: &ContainerFilter) -> Reply {
        let ContainerFilter {
            id,
            state,
            sandbox,
            labels,
            streamed: _,
        } = filter;
        let containers = self.containers.values().chain(self.removed.values());
        let passing = containers.filter(|container| {
            let (status, inside) = (&container.status, &container.spec.sandbox);
            // Like real runtimes, it accepts a prefix of an id.
            let wanted = id.as_ref();
            wanted.is_none_or(|id| status.id.as_str().starts_with(id.as_str()))
                && state.is_none_or(|state| status.state == state)
                && sandbox.as_ref().is_none_or(|wanted| inside == wanted)
                && carries(&status.labels, labels)
        });
        let mut listed: Vec<&Container> = passing.collect();
        listed.sort_by_key(|container| container.created_nth);
        if self.behaviour.siblings == Order::Random {
            self.random.shuffle(&mut listed);
        }
        Reply::Containers(listed.into_iter().map(Container::listing).collect())
    }

    /// The containers of a sandbox, in the order of [`Behaviour::siblings`](super::Behaviour).
    pub(super) fn containers_in(&mut self, sandbox: &SandboxId) -> Vec<ContainerId> {
        let containers = self.containers.values();
        let mut inside: Vec<&Container> = containers
            .filter(|container| container.spec.sandbox == *sandbox)
            .collect();
        inside.sort_by_key(|container| container.created_nth);
        if self.behaviour.siblings == Order::Random {
            self.random.shuffle(&mut inside);
        }
        let ids = inside.into_iter().map(|container| &container.status.id);
        ids.cloned().collect()
    }

    /// The container statuses of a sandbox, for an event's snapshot.
    pub(super) fn statuses_in(&mut self, sandbox: &SandboxId) -> Vec<Shared<ContainerStatus>> {
        let ids = self.containers_in(sandbox).into_iter();
        ids.filter_map(|id| Some(self.containers.get(&id)?.status.clone().into()))
            .collect()
    }

    pub(super) fn running_sandbox(&self, id: &SandboxId) -> Result<(), CallFault> {
        match self.sandboxes.get(id) {
            None => Err(no_sandbox(id)),
            Some(sandbox) if sandbox.state == SandboxState::Ready => Ok(()),
            Some(_) => Err(fault(
                StatusCode::FAILED_PRECONDITION,
                format!("sandbox {id} is not ready"),
            )),
        }
    }
}

/// The configured properties that a container's status reports.
fn details_of(spec: &ContainerSpec, image_id: &Text) -> ContainerSetup {
    let limit = spec.memory_bytes.map(|bytes| bytes.to_string());
    let names = ["memory_limit_in_bytes", "memory_swap_limit_in_bytes"];
    let limits = names.iter().zip(limit.iter().cycle());
    ContainerSetup {
        mounts: spec.mounts(),
        log_path: spec.full_log_path().into(),
        resources: Some(
            limits
                .map(|(name, limit)| (*name, limit.as_str()))
                .collect(),
        ),
        image_id: image_id.clone(),
        user: Some(User::default()),
        stop_signal: Signal::DEFAULT,
    }
}

fn metadata_of(spec: &ContainerSpec) -> ContainerMetadata {
    ContainerMetadata {
        name: spec.name().into(),
        attempt: spec.attempt,
    }
}

pub(super) fn no_container(id: &ContainerId) -> CallFault {
    fault(StatusCode::NOT_FOUND, format!("no container {id}"))
}
