//! Memory that containers share: the limit of their pod, and whom a kill by it is put down to.

use super::super::behaviour::PodKill;
use super::super::machine::Machine;
use super::super::process::End;
use crate::history::{ContainerId, ContainerState};

impl Machine {
    /// How much memory the kernel lets a container use: the lower of its limit and its pod's.
    pub(in crate::model) fn memory_of(&self, id: &ContainerId) -> Option<u64> {
        let own = self.containers.get(id)?.spec.memory_bytes;
        own.into_iter().chain(self.memory_of_pod(id)).min()
    }

    fn memory_of_pod(&self, id: &ContainerId) -> Option<u64> {
        let container = self.containers.get(id)?;
        let sandbox = self.sandboxes.get(&container.spec.sandbox)?;
        sandbox.spec.memory_bytes
    }

    /// The kernel has killed a container for its memory: by the limit of its pod, if there is one
    /// and the container has none.
    pub(super) fn put_kill_down(&mut self, id: &ContainerId) {
        if self.memory_of_pod(id).is_none() {
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
            PodKill::ItsContainer => {}
            PodKill::Nobody => {
                if let Some((end, _)) = &mut killed.ended {
                    end.oom = false;
                }
            }
            PodKill::Everybody => {
                for sibling in self.containers_in(&sandbox) {
                    self.mark_killed(&sibling);
                }
            }
            PodKill::EndsAll => {
                for sibling in self.containers_in(&sandbox) {
                    self.kill(&sibling, true);
                }
            }
        }
    }

    /// An OOM kill is told as the reason of a container, however it ends.
    pub(super) fn mark_killed(&mut self, id: &ContainerId) {
        let Some(container) = self.containers.get_mut(id) else {
            return;
        };
        if container.status.state == ContainerState::Running {
            container.child_killed = true;
            container.status.reason = (self.behaviour.exit_reason)(End::KILLED).into();
        }
    }
}
