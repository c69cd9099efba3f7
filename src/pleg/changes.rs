//! The changes of a pod's containers and sandboxes between two lists.
//!
//! Source: kubernetes `pkg/kubelet/pleg/generic.go` (`computeEvents`, `getContainersFromPods`,
//! `getContainerState`).

use std::collections::HashMap;

use super::lifecycle::LifecycleKind;
use super::pod_list::ListedItem;
use super::shared_id::SharedId;
use super::state::{Phase, Transition, transition};

/// A container or a sandbox in the engine's records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) id: SharedId,
    pub(super) phase: Phase,
}

/// Whether nothing has changed, not even the order.
pub(super) fn same(old: &[Item], new: &[ListedItem<'_>]) -> bool {
    old.len() == new.len()
        && old
            .iter()
            .zip(new)
            .all(|(old, new)| old.phase == new.state.phase() && old.id.as_str() == new.id)
}

/// Converts a list into owned items; known ids are shared, not copied.
pub(super) fn adopt(old: &[Item], new: &[ListedItem<'_>]) -> Vec<Item> {
    let known = by_id(old);
    let own = |seen: &ListedItem<'_>| Item {
        id: match known.get(seen.id) {
            Some(item) => item.id.clone(),
            None => SharedId::from(seen.id),
        },
        phase: seen.state.phase(),
    };
    new.iter().map(own).collect()
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// Whether something changed for which no event is sent.
    pub(super) silent: bool,
    pub(super) events: Vec<(LifecycleKind, SharedId)>,
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        !self.silent && self.events.is_empty()
    }

    /// Compares two states of a pod, each with containers before sandboxes. Of a repeated id, the
    /// first occurrence counts.
    pub(super) fn between(old: &[Item], new: &[Item]) -> Self {
        let (before, after) = (by_id(old), by_id(new));
        let mut changes = Self::default();
        for item in old {
            if std::ptr::eq(before[item.id.as_str()], item) {
                let now = after.get(item.id.as_str()).map(|now| now.phase);
                changes.note(&item.id, transition(Some(item.phase), now));
            }
        }
        for item in new {
            let id = item.id.as_str();
            if !before.contains_key(id) && std::ptr::eq(after[id], item) {
                changes.note(&item.id, transition(None, Some(item.phase)));
            }
        }
        changes
    }

    fn note(&mut self, id: &SharedId, transition: Transition) {
        let kinds: &[LifecycleKind] = match transition {
            Transition::Same => &[],
            Transition::Changed => {
                self.silent = true;
                &[]
            }
            Transition::Started => &[LifecycleKind::ContainerStarted],
            Transition::Died => &[LifecycleKind::ContainerDied],
            Transition::Removed => &[LifecycleKind::ContainerRemoved],
            Transition::DiedAndRemoved => &[
                LifecycleKind::ContainerDied,
                LifecycleKind::ContainerRemoved,
            ],
        };
        self.events
            .extend(kinds.iter().map(|kind| (*kind, id.clone())));
    }
}

/// The first item of each id.
fn by_id(items: &[Item]) -> HashMap<&str, &Item> {
    let items = items.iter().rev();
    items.map(|item| (item.id.as_str(), item)).collect()
}
