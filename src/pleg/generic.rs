//! The Generic PLEG: learns what happened by listing all pods and comparing.
//!
//! It calls nobody. [`Generic::relist`] takes a list and tells which pods have to be inspected;
//! [`Generic::inspected`] takes each answer. Only then are the pod's events sent, and only then is
//! the pod's new state remembered: what could not be inspected is found again by the next relist.
//!
//! Source: kubernetes `pkg/kubelet/pleg/generic.go` (`Relist`, `relistPod`, `reconcilePodRecord`,
//! `updateCache`, `Healthy`).

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::changes::{Changes, Item, adopt, same};
use super::kubelet::Kubelet;
use super::lifecycle::{LifecycleEvent, LifecycleKind};
use super::list::{ListedPod, PodList};
use super::moment::Moment;
use super::records::Records;
use super::shared_id::{SharedId, SharedUid};
use super::status::Inspection;

/// The engine's own memory. What it shares with others is in [`Kubelet`].
#[derive(Clone, Debug, Default)]
pub struct Generic {
    records: Records,
    reinspect: BTreeSet<SharedUid>,
    relisted_at: Option<Moment>,
    pending: VecDeque<Pending>,
    closing: Option<Moment>,
}

/// A pod that has to be inspected before its changes count.
#[derive(Clone, Debug)]
struct Pending {
    slot: usize,
    wanted: Wanted,
    read_at: Moment,
    changes: Changes,
    next: Vec<Item>,
    observe: bool,
}

/// Which pod has to be inspected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its UID.
    pub uid: SharedUid,
    /// Its place in the list.
    pub index: usize,
    /// Whether an inspection of it was requested.
    requested: bool,
}

/// How the Generic PLEG feels, and so the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// No relist has succeeded yet.
    NeverRelisted,
    /// The last successful relist is this long ago, which is no longer than allowed.
    Healthy(Duration),
    /// The last successful relist is this long ago, which is too long.
    Stale(Duration),
}

impl Health {
    /// Whether the kubelet's runtime health check passes.
    #[must_use]
    pub fn is_healthy(self) -> bool {
        matches!(self, Self::Healthy(_))
    }
}

impl Generic {
    /// How often all pods are listed, if there are no events.
    pub const PERIOD: Duration = Duration::from_secs(1);
    /// How old the last relist may be, if there are no events.
    pub const THRESHOLD: Duration = Duration::from_secs(180);
    /// How often all pods are listed while the Evented PLEG of kubelet 1.26 to 1.36 is in use.
    pub const PERIOD_WITH_EVENTS: Duration = Duration::from_secs(300);
    /// How old the last relist may be while that is so.
    pub const THRESHOLD_WITH_EVENTS: Duration = Duration::from_secs(600);

    /// An engine that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a list of all pods, asked for at `now`. Afterwards every [`Generic::wanted`] pod has
    /// to be [`Generic::inspected`]; with the last one the relist ends.
    ///
    /// A relist, also of one pod, that comes before that gives the others up: their changes are
    /// found again. A list that could not be had is not to be told: it changes nothing here.
    pub fn relist(&mut self, kubelet: &mut Kubelet, now: Moment, list: &PodList<'_>) {
        self.give_up();
        self.relisted_at = Some(now);
        self.closing = Some(now);
        kubelet.gauges.count(list);
        self.records.mark(list);
        for slot in 0..self.records.slots() {
            let listed = self.records.listed(slot);
            match listed.and_then(|index| Some((index, list.pod(index)?))) {
                Some((index, pod)) => {
                    self.reconcile(slot, index, &pod, list.at(), false);
                }
                None => self.vanished(kubelet, slot),
            }
        }
        self.close(kubelet);
    }

    /// Takes a list of one pod's containers and sandboxes, read on demand. Only its UID is looked
    /// for. If it is not in there, nothing happens: removals are left to the next relist.
    pub fn relist_pod(&mut self, kubelet: &mut Kubelet, uid: &str, list: &PodList<'_>) {
        self.give_up();
        let Some((index, pod)) = list.iter().enumerate().find(|(_, pod)| pod.uid == uid) else {
            return;
        };
        let slot = self.records.slot_of(uid);
        if !self.reconcile(slot, index, &pod, list.at(), true) {
            kubelet.cache.set_observed(uid, list.at());
        }
    }

    /// Asks that a pod be inspected by the next relist that finds it, changed or not.
    pub fn request_inspection(&mut self, uid: &str) {
        self.reinspect.insert(SharedUid::from(uid));
    }

    /// The pod that has to be inspected next.
    #[must_use]
    pub fn wanted(&self) -> Option<&Wanted> {
        self.pending.front().map(|pending| &pending.wanted)
    }

    /// All pods that have to be inspected, in this order.
    #[must_use]
    pub fn all_wanted(&self) -> impl ExactSizeIterator<Item = &Wanted> {
        self.pending.iter().map(|pending| &pending.wanted)
    }

