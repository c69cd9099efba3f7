//! The two gauges that PLEGs keep: pods and containers that run.
//!
//! Source: kubernetes `pkg/kubelet/pleg/generic.go` (`updateRunningPodAndContainerMetrics`),
//! `pkg/kubelet/pleg/evented.go` (`updateRunningPodMetric`, `updateRunningContainerMetric`).

use super::list::PodList;
use super::state::State;

/// `kubelet_running_pods` and `kubelet_running_containers`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    running_pods: i64,
    containers: [Option<i64>; State::ALL.len()],
}

impl Gauges {
    /// How many pods are thought to have a running sandbox. Events make it drift.
    #[must_use]
    pub fn running_pods(&self) -> i64 {
        self.running_pods
    }

    /// How many containers are thought to be in a state; absent if none ever was.
    #[must_use]
    pub fn containers(&self, state: State) -> Option<i64> {
        self.containers[state as usize]
    }

    /// Counts anew. A state that nobody is in any more keeps its old number.
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

    /// Follows an event: adds what its pod now is, and takes away what it was, as far as known.
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

/// What one pod adds to the gauges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    sandbox_runs: bool,
    containers: [i64; State::ALL.len()],
}

impl Tally {
    /// Counts containers. The sandbox runs only if it is among them, and running.
    pub(super) fn of<'a>(sandbox: &str, items: impl Iterator<Item = (&'a str, State)>) -> Self {
        let mut tally = Self::default();
        for (id, state) in items {
            tally.containers[state as usize] += 1;
            tally.sandbox_runs |= state == State::Running && id == sandbox;
        }
        tally
    }
}
