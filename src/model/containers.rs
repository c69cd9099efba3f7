//! Containers: created, started, stopped, removed, told; and the processes in them.

mod death;
mod pod_memory;

use std::sync::Arc;
use std::time::Duration;

use super::agenda::later;
use super::behaviour::{
    ChildKill, Leftover, NonTransition, Order, Restart, StopSignals, Transition,
};
use super::machine::{Deed, Machine, Outcome, fault};
use super::process::{End, Life};
use super::sandboxes::{FAULTY, carries, no_sandbox};
use crate::history::{
    CallFault, ContainerDetails, ContainerFilter, ContainerId, ContainerListing, ContainerMetadata,
    ContainerReport, ContainerSpec, ContainerState, ContainerStatus, EventKind, Flaw, HostInstant,
    Reply, RuntimeNanos, SandboxId, SandboxState, Shared, Signal, StatusCode, Text, User,
};

/// A container.
#[derive(Clone, Debug)]
pub(super) struct Container {
    pub(super) spec: Arc<ContainerSpec>,
    pub(super) status: ContainerStatus,
    made: u64,
    /// Its process, while that lives.
    pub(super) life: Option<Life>,
    /// How its process ended, once it has, noticed or not.
    ended: Option<(End, HostInstant)>,
    /// Whether the kill of a child for its memory is told as its reason.
    child_killed: bool,
    /// Whether it has ended and left a child that lives on.
    child_left: bool,
    /// Where the low-level runtime is still to die, if its handler does so on demand.
    pub(super) demands: Option<Flaw>,
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
            image: status.image,
        }
    }
}

impl Machine {
    pub(super) fn create_container(
        &mut self,
        spec: &Arc<ContainerSpec>,
    ) -> Result<Reply, CallFault> {
        let made = self.made_container(spec);
        if made.is_err() && self.sandboxes.contains_key(&spec.sandbox) {
            let id = ContainerId::from(self.random.id());
            match self.behaviour.leftover {
                Leftover::None => {}
                Leftover::Told => self.announce(EventKind::Created, id, &spec.sandbox),
                Leftover::Listed => self.insert_container(id, spec, Text::default()),
            }
        }
        made
    }

    fn made_container(&mut self, spec: &Arc<ContainerSpec>) -> Result<Reply, CallFault> {
        self.running_sandbox(&spec.sandbox)?;
        let Some(image) = self.image(&spec.image) else {
            let message = format!("no image {}: pull it first", spec.image);
            return Err(fault(StatusCode::NOT_FOUND, message));
        };
        let image_ref = Text::from(image.id.as_str());
        if spec.flaw == Some(Flaw::User) {
            let message = format!("image {} has no such user", spec.image);
            return Err(fault(StatusCode::UNKNOWN, message));
        }
        let metadata = metadata_of(spec);
        let same = |other: &Container| {
            other.spec.sandbox == spec.sandbox && other.status.metadata.as_ref() == Some(&metadata)
        };
        if let Some(other) = self.containers.values().find(|other| same(other)) {
            let message = format!(
                "container {} has the same name and attempt",
                other.status.id
            );
            return Err(fault(StatusCode::ALREADY_EXISTS, message));
        }
        if let Some(target) = &spec.pid_target
            && self.state_of(target) != Some(ContainerState::Running)
        {
            let message = format!("container {target}, whose PID namespace is meant, does not run");
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
            image: Some(spec.image.as_str().into()),
            image_ref,
            reason: Text::default(),
            message: String::new(),
            labels: spec.labels.clone(),
            annotations: spec.annotations.clone(),
            details: Some(details.into()),
        };
        let sandbox = self.sandboxes.get(&spec.sandbox);
        let faulty = sandbox.is_some_and(|it| it.spec.runtime_handler == FAULTY);
        let container = Container {
            spec: spec.clone(),
            status,
            made: self.made,
            life: None,
            ended: None,
            child_killed: false,
            child_left: false,
            demands: spec.flaw.filter(|_| faulty),
        };
        self.made += 1;
        self.containers.insert(id, container);
    }

    /// What a container is, while it is there.
    pub(super) fn state_of(&self, id: &ContainerId) -> Option<ContainerState> {
        self.containers
            .get(id)
            .map(|container| container.status.state)
    }

    /// Tells an event of a container to which nothing has happened.
    pub(super) fn tell_again(&mut self, kind: EventKind, id: &ContainerId) {
        if let Some(container) = self.containers.get(id) {
            let sandbox = container.spec.sandbox.clone();
            self.announce(kind, id.clone(), &sandbox);
        }
    }

