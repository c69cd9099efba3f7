//! Containers that are called by the beginning of their ids.

use super::machine::Machine;
use crate::history::{ContainerId, EventKind};

impl Machine {
    /// The id of the only container whose id begins so, if the behaviour takes that for an id; else
    /// what was asked.
    pub(super) fn whole_id(&self, asked: &ContainerId) -> ContainerId {
        let begins = |id: &&ContainerId| id.as_str().starts_with(asked.as_str());
        let mut found = self.containers.keys().filter(begins);
        let found = (found.next(), found.next());
        match found {
            (Some(id), None) if self.behaviour.takes_prefixes && !asked.as_str().is_empty() => {
                id.clone()
            }
            _ => asked.clone(),
        }
    }

    /// Removes a container that ran no more, by the id that it was asked for.
    pub(super) fn delete_as_asked(&mut self, id: &ContainerId, asked: &ContainerId) {
        let container = self.containers.get(id);
        let sandbox = container.map(|container| container.spec.sandbox.clone());
        let as_asked = self.behaviour.tells_ids_as_asked && asked != id;
        self.delete_container(id, !as_asked);
        if let Some(sandbox) = sandbox.filter(|_| as_asked) {
            self.announce(EventKind::Deleted, asked.clone(), &sandbox);
        }
    }
}
