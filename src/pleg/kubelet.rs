//! The state that the PLEGs of a kubelet share: the cache, the bounded channel of lifecycle events
//! to the sync loop, and the gauges of running pods and containers.
//!
//! Source: kubernetes `pkg/kubelet/pleg/pleg.go` (`PodLifecycleEvent`), `pkg/kubelet/kubelet.go`
//! (`plegChannelCapacity`), `pkg/kubelet/pleg/generic.go` (`updateRunningPodAndContainerMetrics`),
//! `pkg/kubelet/pleg/evented.go` (`updateRunningPodMetric`, `updateRunningContainerMetric`).

use std::collections::VecDeque;
use std::fmt;

use super::cache::Cache;
use super::pod_list::PodList;
use super::pod_status::PodStatus;
use super::state::{Moment, State};
use super::{SharedId, SharedUid};

/// The shared state of a kubelet's PLEGs.
#[derive(Clone, Debug)]
pub struct Kubelet {
    pub cache: Cache,
    pub channel: Channel,
    pub gauges: Gauges,
    gate: bool,
    evented: bool,
}

impl Kubelet {
    pub fn new(features: Features, channel_capacity: usize) -> Self {
        let gate = features != Features::Generic;
        Self {
            cache: Cache::new(gate),
            channel: Channel::new(channel_capacity),
            gauges: Gauges::default(),
            gate,
            evented: features == Features::EventedInUse,
        }
    }

    /// Whether the feature gate `EventedPLEG` is on.
    pub fn gate(&self) -> bool {
        self.gate
    }

    /// Whether the Evented PLEG is in use: it was started and has not fallen back.
    pub fn evented_in_use(&self) -> bool {
        self.evented
    }

    /// The Evented PLEG falls back to relisting, for the life of the process.
    pub fn fall_back(&mut self) {
        self.evented = false;
    }

    /// Sets the cache's global time, as the Evented PLEG does every five seconds without any call.
    pub fn bump_global_time(&mut self, now: Moment) {
        self.cache.update_time(now);
    }

    /// The cached addresses of a pod that has stopped, which replace those of its new status.
    ///
    /// Source: kubernetes `pkg/kubelet/pleg/generic.go` (`getPodIPs`).
    pub(super) fn preserved_ips(&self, new: &PodStatus) -> Option<Vec<String>> {
        if !new.ips.is_empty() || new.has_ready_sandbox() {
            return None;
        }
        let cached = self.cache.get(new.uid.as_str())?.status()?;
        (!cached.ips.is_empty()).then(|| cached.ips.clone())
    }
}

/// The configuration of the kubelet's PLEGs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Features {
    /// The gate `EventedPLEG` is off.
    Generic,
    /// The gate is on, and the Evented PLEG does not write the cache: it has fallen back, or the
    /// kubelet is 1.37 or later.
    GateOnly,
    /// The gate is on, and the Evented PLEG of kubelet 1.26 to 1.36 is in use.
    EventedInUse,
}

/// `kubelet_running_pods` and `kubelet_running_containers`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    running_pods: i64,
    containers: [Option<i64>; State::ALL.len()],
}

impl Gauges {
    /// The number of pods with a running sandbox. Events make it drift.
    pub fn running_pods(&self) -> i64 {
        self.running_pods
    }

    /// The number of containers in a state; `None` if there never was one.
    pub fn containers(&self, state: State) -> Option<i64> {
        self.containers[state as usize]
    }

    /// Recounts all pods. As in the kubelet, a state without containers keeps its old number.
    pub(super) fn count(&mut self, list: &PodList<'_>) {
        let mut pods = 0;
        let mut containers = [0; State::ALL.len()];
        for pod in list.iter() {
            let mut sandboxes = pod.sandboxes().iter();
            pods += i64::from(sandboxes.any(|sandbox| sandbox.state == State::Running));
            for container in pod.containers() {
                containers[container.state as usize] += 1;
            }
        }
        self.running_pods = pods;
        for (gauge, count) in self.containers.iter_mut().zip(containers) {
            if count > 0 {
                *gauge = Some(count);
            }
        }
    }

    /// Updates the gauges by the difference between two states of a pod.
    pub(super) fn follow(&mut self, was: Option<&Tally>, is: &Tally) {
        let ran = was.is_some_and(|was| was.sandbox_runs);
        self.running_pods += i64::from(is.sandbox_runs) - i64::from(ran);
        for state in State::ALL {
            let before = was.map_or(0, |was| was.containers[state as usize]);
            let after = is.containers[state as usize];
            if before > 0 || after > 0 {
                *self.containers[state as usize].get_or_insert(0) += after - before;
            }
        }
    }
}

/// The contribution of one pod to the gauges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    sandbox_runs: bool,
    containers: [i64; State::ALL.len()],
}

impl Tally {
    /// Counts containers. As in the kubelet, the sandbox counts only if it is among them.
    pub(super) fn new<'a>(sandbox: &str, items: impl Iterator<Item = (&'a str, State)>) -> Self {
        let mut tally = Self::default();
        for (id, state) in items {
            tally.containers[state as usize] += 1;
            tally.sandbox_runs |= state == State::Running && id == sandbox;
        }
        tally
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LifecycleKind {
    /// A container or a sandbox is running.
    ContainerStarted,
    /// It has exited.
    ContainerDied,
    /// It was removed. The kubelet does not sync the pod for it.
    ContainerRemoved,
    /// The pod was inspected on request, and nothing had changed.
    PodSync,
}

impl fmt::Display for LifecycleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LifecycleEvent {
    pub pod: SharedUid,
    pub kind: LifecycleKind,
    /// The container or sandbox; absent for [`LifecycleKind::PodSync`].
    pub container: Option<SharedId>,
}

/// The channel to the kubelet's sync loop, which both PLEGs share.
#[derive(Clone, Debug)]
pub struct Channel {
    capacity: usize,
    waiting: VecDeque<LifecycleEvent>,
    discarded: u64,
}

impl Channel {
    pub const KUBELET_CAPACITY: usize = 1000;

    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            waiting: VecDeque::new(),
            discarded: 0,
        }
    }

    /// Sends an event without blocking; a full channel discards and counts it.
    pub fn send(&mut self, event: LifecycleEvent) {
        if self.is_full() {
            self.discarded += 1;
        } else {
            self.waiting.push_back(event);
        }
    }

    pub fn receive(&mut self) -> Option<LifecycleEvent> {
        self.waiting.pop_front()
    }

    /// Removes all events, oldest first.
    pub fn drain(&mut self) -> impl Iterator<Item = LifecycleEvent> + '_ {
        self.waiting.drain(..)
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether the next event will be discarded. Only this makes an Evented PLEG of kubelet 1.26 to
    /// 1.36 unhealthy.
    pub fn is_full(&self) -> bool {
        self.waiting.len() >= self.capacity
    }

    /// The number of discarded events (`kubelet_pleg_discard_events`).
    pub fn discarded(&self) -> u64 {
        self.discarded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubelet_that_falls_back_keeps_the_gate_and_loses_the_events() {
        let mut kubelet = Kubelet::new(Features::EventedInUse, 1);
        assert!(kubelet.gate() && kubelet.evented_in_use());
        kubelet.fall_back();
        assert!(kubelet.gate() && !kubelet.evented_in_use());
    }
}