    pub(super) fn stop_container(&mut self, asked: &ContainerId, grace: Duration) -> Outcome {
        let id = &self.whole_id(asked);
        let done = Outcome::Done(Ok(Reply::Done));
        let Some(container) = self.containers.get(id) else {
            self.tell_unknown(EventKind::Stopped, id);
            return done;
        };
        let sandbox = container.spec.sandbox.clone();
        if container.status.state != ContainerState::Running {
            if self.behaviour.also_tells(NonTransition::RepeatedStop) {
                self.announce(EventKind::Stopped, id.clone(), &sandbox);
            }
            return done;
        }
        let (given, life) = (container.spec.stop_signal, container.life);
        if self.dies(id, Flaw::CrashAtKill) {
            if self.behaviour.also_tells(NonTransition::FailedKill) {
                self.announce(EventKind::Stopped, id.clone(), &sandbox);
            }
            let message = "the low-level runtime was killed";
            return Outcome::Done(Err(fault(StatusCode::UNKNOWN, message)));
        }
        let signal = match self.behaviour.stop_signals {
            StopSignals::Sent | StopSignals::Unreported => given,
            StopSignals::Told | StopSignals::Unknown => Signal::DEFAULT,
        };
        let on_stop = life.and_then(|life| life.on_stop(signal));
        if self.behaviour.stops_wait_for_stops && self.is_being_stopped(id) {
            return Outcome::WhenExited(id.clone());
        }
        let grace = grace * self.behaviour.grace_percent / 100;
        if grace.is_zero() {
            self.kill(id, true);
            return done;
        }
        if let Some(end) = on_stop.filter(|_| self.behaviour.sends_stop_signal) {
            self.end_process(id, end);
            self.notice(id, true);
            return done;
        }
        self.kill_after(grace, id);
        Outcome::WhenExited(id.clone())
    }

    pub(super) fn remove_container(&mut self, asked: &ContainerId) -> Result<Reply, CallFault> {
        let id = &self.whole_id(asked);
        let Some(container) = self.containers.get(id) else {
            self.tell_unknown(EventKind::Deleted, id);
            return Ok(Reply::Done);
        };
        if self.behaviour.refuses_removal_of_started && container.status.started_at.0 != 0 {
            let message = format!("cannot delete running task {id}");
            return Err(fault(StatusCode::FAILED_PRECONDITION, message));
        }
        let sandbox = container.spec.sandbox.clone();
        let tells_more = self.behaviour.also_tells(NonTransition::EndOfNeverRun);
        match container.status.state {
            ContainerState::Created if tells_more => {
                self.announce(EventKind::Stopped, id.clone(), &sandbox);
            }
            ContainerState::Running => {
                let tells = self.behaviour.tells(Transition::ForcedRemoval);
                self.kill(id, tells);
            }
            ContainerState::Created | ContainerState::Exited | ContainerState::Unknown(_) => {}
        }
        self.delete_as_asked(id, asked);
        Ok(Reply::Done)
    }

    /// Forgets a container; `tells` by an event or not.
    pub(super) fn delete_container(&mut self, id: &ContainerId, tells: bool) {
        let Some(container) = self.containers.remove(id) else {
            return;
        };
        if tells {
            self.announce(EventKind::Deleted, id.clone(), &container.spec.sandbox);
        }
        let forgets_after = self.behaviour.late_by(self.behaviour.forgets_after);
        if !forgets_after.is_zero() {
            let at = later(self.now, forgets_after);
            self.agenda.put(at, Deed::Forget(id.clone()));
            self.leaving.insert(id.clone(), container);
        }
    }

    /// Kills a container's process, if it lives, and notices that.
    pub(super) fn kill(&mut self, id: &ContainerId, tells: bool) {
        self.kill_with(137, id, tells);
    }

    /// The same, and this is taken for its exit code.
    pub(super) fn kill_with(&mut self, code: i32, id: &ContainerId, tells: bool) {
        self.end_process(id, End::exit(code));
        self.notice(id, tells);
    }

    /// A process is no more, whether anybody notices or not; says whether it lived.
    pub(super) fn end_process(&mut self, id: &ContainerId, end: End) -> bool {
        let Some(container) = self.containers.get_mut(id) else {
            return false;
        };
        let Some(life) = container.life.take() else {
            return false;
        };
        let oom = end.oom || container.child_killed;
        container.ended = Some((End { oom, ..end }, self.now));
        let sandbox = self.sandboxes.get(&container.spec.sandbox);
        let shared = sandbox.is_some_and(|sandbox| sandbox.spec.shared_pid);
        let is_first = !shared && container.spec.pid_target.is_none();
        container.child_left = life.leaves_child && !is_first;
        if end.oom {
            self.count_oom_kill();
            self.put_kill_down(id);
        }
        if is_first {
            self.end_joined(id);
        }
        true
    }

    /// The first process of a PID namespace has ended: the kernel kills all others in it.
    fn end_joined(&mut self, target: &ContainerId) {
        let joined = |container: &&Container| container.spec.pid_target.as_ref() == Some(target);
        let joined = self.containers.values().filter(joined);
        let joined: Vec<ContainerId> = joined.map(|it| it.status.id.clone()).collect();
        let tells = self.behaviour.tells(Transition::EndWithTarget);
        for id in joined {
            self.kill(&id, tells);
        }
    }

    /// Whether a container has ended and a child of it holds its output open.
    pub(super) fn output_is_open(&self, id: &ContainerId) -> bool {
        let container = self.containers.get(id);
        container.is_some_and(|container| container.child_left)
    }

