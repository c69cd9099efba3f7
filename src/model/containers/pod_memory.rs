//! The memory limit of a pod, and the containers that an OOM kill by it affects.

use super::super::behaviour::PodKill;
use super::super::machine::Machine;
use super::super::process::ProcessExit;
use crate::history::{ContainerId, ContainerState};

impl Machine {
    /// The effective memory limit of a container: the lower of its own and its pod's.
    pub(in crate::model) fn memory_limit(&self, id: &ContainerId) -> Option<u64> {
        let own = self.containers.get(id)?.spec.memory_bytes;
        own.into_iter().chain(self.pod_memory_limit(id)).min()
    }

    fn pod_memory_limit(&self, id: &ContainerId) -> Option<u64> {
        let container = self.containers.get(id)?;
        let sandbox = self.sandboxes.get(&container.spec.sandbox)?;
        sandbox.spec.memory_bytes
    }

    /// Handles an OOM kill that the pod's limit caused: the pod has one and the container has none.
    pub(super) fn apply_pod_kill(&mut self, id: &ContainerId) {
        if self.pod_memory_limit(id).is_none() {
            return;
        }
        let Some(killed) = self.containers.get_mut(id) else {
            return;
        };
        if killed.spec.memory_bytes.is_some() {
            return;
        }
        let sandbox = killed.spec.sandbox.clone();
        match self.behaviour.pod_kill {
            PodKill::MarksOwner => {}
            PodKill::MarksNone => {
                if let Some((end, _)) = &mut killed.ended {
                    end.oom = false;
                }
            }
            PodKill::MarksAll => {
                for sibling in self.containers_in(&sandbox) {
                    self.mark_oom_killed(&sibling);
                }
            }
            PodKill::EndsAll => {
                for sibling in self.containers_in(&sandbox) {
                    self.kill(&sibling, true);
                }
            }
        }
    }

    /// Marks a container as OOM killed, for any later exit.
    pub(super) fn mark_oom_killed(&mut self, id: &ContainerId) {
        let Some(container) = self.containers.get_mut(id) else {
            return;
        };
        if container.status.state == ContainerState::Running {
            container.child_killed = true;
            container.status.reason = (self.behaviour.exit_reason)(ProcessExit::KILLED).into();
        }
    }
}
