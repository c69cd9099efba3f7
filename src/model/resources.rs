//! The resources of a model runtime, as the simulated kernel shows them.

use std::collections::BTreeSet;

use super::machine::Machine;
use crate::history::{ContainerId, Resource, SandboxId};

/// The file descriptors of an idle runtime.
const DESCRIPTORS: u64 = 20;
const THREADS: u64 = 12;
const MEMORY_KIB: u64 = 40_000;
/// The number of lines logged for each call.
const LOGGED_EACH: u64 = 2;
/// The memory left by a container: garbage, or a leak.
const GARBAGE_KIB: u64 = 1;
const LEAK_KIB: u64 = 100;

impl Machine {
    /// The amount of a resource in use; `ids` are those of the pods.
    pub fn held(&self, resource: Resource, ids: &BTreeSet<String>) -> u64 {
        let leaks = self.behaviour.leaks == Some(resource);
        let present =
            |id: &str| self.is_sandbox(id) || self.containers.contains_key(&ContainerId::from(id));
        match resource {
            Resource::Descriptors if leaks => DESCRIPTORS + self.event_bus.streams_opened(),
            Resource::Descriptors => DESCRIPTORS + self.event_bus.streams_open(),
            Resource::Threads if leaks => THREADS + self.created_count,
            Resource::Threads => THREADS,
            Resource::MemoryKib => {
                let each = if leaks { LEAK_KIB } else { GARBAGE_KIB };
                MEMORY_KIB + each * self.created_count
            }
            Resource::NetworkNamespaces if leaks => self.created_count,
            Resource::NetworkNamespaces => {
                let own = self.sandboxes.values().filter(|it| it.spec.own_network);
                own.count() as u64
            }
            Resource::Monitors => count(ids, |id| leaks || self.is_sandbox(id)),
            Resource::LogLines => {
                LOGGED_EACH * self.calls_made() + self.event_bus.discards_logged()
            }
            Resource::Cgroups | Resource::Mounts => count(ids, |id| leaks || present(id)),
        }
    }

    fn is_sandbox(&self, id: &str) -> bool {
        self.sandboxes.contains_key(&SandboxId::from(id))
    }
}

fn count(ids: &BTreeSet<String>, holds: impl Fn(&str) -> bool) -> u64 {
    ids.iter().filter(|id| holds(id)).count() as u64
}
