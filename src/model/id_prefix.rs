//! Container ids that a request abbreviates to a unique prefix.

use super::machine::Machine;
use crate::history::{ContainerId, EventKind};

impl Machine {
    /// Resolves an id prefix to the only container that has it, if the behaviour accepts prefixes;
    /// otherwise returns the id as requested.
    pub(super) fn resolve_id(&self, requested: &ContainerId) -> ContainerId {
        if !self.behaviour.accepts_id_prefixes || requested.as_str().is_empty() {
            return requested.clone();
        }
        let mut matching = self
            .containers
            .keys()
            .filter(|id| id.as_str().starts_with(requested.as_str()));
        match (matching.next(), matching.next()) {
            (Some(id), None) => id.clone(),
            _ => requested.clone(),
        }
    }

    /// Deletes a container that no longer runs; DELETED carries the requested id if so configured.
    pub(super) fn delete_by_requested_id(&mut self, id: &ContainerId, requested: &ContainerId) {
        let container = self.containers.get(id);
        let sandbox = container.map(|container| container.spec.sandbox.clone());
        let reports_requested = self.behaviour.reports_requested_id && requested != id;
        self.delete_container(id, !reports_requested);
        if let Some(sandbox) = sandbox.filter(|_| reports_requested) {
            self.announce(EventKind::Deleted, requested.clone(), &sandbox);
        }
    }
}
