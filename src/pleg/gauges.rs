//! The gauges of PLEGs: running pods and containers.
//!
//! Source: kubernetes `pkg/kubelet/pleg/generic.go` (`updateRunningPodAndContainerMetrics`),
//! `pkg/kubelet/pleg/evented.go` (`updateRunningPodMetric`, `updateRunningContainerMetric`).

use super::pod_list::PodList;
use super::state::State;

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
