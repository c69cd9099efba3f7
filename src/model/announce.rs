//! Events and answers on their way out of the machine: events about transitions, and about
//! occurrences that a runtime may mistake for one, go to all subscribers; answers pass the hooks.

use std::time::Duration;

use super::behaviour::Answer;
use super::machine::Machine;
use crate::history::{CallFault, ContainerId, Event, EventKind, Reply, Request, SandboxId};

impl Machine {
    /// Sends an event about a container, or about a sandbox under its own id, to the subscribers.
    pub(super) fn announce(&mut self, kind: EventKind, id: ContainerId, sandbox: &SandboxId) {
        let Some(sandbox) = self.sandboxes.get(sandbox) else {
            return;
        };
        let mut status = sandbox.status();
        if self.behaviour.resolves_sandbox_by_pod_uid {
            status = self.latest_of_pod(status);
        }
        let event = Event {
            container: id,
            kind,
            created_at: self.next_timestamp(),
            containers: self.statuses_in(&status.id),
            sandbox: Some(status.into()),
        };
        self.send(&event);
    }

    /// Sends an event about an unknown id, if so configured.
    pub(super) fn announce_unknown_id(&mut self, kind: EventKind, id: &ContainerId) {
        if self.behaviour.reports_spuriously(NonTransition::UnknownId) {
            self.announce_without_sandbox(kind, id);
        }
    }

    /// Sends an event without a sandbox or container statuses.
    pub(super) fn announce_without_sandbox(&mut self, kind: EventKind, id: &ContainerId) {
        let event = Event {
            container: id.clone(),
            kind,
            created_at: self.next_timestamp(),
            containers: Vec::new(),
            sandbox: None,
        };
        self.send(&event);
    }

    /// The answer after the hooks, with its delay.
    pub(super) fn apply_reply_hooks(
        &self,
        request: &Request,
        result: Result<Reply, CallFault>,
    ) -> Answer {
        let after = (!self.is_blocked(request)).then_some(Duration::ZERO);
        let mut answer = Answer { after, result };
        let hooks = self.behaviour.replies.iter();
        hooks.for_each(|hook| hook(request, &mut answer));
        answer
    }

    /// Whether a list call blocks because a full subscriber queue blocks the event stream.
    fn is_blocked(&self, request: &Request) -> bool {
        let lists = matches!(
            request,
            Request::ListContainers { .. } | Request::FindContainers(_)
        );
        lists && self.behaviour.lists_wait_for_events && self.event_bus.is_blocked(&self.behaviour)
    }

    /// Resolves an id prefix to the only container that has it, if the behaviour accepts prefixes;
    /// otherwise returns the id as requested.
    pub(super) fn resolve_id(&self, requested: &ContainerId) -> ContainerId {
        if !self.behaviour.accepts_id_prefixes || requested.as_str().is_empty() {
            return requested.clone();
        }
        let mut matching = self
            .containers
            .keys()
            .filter(|id| id.as_str().starts_with(requested.as_str()));
        match (matching.next(), matching.next()) {
            (Some(id), None) => id.clone(),
            _ => requested.clone(),
        }
    }

    /// Deletes a container that no longer runs; DELETED carries the requested id if so configured.
    pub(super) fn delete_by_requested_id(&mut self, id: &ContainerId, requested: &ContainerId) {
        let container = self.containers.get(id);
        let sandbox = container.map(|container| container.spec.sandbox.clone());
        let reports_requested = self.behaviour.reports_requested_id && requested != id;
        self.delete_container(id, !reports_requested);
        if let Some(sandbox) = sandbox.filter(|_| reports_requested) {
            self.announce(EventKind::Deleted, requested.clone(), &sandbox);
        }
    }
}

/// A state transition within a call that requires an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    /// A container that failed to start has exited: STOPPED.
    FailedStart,
    /// A container is killed in order to be removed: STOPPED.
    ForcedRemoval,
    /// A container is killed when its sandbox is stopped: STOPPED.
    EndWithSandbox,
    /// A container is removed together with its sandbox: DELETED.
    RemovalWithSandbox,
    /// A container ends with the container whose PID namespace it shares: STOPPED.
    EndWithTarget,
    /// A container has exited and the OCI runtime crashes while deleting it: STOPPED.
    EndInCrash,
    /// A paused container exits: STOPPED.
    EndWhilePaused,
    /// A container is restored from a checkpoint: STARTED.
    Restore,
    /// A container that failed to be restored has exited: STOPPED.
    FailedRestore,
}

/// An occurrence that changes no container's state and must not cause the event named here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NonTransition {
    /// A stopped container is stopped again: STOPPED.
    RepeatedStop,
    /// A container that never ran is removed: STOPPED, as with CRI-O.
    StopOfNeverRun,
    /// The start of a running or exited container is refused: STARTED.
    RefusedStart,
    /// A command executed in a container ends: STOPPED of the container.
    ExecEnd,
    /// A call that changes no state: STARTED of the container in question.
    NoEventCall,
    /// A call to the image service: CREATED of all containers.
    ImageCall,
    /// An unknown or removed id is stopped or removed: STOPPED or DELETED of this id.
    UnknownId,
    /// A container is run outside the CRI: all of its events.
    OutsideCri,
    /// Stopping a container fails and it keeps running: STOPPED.
    FailedKill,
    /// A container's process is frozen: STOPPED.
    Freeze,
    /// A checkpoint of a container is made: STOPPED of the container.
    Checkpoint,
}

/// The remains of a sandbox or a container that could not be created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Leftover {
    #[default]
    None,
    /// A CREATED event, although the object does not exist.
    Announced,
    /// The object is listed, although no event announced it.
    Listed,
}
