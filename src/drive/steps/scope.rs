//! The scope of a step: what the names of the case stand for, and how its calls are made.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::drive::recording_client::RecordingClient;
use crate::history::{
    ContainerId, ContainerSpec, HostInstant, SandboxId, SandboxSpec, SubscriptionId,
};

/// The scope of a step: what the names of the case stand for, and how its calls are made.
#[derive(Clone, Debug, Default)]
pub(in crate::drive) struct Scope {
    sandboxes: BTreeMap<String, (SandboxId, Arc<SandboxSpec>)>,
    containers: BTreeMap<String, (ContainerId, Arc<ContainerSpec>)>,
    subscriptions: BTreeMap<String, SubscriptionId>,
    /// The current item of the innermost `repeat` with items.
    pub(super) item: Option<u8>,
    /// The runtime handler that all sandboxes have here, if they do.
    pub(super) handler: Option<String>,
    /// How soon each call must return.
    pub(super) call_bound: Option<Duration>,
    /// The client that makes the calls, if it is another than the run's.
    pub(super) client: Option<RecordingClient>,
    pub(super) clock: CaseClock,
}

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::drive) struct CaseClock {
    pub(super) began: HostInstant,
    /// The percentage by which the time that workloads take is scaled, if it is more than 100.
    pub(super) timeout_percent: u32,
}

impl Scope {
    /// A scope without names, at the beginning of the steps.
    pub(in crate::drive) fn new(began: HostInstant, timeout_percent: u32) -> Self {
        let clock = CaseClock {
            began,
            timeout_percent,
        };
        Self {
            clock,
            ..Self::default()
        }
    }

    pub(super) fn bind_sandbox(&mut self, name: &str, id: SandboxId, spec: Arc<SandboxSpec>) {
        self.sandboxes.insert(name.to_owned(), (id, spec));
    }

    pub(super) fn bind_container(&mut self, name: &str, id: ContainerId, spec: Arc<ContainerSpec>) {
        self.containers.insert(name.to_owned(), (id, spec));
    }

    pub(super) fn bind_subscription(&mut self, name: &str, id: SubscriptionId) {
        self.subscriptions.insert(name.to_owned(), id);
    }

    pub(super) fn subscription(&self, name: &str) -> Option<SubscriptionId> {
        self.subscriptions.get(name).copied()
    }

    /// A sandbox, and how it was asked for.
    pub(super) fn sandbox(&self, name: &str) -> Option<&(SandboxId, Arc<SandboxSpec>)> {
        self.sandboxes.get(name)
    }

    pub(super) fn container(&self, name: &str) -> Option<&ContainerId> {
        self.containers.get(name).map(|(id, _)| id)
    }

    pub(super) fn container_spec(&self, name: &str) -> Option<&Arc<ContainerSpec>> {
        self.containers.get(name).map(|(_, spec)| spec)
    }

    /// The id that events about this name carry.
    pub(super) fn subject(&self, name: &str) -> Option<ContainerId> {
        let container = self.container(name).cloned();
        container.or_else(|| self.sandbox(name).map(|(id, _)| ContainerId::from(id)))
    }
}

impl CaseClock {
    /// A time that a workload takes: on a slow node, too, it is to be past its first moments. It is
    /// never shorter than the case says.
    pub(super) fn scaled(self, time: Duration) -> Duration {
        time * self.timeout_percent.max(100) / 100
    }

    /// A time that the runtime is asked to wait, scaled likewise and in whole seconds.
    pub(super) fn whole_seconds(self, time: Duration) -> Duration {
        let time = self.scaled(time);
        Duration::from_secs(time.as_secs() + u64::from(time.subsec_nanos() > 0))
    }
}
