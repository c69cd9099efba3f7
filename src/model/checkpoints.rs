//! Checkpoints of containers, and their restoration.

use super::containers::no_container;
use super::machine::{Machine, fault};
use super::transition::NonTransition;
use crate::history::{
    CallFault, ContainerId, ContainerSpec, ContainerState, EventKind, Reply, StatusCode,
};

impl Machine {
    /// Writes a checkpoint of a running container, which continues.
    pub(super) fn checkpoint_container(
        &mut self,
        id: &ContainerId,
        location: &str,
    ) -> Result<Reply, CallFault> {
        let container = self.containers.get(id).ok_or_else(|| no_container(id))?;
        let state = container.status.state;
        if state != ContainerState::Running {
            let message =
                format!("container {id} is {state}, and only a running container has a checkpoint");
            return Err(fault(StatusCode::FAILED_PRECONDITION, message));
        }
        let image = container.spec.image.clone();
        self.checkpoints.insert(location.to_owned(), image);
        if self.behaviour.reports_spuriously(NonTransition::Checkpoint) {
            self.announce_container(EventKind::Stopped, id);
        }
        Ok(Reply::Done)
    }

    /// The reference of a container's image; for a restored one, that of the checkpointed
    /// container.
    pub(super) fn reference_of<'a>(&'a self, spec: &'a ContainerSpec) -> &'a str {
        let checkpoint = spec
            .checkpoint()
            .and_then(|path| self.checkpoints.get(path));
        checkpoint.unwrap_or(&spec.image)
    }
}
