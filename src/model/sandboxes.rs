//! Sandboxes: run, stop, remove, tell.

use std::sync::Arc;

use super::behaviour::{Leftover, NonTransition, Order, Transition};
use super::machine::{Machine, fault};
use crate::history::{
    CallFault, ContainerId, EventKind, HostInstant, Labels, Reply, RuntimeNanos, RuntimeStatus,
    SandboxFilter, SandboxId, SandboxListing, SandboxMetadata, SandboxReport, SandboxSpec,
    SandboxState, SandboxStatus, StatusCode,
};

/// A sandbox.
#[derive(Clone, Debug)]
pub(super) struct Sandbox {
    id: SandboxId,
    pub(super) spec: Arc<SandboxSpec>,
    pub(super) state: SandboxState,
    created_at: RuntimeNanos,
    made: u64,
    addresses: Vec<String>,
}

/// The handlers that there are; the default one has no name.
pub(super) const HANDLERS: [&str; 4] = ["", "usual", "other", FAULTY];

/// The handler whose low-level runtime dies on demand.
pub const FAULTY: &str = "faulty";

impl Sandbox {
    pub(super) fn status(&self) -> SandboxStatus {
        SandboxStatus {
            id: self.id.clone(),
            metadata: Some(self.metadata()),
            state: self.state,
            created_at: self.created_at,
            ips: self.addresses.clone(),
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
            created_at: RuntimeNanos(self.now.realtime_ns),
            made: self.made,
            addresses: addresses(spec, self.made),
        };
        let same = |other: &Sandbox| other.metadata() == sandbox.metadata();
        if let Some(other) = self.sandboxes.values().find(|other| same(other)) {
            let message = format!("sandbox {} has the same name, UID and attempt", other.id);
            return Err(fault(StatusCode::ALREADY_EXISTS, message));
        }
        self.made += 1;
        if let Err(refused) = can_run(spec) {
            self.leave(sandbox);
            return Err(refused);
        }
        self.sandboxes.insert(id.clone(), sandbox);
        for kind in [EventKind::Created, EventKind::Started] {
            self.announce(kind, ContainerId::from(&id), &id);
        }
        Ok(Reply::Sandbox(id))
    }

    /// What could not be run.
    fn leave(&mut self, sandbox: Sandbox) {
        let id = sandbox.id.clone();
        if self.behaviour.leftover != Leftover::None {
            self.sandboxes.insert(id.clone(), sandbox);
        }
        if self.behaviour.leftover == Leftover::Told {
            self.announce(EventKind::Created, ContainerId::from(&id), &id);
            self.sandboxes.remove(&id);
        }
    }

    /// The status of the sandbox that was made last of this one's pod.
    pub(super) fn latest_of_pod(&self, status: SandboxStatus) -> SandboxStatus {
        let uid = |metadata: &Option<SandboxMetadata>| metadata.clone().map(|it| it.uid);
        let same = self.sandboxes.values();
        let same = same.filter(|other| Some(other.metadata().uid) == uid(&status.metadata));
        let latest = same.max_by_key(|other| other.made);
        latest.map_or(status, Sandbox::status)
    }

    /// Kills what runs in the sandbox, then ends it.
    pub(super) fn stop_sandbox(&mut self, id: &SandboxId) -> Reply {
        let Some(sandbox) = self.sandboxes.get(id) else {
            self.tell_unknown(EventKind::Stopped, &ContainerId::from(id));
            return Reply::Done;
        };
        if sandbox.state != SandboxState::Ready {
            if self.behaviour.also_tells(NonTransition::RepeatedStop) {
                self.announce(EventKind::Stopped, ContainerId::from(id), id);
            }
            if self.behaviour.stops_dead_sandboxes {
                self.kill_containers(id);
            }
            return Reply::Done;
        }
        self.kill_containers(id);
        if let Some(sandbox) = self.sandboxes.get_mut(id) {
            sandbox.state = SandboxState::NotReady;
        }
        self.announce(EventKind::Stopped, ContainerId::from(id), id);
        Reply::Done
    }

    fn kill_containers(&mut self, id: &SandboxId) {
        let tells = self.behaviour.tells(Transition::EndWithSandbox);
        for container in self.containers_in(id) {
            self.kill_with(self.behaviour.kill_with_sandbox, &container, tells);
        }
    }

    /// Somebody kills the sandbox's own process: its containers run on. Says whether there was one.
    pub fn kill_sandbox(&mut self, now: HostInstant, id: &SandboxId) -> bool {
        self.advance(now);
        let Some(sandbox) = self.sandboxes.get_mut(id) else {
            return false;
        };
        let lived = sandbox.state == SandboxState::Ready;
        if lived && self.behaviour.notices_sandbox_deaths {
            sandbox.state = SandboxState::NotReady;
            self.announce(EventKind::Stopped, ContainerId::from(id), id);
        }
        lived
    }