    /// The kernel kills a child; the container's process lives on.
    pub(super) fn kill_child(&mut self, id: &ContainerId) {
        if let Some(container) = self.containers.get(id)
            && container.life.is_some()
        {
            if self.behaviour.child_kill == ChildKill::Marks {
                self.mark_killed(id);
            }
            self.count_oom_kill();
            if self.behaviour.child_kill == ChildKill::Ends {
                self.end_process(id, End::exit(137));
                self.notice(id, true);
            }
        }
    }

    /// The daemon learns that a process has ended, if it has; `tells` by an event or not.
    pub(super) fn notice(&mut self, id: &ContainerId, tells: bool) {
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
        let mistaken = target.filter(|_| self.behaviour.mistakes_targets);
        let crashes = self.dies(id, Flaw::CrashAtDelete);
        let tells = tells && (!crashes || self.behaviour.tells(Transition::EndInCrash));
        if tells {
            let told = mistaken.unwrap_or_else(|| id.clone());
            self.announce(EventKind::Stopped, told, &sandbox);
        }
        self.answer_waiting(id);
    }

    pub(super) fn notice_all(&mut self, tells: bool) {
        let all: Vec<ContainerId> = self.containers.keys().cloned().collect();
        for id in all {
            self.notice(&id, tells);
        }
    }

    /// After a restart: what has ended meanwhile?
    pub(super) fn find_exits(&mut self) {
        match self.behaviour.restart {
            Restart::Finds => self.notice_all(true),
            Restart::FindsSilently => self.notice_all(false),
            Restart::Guesses => {
                let unnoticed = |container: &&mut Container| {
                    container.ended.is_some() && container.status.state == ContainerState::Running
                };
                for container in self.containers.values_mut().filter(unnoticed) {
                    let status = &mut container.status;
                    status.state = ContainerState::Exited;
                    status.finished_at = RuntimeNanos(self.now.realtime_ns);
                    status.exit_code = 255;
                    status.reason = "Unknown".into();
                }
            }
            Restart::Forgets => {}
        }
    }

    /// After a restart, of a behaviour that watches only what it has started itself.
    pub(super) fn lose_monitors(&mut self) {
        if self.behaviour.loses_monitors {
            let running = self.containers.iter().filter(|(_, it)| it.life.is_some());
            self.unwatched = running.map(|(id, _)| id.clone()).collect();
        }
    }

    pub(super) fn container_status(&self, id: &ContainerId) -> Result<Reply, CallFault> {
        let containers = [&self.containers, &self.leaving];
        match containers.iter().find_map(|some| some.get(id)) {
            Some(container) => Ok(Reply::ContainerStatus(ContainerReport {
                status: container.status.clone().into(),
                stop_signal: match (self.behaviour.stop_signals, container.spec.stop_signal) {
                    (StopSignals::Unreported | StopSignals::Unknown, _) => Signal::DEFAULT,
                    (_, Signal::DEFAULT) => Signal::TERMINATE,
                    (_, given) => given,
                },
            })),
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
        let containers = self.containers.values().chain(self.leaving.values());
        let passing = containers.filter(|container| {
            let (status, inside) = (&container.status, &container.spec.sandbox);
            // As runtimes do, it takes the beginning of an id for the id.
            let wanted = id.as_ref();
            wanted.is_none_or(|id| status.id.as_str().starts_with(id.as_str()))
                && state.is_none_or(|state| status.state == state)
                && sandbox.as_ref().is_none_or(|wanted| inside == wanted)
                && carries(&status.labels, labels)
        });
        let mut listed: Vec<&Container> = passing.collect();
        listed.sort_by_key(|container| container.made);
        if self.behaviour.siblings == Order::Any {
            self.random.shuffle(&mut listed);
        }
        Reply::Containers(listed.into_iter().map(Container::listing).collect())
    }

    /// The containers of a sandbox in the order of their making, or in any.
    pub(super) fn containers_in(&mut self, sandbox: &SandboxId) -> Vec<ContainerId> {
        let containers = self.containers.values();
        let mut inside: Vec<&Container> = containers
            .filter(|container| container.spec.sandbox == *sandbox)
            .collect();
        inside.sort_by_key(|container| container.made);
        if self.behaviour.siblings == Order::Any {
            self.random.shuffle(&mut inside);
        }
        let ids = inside.into_iter().map(|container| &container.status.id);
        ids.cloned().collect()
    }

    /// What an event's snapshot shows of a sandbox's containers.
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

/// What a container was given, as it is told.
fn details_of(spec: &ContainerSpec, image_id: &Text) -> ContainerDetails {
    let limit = spec.memory_bytes.map(|bytes| bytes.to_string());
    let names = ["memory_limit_in_bytes", "memory_swap_limit_in_bytes"];
    let limits = names.iter().zip(limit.iter().cycle());
    ContainerDetails {
        mounts: spec.mounts(),
        log_path: spec.full_log_path().into(),
        resources: Some(
            limits
                .map(|(name, limit)| (*name, limit.as_str()))
                .collect(),
        ),
        image_id: image_id.clone(),
        user: Some(User::default()),
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
