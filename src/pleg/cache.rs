//! The pod cache: pod workers act on its entries and wait for newer ones.
//!
//! Source: kubernetes `pkg/kubelet/container/cache.go`. One invariant: with the gate on, no entry
//! is replaced by an older one. (A deletion forgets how old it was.)

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::sync::Arc;

use super::SharedUid;
use super::pod_status::{InspectError, Inspection, PodStatus};
use super::state::Moment;

#[derive(Clone, Debug)]
pub struct Cache {
    guarded: bool,
    entries: HashMap<SharedUid, Entry>,
    global: Option<Moment>,
    waiting: Vec<Waiting>,
    released: Vec<Released>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its status, or the error of the last inspection.
    pub inspection: Inspection,
    pub modified: Moment,
    /// When the pod was last observed.
    pub observed: Moment,
}

impl Entry {
    pub fn status(&self) -> Option<&Arc<PodStatus>> {
        self.inspection.as_ref().ok()
    }

    pub fn error(&self) -> Option<&InspectError> {
        self.inspection.as_ref().err()
    }
}

/// Identifies a call of [`Cache::newer_than`]; chosen by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Waiter(pub u64);

#[derive(Clone, Debug)]
struct Waiting {
    waiter: Waiter,
    uid: SharedUid,
    newer_than: Moment,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Released {
    pub waiter: Waiter,
    pub uid: SharedUid,
    /// The entry; `None` means an empty status with only the UID.
    pub entry: Option<Entry>,
}

impl Cache {
    /// An empty cache. With the feature gate `EventedPLEG` it is guarded against older entries.
    pub fn new(guarded: bool) -> Self {
        Self {
            guarded,
            entries: HashMap::new(),
            global: None,
            waiting: Vec::new(),
            released: Vec::new(),
        }
    }

    /// The entry of a pod. `None` means an empty status without an error.
    pub fn get(&self, uid: &str) -> Option<&Entry> {
        self.entries.get(uid)
    }

    pub fn entries(&self) -> Vec<(&SharedUid, &Entry)> {
        let mut entries: Vec<_> = self.entries.iter().collect();
        entries.sort_unstable_by_key(|(uid, _)| *uid);
        entries
    }

    /// The global time: all entries are at least as fresh.
    pub fn global(&self) -> Option<Moment> {
        self.global
    }

    /// Stores the result of an inspection or the payload of an event. Returns whether it was
    /// stored: a guarded cache refuses an older entry, and then releases no waiter.
    pub fn set(&mut self, uid: &SharedUid, inspection: Inspection, at: Moment) -> bool {
        let entry = Entry {
            inspection,
            modified: at,
            observed: at,
        };
        match self.entries.entry(uid.clone()) {
            Slot::Occupied(slot) if self.guarded && slot.get().modified > at => return false,
            Slot::Occupied(mut slot) => {
                slot.insert(entry);
            }
            Slot::Vacant(slot) => {
                slot.insert(entry);
            }
        }
        self.release(Some(uid.as_str()), at);
        true
    }

    /// Sets when a pod was observed, which may go backwards. Without an entry nothing is stored,
    /// but waiters are released, without an entry.
    pub fn set_observed(&mut self, uid: &str, at: Moment) {
        if let Some(entry) = self.entries.get_mut(uid) {
            entry.observed = at;
        }
        self.release(Some(uid), at);
    }

    /// Sets the global time, which may go backwards.
    pub fn update_time(&mut self, at: Moment) {
        self.global = Some(at);
        self.release(None, at);
    }

    /// Deletes the entry of a pod. Releases no waiter.
    pub fn delete(&mut self, uid: &str) {
        self.entries.remove(uid);
    }

    /// Waits for an entry of a pod that is newer than a moment. [`Cache::take_released`] returns
    /// it, possibly at once.
    pub fn newer_than(&mut self, uid: &str, newer_than: Moment, waiter: Waiter) {
        let entry = self.entries.get(uid);
        let all_newer = self.global.is_some_and(|global| global > newer_than);
        let newer =
            all_newer || entry.is_some_and(|entry| entry.modified.max(entry.observed) > newer_than);
        let uid = SharedUid::from(uid);
        if newer {
            let entry = entry.cloned();
            self.released.push(Released { waiter, uid, entry });
        } else {
            self.waiting.push(Waiting {
                waiter,
                uid,
                newer_than,
            });
        }
    }

    /// Takes the waits that have ended since the last call, in order.
    pub fn take_released(&mut self) -> Vec<Released> {
        std::mem::take(&mut self.released)
    }

    /// The calls that still wait, oldest first.
    pub fn waiting(&self) -> impl Iterator<Item = Waiter> + '_ {
        self.waiting.iter().map(|waiting| waiting.waiter)
    }

    /// Ends waits for a pod, or for all pods. Unlike in [`Cache::newer_than`], an equal time
    /// suffices.
    fn release(&mut self, uid: Option<&str>, at: Moment) {
        if self.waiting.is_empty() {
            return;
        }
        let over = |waiting: &mut Waiting| {
            waiting.newer_than <= at && uid.is_none_or(|uid| uid == waiting.uid.as_str())
        };
        for waiting in self.waiting.extract_if(.., over) {
            self.released.push(Released {
                entry: self.entries.get(waiting.uid.as_str()).cloned(),
                waiter: waiting.waiter,
                uid: waiting.uid,
            });
        }
    }
}
