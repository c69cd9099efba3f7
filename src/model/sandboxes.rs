//! Sandboxes: run, stop, removal, status and lists.

use std::sync::Arc;

use super::announce::{Leftover, NonTransition, Transition};
use super::behaviour::{Order, Restart};
use super::machine::{Machine, fault};
use crate::history::{
    CallFault, ContainerId, ContainerState, EventKind, HostInstant, Labels, PodUid, Reply,
    RuntimeNanos, RuntimeStatus, SandboxFilter, SandboxId, SandboxListing, SandboxMetadata,
    SandboxReport, SandboxSpec, SandboxState, SandboxStatus, StatusCode,
};

#[derive(Clone, Debug)]
pub(super) struct Sandbox {
    id: SandboxId,
    pub(super) spec: Arc<SandboxSpec>,
    pub(super) state: SandboxState,
    pub(super) created_at: RuntimeNanos,
    /// Position in the order of creation.
    created_nth: u64,
    /// Whether its removal has been refused.
    refused: bool,
    pub(super) addresses: Vec<String>,
}

/// The runtime handlers; the default one has no name.
pub(super) const HANDLERS: [&str; 4] = ["", "usual", "other", FAULTY];

/// The runtime handler whose OCI runtime crashes on demand.
pub const FAULTY: &str = "faulty";

impl Sandbox {
    pub(super) fn status(&self) -> SandboxStatus {
        SandboxStatus {
            id: self.id.clone(),
            metadata: Some(self.metadata()),
            state: self.state,
            created_at: self.created_at,
            ips: self.addresses.clone(),
            namespaces: Some(self.spec.namespaces()),
            labels: self.spec.labels.clone(),
            annotations: self.spec.annotations.clone(),
            runtime_handler: self.spec.runtime_handler.clone(),
        }
    }

    fn listing(&self) -> SandboxListing {
        SandboxListing {
            id: self.id.clone(),
            metadata: Some(self.metadata()),
            state: self.state,
            created_at: self.created_at,
            labels: self.spec.labels.clone(),
            annotations: self.spec.annotations.clone(),
            runtime_handler: self.spec.runtime_handler.clone(),
        }
    }

    fn metadata(&self) -> SandboxMetadata {
        SandboxMetadata {
            name: self.spec.name.as_str().into(),
            uid: self.spec.uid.clone(),
            namespace: self.spec.namespace.as_str().into(),
            attempt: self.spec.attempt,
        }
    }
}

impl Machine {
    pub(super) fn run_sandbox(&mut self, spec: &Arc<SandboxSpec>) -> Result<Reply, CallFault> {
        let id = SandboxId::from(self.random.id());
        let sandbox = Sandbox {
            id: id.clone(),
            spec: spec.clone(),
            state: SandboxState::Ready,
            created_at: self.creation_of(&spec.uid),
            created_nth: self.created_count,
            refused: false,
            addresses: addresses(spec, self.created_count),
        };
        let same = |other: &Sandbox| other.metadata() == sandbox.metadata();
        if let Some(other) = self.sandboxes.values().find(|other| same(other)) {
            let message = format!("sandbox {} has the same name, UID and attempt", other.id);
            return Err(fault(StatusCode::ALREADY_EXISTS, message));
        }
        self.created_count += 1;
        if let Err(refused) = check_spec(spec)
            && !self.behaviour.accepts_invalid_calls
        {
            self.keep_leftover(sandbox);
            return Err(refused);
        }
        self.sandboxes.insert(id.clone(), sandbox);
        for kind in [EventKind::Created, EventKind::Started] {
            self.announce(kind, ContainerId::from(&id), &id);
        }
        Ok(Reply::Sandbox(id))
    }

    /// The creation time of a new sandbox: now, and later than that of each other sandbox of the
    /// pod, since on a real node no two are created in the same nanosecond.
    fn creation_of(&self, pod: &PodUid) -> RuntimeNanos {
        let sandboxes = self.sandboxes.values();
        let others = sandboxes.filter(|other| other.spec.uid == *pod);
        let newest = others.map(|other| other.created_at.0 + 1).max();
        RuntimeNanos(newest.unwrap_or_default().max(self.now.realtime_ns))
    }

