//! The scope of a step: what the names of the case stand for, and how its calls are made.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::Abort;
use crate::drive::recording_client::RecordingClient;
use crate::history::{
    ContainerId, ContainerSpec, HostInstant, SandboxId, SandboxSpec, SubscriptionId,
};

/// The scope of a step: what the names of the case stand for, and how its calls are made.
#[derive(Clone, Debug, Default)]
pub(in crate::drive) struct Scope {
    pub(super) sandboxes: Names<(SandboxId, Arc<SandboxSpec>)>,
    pub(super) containers: Names<(ContainerId, Arc<ContainerSpec>)>,
    pub(super) subscriptions: Names<SubscriptionId>,
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

/// The names that are bound to something of one kind.
#[derive(Clone, Debug)]
pub(in crate::drive) struct Names<T>(BTreeMap<String, T>);

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
}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Clone> Names<T> {
    pub(super) fn bind(&mut self, name: &str, to: T) {
        self.0.insert(name.to_owned(), to);
    }

    pub(super) fn get(&self, name: &str) -> Result<T, Abort> {
        let bound = self.0.get(name).cloned();
        bound.ok_or_else(|| Abort::unbound(name))
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
