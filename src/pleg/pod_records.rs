//! The Generic PLEG's records: the containers and sandboxes of each pod, as last reported.
//!
//! Records have fixed slots, so that a relist in the same order finds each pod in the next slot,
//! without hashing its UID. Nothing here allocates while the pods stay the same.

use super::changes::Item;
use super::pod_list::PodList;
use super::shared_id::{ById, SharedUid};

#[derive(Clone, Debug, Default)]
pub(super) struct Records {
    slots: Vec<Slot>,
    free: Vec<usize>,
    places: ById<SharedUid, usize>,
    round: u64,
}

#[derive(Clone, Debug, Default)]
struct Slot {
    record: Option<Record>,
    /// The index of the pod in the list of this round.
    listed: usize,
    round: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) uid: SharedUid,
    pub(super) items: Box<[Item]>,
}

impl Records {
    /// Records the index of each pod in the list; adds records for new pods.
    pub(super) fn mark(&mut self, list: &PodList<'_>) {
        self.round += 1;
        let mut guess = 0;
        for (listed, pod) in list.iter().enumerate() {
            let slot = match self.get(guess) {
                Some(record) if record.uid.as_str() == pod.uid => guess,
                _ => self.slot_of(pod.uid),
            };
            self.slots[slot].listed = listed;
            self.slots[slot].round = self.round;
            guess = slot + 1;
        }
    }

    /// The index of a pod in the last marked list.
    pub(super) fn listed(&self, slot: usize) -> Option<usize> {
        let slot = &self.slots[slot];
        (slot.round == self.round).then_some(slot.listed)
    }

    /// The slot of a pod; a new one if it has no record.
    pub(super) fn slot_of(&mut self, uid: &str) -> usize {
        if let Some(place) = self.places.get(uid) {
            return *place;
        }
        let place = self.free.pop().unwrap_or(self.slots.len());
        if place == self.slots.len() {
            self.slots.push(Slot::default());
        }
        let uid = SharedUid::from(uid);
        self.places.insert(uid.clone(), place);
        self.slots[place].record = Some(Record {
            uid,
            items: Box::default(),
        });
        place
    }

    /// The number of slots, in use or not.
    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn get(&self, slot: usize) -> Option<&Record> {
        self.slots.get(slot)?.record.as_ref()
    }

    /// The pod's UID. The slot must be in use.
    pub(super) fn uid(&self, slot: usize) -> &SharedUid {
        &self.get(slot).expect("the slot is in use").uid
    }

    /// The recorded items of a pod; empty if the slot is not in use.
    pub(super) fn items(&self, slot: usize) -> &[Item] {
        self.get(slot).map_or(&[], |record| &record.items)
    }

    pub(super) fn replace(&mut self, slot: usize, items: Vec<Item>) {
        if let Some(record) = &mut self.slots[slot].record {
            record.items = items.into_boxed_slice();
        }
    }

    pub(super) fn forget(&mut self, slot: usize) -> Option<Record> {
        let record = self.slots[slot].record.take()?;
        self.places.remove(record.uid.as_str());
        self.free.push(slot);
        Some(record)
    }

    pub(super) fn uids(&self) -> Vec<&SharedUid> {
        let records = self.slots.iter().filter_map(|slot| slot.record.as_ref());
        let mut uids: Vec<_> = records.map(|record| &record.uid).collect();
        uids.sort_unstable();
        uids
    }
}