    /// Takes the status of the [`Generic::wanted`] pod; does nothing if there is none.
    pub fn inspected(&mut self, kubelet: &mut Kubelet, inspection: Inspection) {
        let Some(mut pending) = self.pending.pop_front() else {
            return;
        };
        let (observe, read_at) = (pending.observe, pending.read_at);
        let uid = pending.wanted.uid.clone();
        if self.store(kubelet, &pending.wanted, inspection, read_at) {
            self.records
                .replace(pending.slot, std::mem::take(&mut pending.next));
            tell(kubelet, &uid, pending.changes);
        }
        if observe {
            kubelet.cache.set_observed(uid.as_str(), read_at);
        }
        self.close(kubelet);
    }

    /// When the last successful relist was begun.
    #[must_use]
    pub fn relisted_at(&self) -> Option<Moment> {
        self.relisted_at
    }

    /// The time from the last successful relist to one that begins now. It is sampled whether or
    /// not the latter succeeds (`kubelet_pleg_relist_interval_seconds`).
    #[must_use]
    pub fn interval(&self, now: Moment) -> Option<Duration> {
        self.relisted_at.map(|at| now.since(at))
    }

    /// The pods it remembers, by UID.
    #[must_use]
    pub fn pods(&self) -> Vec<&SharedUid> {
        self.records.uids()
    }

    /// The pods of which an inspection is requested, by UID.
    #[must_use]
    pub fn inspection_requests(&self) -> impl ExactSizeIterator<Item = &SharedUid> {
        self.reinspect.iter()
    }

    /// Whether it is healthy at a moment.
    #[must_use]
    pub fn health(&self, now: Moment, threshold: Duration) -> Health {
        match self.interval(now) {
            None => Health::NeverRelisted,
            Some(elapsed) if elapsed > threshold => Health::Stale(elapsed),
            Some(elapsed) => Health::Healthy(elapsed),
        }
    }

    /// Compares a listed pod with what is remembered. Returns whether it has to be inspected.
    fn reconcile(
        &mut self,
        slot: usize,
        index: usize,
        pod: &ListedPod<'_>,
        read_at: Moment,
        observe: bool,
    ) -> bool {
        let requested = !self.reinspect.is_empty() && self.reinspect.remove(pod.uid);
        let old = self.records.items(slot);
        if !requested && same(old, pod.items) {
            return false;
        }
        let next = adopt(old, pod.items);
        let changes = Changes::between(old, &next);
        if changes.is_empty() && !requested {
            return false;
        }
        self.pending.push_back(Pending {
            slot,
            wanted: Wanted {
                uid: self.records.uid(slot).clone(),
                index,
                requested,
            },
            read_at,
            changes,
            next,
            observe,
        });
        true
    }

    /// Deals with a pod that is remembered, and not listed. One that never had anything stays.
    fn vanished(&mut self, kubelet: &mut Kubelet, slot: usize) {
        let Some(record) = self.records.get(slot) else {
            return;
        };
        let requested = !self.reinspect.is_empty() && self.reinspect.remove(record.uid.as_str());
        if record.items.is_empty() && !requested {
            return;
        }
        let record = self.records.forget(slot).expect("it was just looked at");
        kubelet.cache.delete(record.uid.as_str());
        tell(kubelet, &record.uid, Changes::between(&record.items, &[]));
    }

    /// Stores an inspection. Returns whether the pod's changes count.
    fn store(
        &mut self,
        kubelet: &mut Kubelet,
        wanted: &Wanted,
        mut inspection: Inspection,
        mut at: Moment,
    ) -> bool {
        if let Ok(status) = &mut inspection {
            if let Some(ips) = kubelet.preserved_ips(status) {
                Arc::make_mut(status).ips = ips;
            }
            if kubelet.gate() && kubelet.evented_in_use() {
                at = status.read_at;
            }
        }
        let failed = inspection.is_err();
        let taken = kubelet.cache.set(&wanted.uid, inspection, at);
        if failed {
            self.reinspect.insert(wanted.uid.clone());
        }
        !failed && (taken || !kubelet.gate())
    }

    /// Ends a relist of all pods once nothing is pending.
    fn close(&mut self, kubelet: &mut Kubelet) {
        if self.pending.is_empty()
            && let Some(at) = self.closing.take()
        {
            kubelet.cache.update_time(at);
        }
    }

    /// Forgets what is pending; nothing of it has been remembered yet.
    fn give_up(&mut self) {
        self.closing = None;
        for pending in self.pending.drain(..) {
            if pending.wanted.requested {
                self.reinspect.insert(pending.wanted.uid);
            }
        }
    }
}

/// Sends what happened in a pod; if nothing did, that it was inspected.
fn tell(kubelet: &mut Kubelet, pod: &SharedUid, changes: Changes) {
    if changes.is_empty() {
        kubelet.channel.send(LifecycleEvent {
            pod: pod.clone(),
            kind: LifecycleKind::PodSync,
            container: None,
        });
    }
    for (kind, container) in changes.events {
        send(kubelet, pod, kind, container);
    }
}

/// Sends what happened to a container or a sandbox.
pub(super) fn send(
    kubelet: &mut Kubelet,
    pod: &SharedUid,
    kind: LifecycleKind,
    container: SharedId,
) {
    kubelet.channel.send(LifecycleEvent {
        pod: pod.clone(),
        kind,
        container: Some(container),
    });
}