    /// A container lives, and is removed, that was not made through the CRI: nothing is told of it.
    pub fn live_outside_cri(&mut self, now: HostInstant) {
        use EventKind::{Created, Deleted, Started, Stopped};
        self.advance(now);
        if self.behaviour.also_tells(NonTransition::OutsideCri) {
            let id = ContainerId::from(self.random.id());
            for kind in [Created, Started, Stopped, Deleted] {
                self.tell_of_nothing(kind, &id);
            }
        }
    }

    /// Stops the sandbox if it runs, removes its containers, then the sandbox.
    pub(super) fn remove_sandbox(&mut self, id: &SandboxId) -> Reply {
        if !self.sandboxes.contains_key(id) {
            self.tell_unknown(EventKind::Deleted, &ContainerId::from(id));
            return Reply::Done;
        }
        if self.sandboxes[id].state == SandboxState::Ready {
            self.stop_sandbox(id);
        } else {
            self.kill_containers(id);
        }
        let tells = self.behaviour.tells(Transition::RemovalWithSandbox);
        for container in self.containers_in(id) {
            self.delete_container(&container, tells);
        }
        self.announce(EventKind::Deleted, ContainerId::from(id), id);
        self.sandboxes.remove(id);
        Reply::Done
    }

    /// Whether a list can be had so.
    pub(super) fn can_stream(&self, streamed: bool) -> Result<(), CallFault> {
        if streamed && !self.behaviour.streams_lists {
            let message = "lists are not streamed".to_owned();
            return Err(fault(StatusCode::UNIMPLEMENTED, message));
        }
        Ok(())
    }

    pub(super) fn sandbox_status(&mut self, id: &SandboxId) -> Result<Reply, CallFault> {
        let Some(sandbox) = self.sandboxes.get(id) else {
            return Err(no_sandbox(id));
        };
        let mut report = SandboxReport::from(sandbox.status());
        if self.behaviour.reports_containers {
            report.timestamp = self.stamp();
            report.containers = self.statuses_in(id);
            // The newest first: of two that have the same name a kubelet takes the first one.
            report.containers.reverse();
        }
        Ok(Reply::SandboxStatus(report))
    }

    pub(super) fn list_sandboxes(&mut self, filter: &SandboxFilter) -> Reply {
        let sandboxes = self.sandboxes.values();
        let passing = sandboxes.filter(|sandbox| {
            // As runtimes do, it takes the beginning of an id for the id.
            let wanted = filter.id.as_ref();
            wanted.is_none_or(|id| sandbox.id.as_str().starts_with(id.as_str()))
                && filter.state.is_none_or(|state| sandbox.state == state)
                && carries(&sandbox.spec.labels, &filter.labels)
        });
        let mut listed: Vec<&Sandbox> = passing.collect();
        listed.sort_by_key(|sandbox| sandbox.made);
        if self.behaviour.siblings == Order::Any {
            self.random.shuffle(&mut listed);
        }
        Reply::Sandboxes(listed.into_iter().map(Sandbox::listing).collect())
    }
}

/// What the model says of itself.
pub(super) fn status() -> Reply {
    Reply::RuntimeStatus(RuntimeStatus {
        conditions: ["RuntimeReady", "NetworkReady"].map(str::to_owned).to_vec(),
        handlers: HANDLERS.map(str::to_owned).to_vec(),
    })
}

/// The network of the model's pods: no address of it is any real pod's.
const NETWORK: &str = "192.0.2.";

/// The addresses of the sandbox that was made so many sandboxes after the first.
fn addresses(spec: &SandboxSpec, made: u64) -> Vec<String> {
    let address = || format!("{NETWORK}{}", made % 254 + 1);
    spec.own_network.then(address).into_iter().collect()
}

/// A sandbox needs a handler that there is, and kernel parameters that the kernel knows: the model
/// has three of the former, and none of the latter.
fn can_run(spec: &SandboxSpec) -> Result<(), CallFault> {
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

/// Whether these labels are among those of an object.
pub(super) fn carries(own: &Labels, wanted: &Labels) -> bool {
    wanted
        .iter()
        .all(|(key, value)| own.get(key) == Some(value))
}

pub(super) fn no_sandbox(id: &SandboxId) -> CallFault {
    fault(StatusCode::NOT_FOUND, format!("no sandbox {id}"))
}
