//! The changes of a pod's containers and sandboxes between two lists.
//!
//! Source: kubernetes `pkg/kubelet/pleg/generic.go` (`computeEvents`, `getContainersFromPods`,
//! `getContainerState`).

use super::lifecycle::LifecycleKind;
use super::pod_list::ListedItem;
use super::shared_id::{ById, SharedId};
use super::state::{Phase, Transition, transition};

/// The number of items above which ids are hashed: a linear search would be quadratic overall.
const WALKABLE: usize = 16;

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
    let known = Index::new(old.iter().map(|item| item.id.as_str()), old.len());
    let own = |(place, seen): (usize, &ListedItem<'_>)| Item {
        id: match old.get(place) {
            Some(item) if item.id.as_str() == seen.id => item.id.clone(),
            _ => match known.first(seen.id, old) {
                Some(place) => old[place].id.clone(),
                None => SharedId::from(seen.id),
            },
        },
        phase: seen.state.phase(),
    };
    new.iter().enumerate().map(own).collect()
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
        let before = Index::new(old.iter().map(|item| item.id.as_str()), old.len());
        let after = Index::new(new.iter().map(|item| item.id.as_str()), new.len());
        let mut changes = Self::default();
        for (place, item) in old.iter().enumerate() {
            if before.first(item.id.as_str(), old) == Some(place) {
                let now = after.first(item.id.as_str(), new).map(|at| new[at].phase);
                changes.note(&item.id, transition(Some(item.phase), now));
            }
        }
        for (place, item) in new.iter().enumerate() {
            let id = item.id.as_str();
            if before.first(id, old).is_none() && after.first(id, new) == Some(place) {
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

/// Finds ids: by linear search if there are few, by hashing if there are many.
struct Index<'a> {
    hashed: Option<ById<&'a str, usize>>,
}

impl<'a> Index<'a> {
    fn new(ids: impl Iterator<Item = &'a str>, count: usize) -> Self {
        let hashed = (count > WALKABLE).then(|| {
            let mut places = ById::default();
            places.reserve(count);
            for (place, id) in ids.enumerate() {
                places.entry(id).or_insert(place);
            }
            places
        });
        Self { hashed }
    }

    /// The place of the first occurrence of an id.
    fn first(&self, id: &str, items: &[Item]) -> Option<usize> {
        match &self.hashed {
            Some(places) => places.get(id).copied(),
            None => items.iter().position(|item| item.id.as_str() == id),
        }
    }
}
