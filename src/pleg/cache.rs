//! The pod cache: what pod workers act on, and what they wait for.
//!
//! Source: kubernetes `pkg/kubelet/container/cache.go`. One invariant: with the gate on, no entry
//! is replaced by an older one. (A deletion forgets how old it was.)

use std::collections::hash_map::Entry as Slot;
use std::sync::Arc;

use super::moment::Moment;
use super::shared_id::{ById, SharedUid};
use super::status::{InspectError, Inspection, PodStatus};

/// What is known of all pods.
#[derive(Clone, Debug)]
pub struct Cache {
    guarded: bool,
    entries: ById<SharedUid, Entry>,
    global: Option<Moment>,
    waiting: Vec<Waiting>,
    released: Vec<Released>,
}

/// What is known of one pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its status, or why there is none.
    pub inspection: Inspection,
    /// How fresh the status is.
    pub modified: Moment,
    /// When the pod was last looked at.
    pub observed: Moment,
}

impl Entry {
    /// The status, unless the last inspection failed.
    #[must_use]
    pub fn status(&self) -> Option<&Arc<PodStatus>> {
        self.inspection.as_ref().ok()
    }

    /// Why the last inspection failed, if it did.
    #[must_use]
    pub fn error(&self) -> Option<&InspectError> {
        self.inspection.as_ref().err()
    }
}

/// One call of [`Cache::newer_than`], by the caller's own number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Waiter(pub u64);

#[derive(Clone, Debug)]
struct Waiting {
    waiter: Waiter,
    uid: SharedUid,
    newer_than: Moment,
}

/// The end of a wait.
#[derive(Clone, Debug, PartialEq)]
pub struct Released {
    /// Who waited.
    pub waiter: Waiter,
    /// For which pod.
    pub uid: SharedUid,
    /// What is known; `None` is an empty status that carries only the UID.
    pub entry: Option<Entry>,
}

impl Cache {
    /// An empty cache. It is guarded against older entries if the feature gate `EventedPLEG` is on.
    #[must_use]
    pub fn new(guarded: bool) -> Self {
        Self {
            guarded,
            entries: ById::default(),
            global: None,
            waiting: Vec::new(),
            released: Vec::new(),
        }
    }

    /// What is known of a pod. `None` stands for an empty status without an error.
    #[must_use]
    pub fn get(&self, uid: &str) -> Option<&Entry> {
        self.entries.get(uid)
    }

    /// All that is known, by UID.
    #[must_use]
    pub fn entries(&self) -> Vec<(&SharedUid, &Entry)> {
        let mut entries: Vec<_> = self.entries.iter().collect();
        entries.sort_unstable_by_key(|(uid, _)| *uid);
        entries
    }

    /// The moment at which all of it was last known to be fresh.
    #[must_use]
    pub fn global(&self) -> Option<Moment> {
        self.global
    }

    /// Stores what an inspection or an event told. Returns whether it was taken: a guarded cache
    /// refuses what is older than what it has, and then wakes nobody.
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

    /// Notes that a pod was looked at. It may go backwards. Without an entry nothing is stored, but
    /// whoever waits is still woken, with nothing.
    pub fn set_observed(&mut self, uid: &str, at: Moment) {
        if let Some(entry) = self.entries.get_mut(uid) {
            entry.observed = at;
        }
        self.release(Some(uid), at);
    }

    /// Notes that everything is as fresh as this. It may go backwards.
    pub fn update_time(&mut self, at: Moment) {
        self.global = Some(at);
        self.release(None, at);
    }

    /// Forgets a pod, and how fresh it was. Wakes nobody.
    pub fn delete(&mut self, uid: &str) {
        self.entries.remove(uid);
    }

    /// Asks for what is known of a pod, once it is newer than a moment. The answer comes out of
    /// [`Cache::take_released`], perhaps at once.
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

    /// The waits that have ended since this was last asked, in the order in which they ended.
    pub fn take_released(&mut self) -> Vec<Released> {
        std::mem::take(&mut self.released)
    }

    /// Who still waits, in the order in which they came.
    pub fn waiting(&self) -> impl Iterator<Item = Waiter> + '_ {
        self.waiting.iter().map(|waiting| waiting.waiter)
    }

    /// Ends waits for a pod, or for any. Here a moment that is equal suffices, unlike in
    /// [`Cache::newer_than`].
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