    /// Keeps or announces a sandbox that failed to run, if so configured.
    fn keep_leftover(&mut self, sandbox: Sandbox) {
        let id = sandbox.id.clone();
        if self.behaviour.leftover != Leftover::None {
            self.sandboxes.insert(id.clone(), sandbox);
        }
        if self.behaviour.leftover == Leftover::Announced {
            self.announce(EventKind::Created, ContainerId::from(&id), &id);
            self.sandboxes.remove(&id);
        }
    }

    /// The status of the most recent sandbox of the same pod.
    pub(super) fn latest_of_pod(&self, status: SandboxStatus) -> SandboxStatus {
        let uid = |metadata: &Option<SandboxMetadata>| metadata.clone().map(|it| it.uid);
        self.sandboxes
            .values()
            .filter(|other| Some(other.metadata().uid) == uid(&status.metadata))
            .max_by_key(|other| other.created_nth)
            .map_or(status, Sandbox::status)
    }

    /// Kills the containers of the sandbox, then stops it.
    pub(super) fn stop_sandbox(&mut self, id: &SandboxId) -> Reply {
        let Some(sandbox) = self.sandboxes.get(id) else {
            self.announce_unknown_id(EventKind::Stopped, &ContainerId::from(id));
            return Reply::Done;
        };
        if sandbox.state != SandboxState::Ready {
            if self
                .behaviour
                .reports_spuriously(NonTransition::RepeatedStop)
            {
                self.announce(EventKind::Stopped, ContainerId::from(id), id);
            }
            if self.behaviour.stops_dead_sandboxes {
                self.kill_containers(id);
            }
            return Reply::Done;
        }
        for container in self.containers_in(id) {
            if self.behaviour.stop_removes_exited
                && self.state_of(&container) == Some(ContainerState::Exited)
            {
                self.delete_container(&container, true);
            }
        }
        self.kill_containers(id);
        if let Some(sandbox) = self.sandboxes.get_mut(id) {
            sandbox.state = SandboxState::NotReady;
        }
        self.announce(EventKind::Stopped, ContainerId::from(id), id);
        Reply::Done
    }

    fn kill_containers(&mut self, id: &SandboxId) {
        let reports = self.behaviour.reports(Transition::EndWithSandbox);
        for container in self.containers_in(id) {
            self.kill_with(self.behaviour.sandbox_stop_exit_code, &container, reports);
        }
    }

    /// Kills the sandbox's own process from outside the runtime; its containers keep running.
    /// Returns whether it was running.
    pub fn kill_sandbox(&mut self, now: HostInstant, id: &SandboxId) -> bool {
        self.advance(now);
        let Some(sandbox) = self.sandboxes.get_mut(id) else {
            return false;
        };
        let was_running = sandbox.state == SandboxState::Ready;
        let is_known = self.up || self.behaviour.restart != Restart::Forgets;
        if was_running && is_known && self.behaviour.detects_sandbox_deaths {
            sandbox.state = SandboxState::NotReady;
            self.announce(EventKind::Stopped, ContainerId::from(id), id);
        }
        was_running
    }

    /// Runs and removes a container outside the CRI: without events, unless so configured.
    pub fn run_outside_cri(&mut self, now: HostInstant) {
        use EventKind::{Created, Deleted, Started, Stopped};
        self.advance(now);
        if self.behaviour.reports_spuriously(NonTransition::OutsideCri) {
            let id = ContainerId::from(self.random.id());
            for kind in [Created, Started, Stopped, Deleted] {
                self.announce_without_sandbox(kind, &id);
            }
        }
    }

    /// Stops the sandbox if it is ready, removes its containers, then the sandbox.
    pub(super) fn remove_sandbox(&mut self, id: &SandboxId) -> Result<Reply, CallFault> {
        let Some(sandbox) = self.sandboxes.get_mut(id) else {
            self.announce_unknown_id(EventKind::Deleted, &ContainerId::from(id));
            return Ok(Reply::Done);
        };
        let refuses = self.behaviour.refuses_removal_of_later_attempts;
        if refuses && sandbox.spec.attempt > 0 && !std::mem::replace(&mut sandbox.refused, true) {
            let message = format!("sandbox {id} is in use");
            return Err(fault(StatusCode::FAILED_PRECONDITION, message));
        }
        if sandbox.state == SandboxState::Ready {
            self.stop_sandbox(id);
        } else {
            self.kill_containers(id);
        }
        let reports = self.behaviour.reports(Transition::RemovalWithSandbox);
        if !self.behaviour.keeps_containers_of_removed_sandboxes {
            for container in self.containers_in(id) {
                self.delete_container(&container, reports);
            }
        }
        self.announce(EventKind::Deleted, ContainerId::from(id), id);
        self.sandboxes.remove(id);
        Ok(Reply::Done)
    }

    pub(super) fn sandbox_status(&mut self, id: &SandboxId) -> Result<Reply, CallFault> {
        let Some(sandbox) = self.sandboxes.get(id) else {
            return Err(no_sandbox(id));
        };
        let mut report = SandboxReport::from(sandbox.status());
        if self.behaviour.reports_containers {
            report.timestamp = self.next_timestamp();
            report.containers = self.statuses_in(id);
            // Newest first: of two containers of the same name a kubelet uses the first one.
            report.containers.reverse();
        }
        Ok(Reply::SandboxStatus(report))
    }

    pub(super) fn list_sandboxes(&mut self, filter: &SandboxFilter) -> Reply {
        let sandboxes = self.sandboxes.values();
        let passing = sandboxes.filter(|sandbox| {
            // Like real runtimes, it accepts a prefix of an id.
            let wanted = filter.id.as_ref();
            wanted.is_none_or(|id| sandbox.id.as_str().starts_with(id.as_str()))
                && filter.state.is_none_or(|state| sandbox.state == state)
                && carries(&sandbox.spec.labels, &filter.labels)
        });
        let mut listed: Vec<&Sandbox> = passing.collect();
        listed.sort_by_key(|sandbox| sandbox.created_nth);
        if self.behaviour.siblings == Order::Random {
            self.random.shuffle(&mut listed);
        }
        Reply::Sandboxes(listed.into_iter().map(Sandbox::listing).collect())
    }
}

/// The answer to the runtime's `Status` call.
pub(super) fn runtime_status() -> Reply {
    Reply::RuntimeStatus(RuntimeStatus {
        conditions: ["RuntimeReady", "NetworkReady"].map(str::to_owned).to_vec(),
        handlers: HANDLERS.map(str::to_owned).to_vec(),
    })
}

/// The network of the model's pods: reserved for documentation, so never a real pod's.
const NETWORK: &str = "192.0.2.";

/// The addresses of a sandbox, by its position in the order of creation.
fn addresses(spec: &SandboxSpec, created_nth: u64) -> Vec<String> {
    let address = || format!("{NETWORK}{}", created_nth % 254 + 1);
    spec.own_network.then(address).into_iter().collect()
}

/// Fails if the sandbox needs an unknown runtime handler or a sysctl, none of which the model has.
fn check_spec(spec: &SandboxSpec) -> Result<(), CallFault> {
    if let Some(sysctl) = spec.sysctls.keys().next() {
        let message = format!("sysctl {sysctl} is not in a separate kernel namespace");
        return Err(fault(StatusCode::UNKNOWN, message));
    }
    if !HANDLERS.contains(&spec.runtime_handler.as_str()) {
        let message = format!("no runtime handler {:?}", spec.runtime_handler);
        return Err(fault(StatusCode::NOT_FOUND, message));
    }
    Ok(())
}

/// Whether an object has all of the wanted labels.
pub(super) fn carries(own: &Labels, wanted: &Labels) -> bool {
    wanted
        .iter()
        .all(|(key, value)| own.get(key) == Some(value))
}

pub(super) fn no_sandbox(id: &SandboxId) -> CallFault {
    fault(StatusCode::NOT_FOUND, format!("no sandbox {id}"))
}
