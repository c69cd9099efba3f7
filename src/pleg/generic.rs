//! The Generic PLEG: detects changes by listing all pods and comparing.
//!
//! It makes no calls. [`Generic::relist`] takes a list and determines which pods have to be
//! inspected; [`Generic::inspected`] takes each result. Only then are the pod's events sent and its
//! new state stored: the next relist finds the changes of a failed inspection again.
//!
//! Source: kubernetes `pkg/kubelet/pleg/generic.go` (`Relist`, `relistPod`, `reconcilePodRecord`,
//! `updateCache`, `Healthy`, `computeEvents`, `getContainersFromPods`, `getContainerState`).

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::kubelet::{Kubelet, LifecycleEvent, LifecycleKind};
use super::pod_list::{ListedItem, ListedPod, PodList};
use super::pod_status::Inspection;
use super::state::{Moment, Phase, Transition, transition};
use super::{SharedId, SharedUid};

/// The state of the Generic PLEG. State shared with the Evented PLEG is in [`Kubelet`].
#[derive(Clone, Debug, Default)]
pub struct Generic {
    records: BTreeMap<SharedUid, Record>,
    /// The number of relists of all pods.
    round: u64,
    reinspect: BTreeSet<SharedUid>,
    relisted_at: Option<Moment>,
    pending: VecDeque<Pending>,
    closing: Option<Moment>,
}

/// The containers and sandboxes of a pod, as last reported.
#[derive(Clone, Debug, Default)]
struct Record {
    items: Vec<Item>,
    /// The last relist of all pods that listed it, and its index in that list.
    listed: (u64, usize),
}

/// A pod whose changes take effect once it is inspected.
#[derive(Clone, Debug)]
struct Pending {
    wanted: Wanted,
    read_at: Moment,
    changes: Changes,
    next: Vec<Item>,
    observe: bool,
}

/// A pod that has to be inspected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub uid: SharedUid,
    pub index: usize,
    /// Whether an inspection of it was requested.
    requested: bool,
}

/// The health of the Generic PLEG, on which the node's readiness depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// No relist has succeeded yet.
    NeverRelisted,
    /// The last successful relist is this long ago, within the threshold.
    Healthy(Duration),
    /// The last successful relist is this long ago, beyond the threshold.
    Stale(Duration),
}

impl Health {
    /// Whether the kubelet's runtime health check passes.
    pub fn is_healthy(self) -> bool {
        matches!(self, Self::Healthy(_))
    }
}

impl Generic {
    /// The relist period without events.
    pub const PERIOD: Duration = Duration::from_secs(1);
    /// The health threshold without events.
    pub const THRESHOLD: Duration = Duration::from_secs(180);
    /// The maximum number of queued requests to relist one pod; more are dropped.
    pub const RELIST_REQUESTS: usize = 200;
    /// The relist period while the Evented PLEG of kubelet 1.26 to 1.36 is in use.
    pub const PERIOD_WITH_EVENTS: Duration = Duration::from_secs(300);
    /// The health threshold while it is in use.
    pub const THRESHOLD_WITH_EVENTS: Duration = Duration::from_secs(600);

    pub fn new() -> Self {
        Self::default()
    }

    /// Processes a list of all pods, requested at `now`. Afterwards every [`Generic::wanted`] pod
    /// has to be [`Generic::inspected`]; with the last one the relist ends.
    ///
    /// An earlier relist, also one of a single pod, abandons pending inspections: their changes are
    /// found again. A failed list call must not be passed in.
    pub fn relist(&mut self, kubelet: &mut Kubelet, now: Moment, list: &PodList<'_>) {
        self.give_up();
        self.relisted_at = Some(now);
        self.closing = Some(now);
        kubelet.gauges.count(list);
        self.round += 1;
        for (index, pod) in list.iter().enumerate() {
            self.record(pod.uid).listed = (self.round, index);
        }
        for (index, pod) in list.iter().enumerate() {
            // Of a repeated UID, the last one counts.
            if self.record(pod.uid).listed.1 == index {
                self.reconcile(index, &pod, list.at(), false);
            }
        }
        self.remove_unlisted(kubelet);
        self.close(kubelet);
    }

    /// Processes an on-demand list for one pod; other pods in it are ignored. If the pod is not in
    /// the list, nothing happens: removals are left to the next relist.
    pub fn relist_pod(&mut self, kubelet: &mut Kubelet, uid: &str, list: &PodList<'_>) {
        self.give_up();
        let Some((index, pod)) = list.iter().enumerate().find(|(_, pod)| pod.uid == uid) else {
            return;
        };
        if !self.reconcile(index, &pod, list.at(), true) {
            kubelet.cache.set_observed(uid, list.at());
        }
    }

    /// Whether a request to relist one pod is due: a relist of all pods that began at or after it
    /// has served it.
    ///
    /// Source: kubernetes 1.36 `pkg/kubelet/pleg/generic.go` (`workerLoopIteration`), with the
    /// feature gate `PLEGOnDemandRelist`.
    pub fn is_due(&self, requested_at: Moment) -> bool {
        self.relisted_at.is_none_or(|last| requested_at > last)
    }

    /// Requests that the next relist inspects a pod, changed or not.
    pub fn request_inspection(&mut self, uid: &str) {
        self.reinspect.insert(SharedUid::from(uid));
    }

    /// The pod that has to be inspected next.
    pub fn wanted(&self) -> Option<&Wanted> {
        self.pending.front().map(|pending| &pending.wanted)
    }

    /// All pods that have to be inspected, in this order.
    pub fn all_wanted(&self) -> impl ExactSizeIterator<Item = &Wanted> {
        self.pending.iter().map(|pending| &pending.wanted)
    }

    /// Processes the status of the [`Generic::wanted`] pod; does nothing if there is none.
    pub fn inspected(&mut self, kubelet: &mut Kubelet, inspection: Inspection) {
        let Some(mut pending) = self.pending.pop_front() else {
            return;
        };
        let (observe, read_at) = (pending.observe, pending.read_at);
        let uid = pending.wanted.uid.clone();
        if self.store(kubelet, &pending.wanted, inspection, read_at) {
            self.record(uid.as_str()).items = std::mem::take(&mut pending.next);
            send_changes(kubelet, &uid, pending.changes);
        }
        if observe {
            kubelet.cache.set_observed(uid.as_str(), read_at);
        }
        self.close(kubelet);
    }

    /// When the last successful relist began.
    pub fn relisted_at(&self) -> Option<Moment> {
        self.relisted_at
    }

    /// The time from the last successful relist to one that begins now. It is recorded even if the
    /// latter fails (`kubelet_pleg_relist_interval_seconds`).
    pub fn interval(&self, now: Moment) -> Option<Duration> {
        self.relisted_at.map(|at| now.since(at))
    }

    /// The recorded pods, by UID.
    pub fn pods(&self) -> Vec<&SharedUid> {
        self.records.keys().collect()
    }

    /// The pods whose inspection is requested, by UID.
    pub fn inspection_requests(&self) -> impl ExactSizeIterator<Item = &SharedUid> {
        self.reinspect.iter()
    }

    pub fn health(&self, now: Moment, threshold: Duration) -> Health {
        match self.interval(now) {
            None => Health::NeverRelisted,
            Some(elapsed) if elapsed > threshold => Health::Stale(elapsed),
            Some(elapsed) => Health::Healthy(elapsed),
        }
    }

    /// Compares a listed pod with its record. Returns whether it has to be inspected.
    fn reconcile(
        &mut self,
        index: usize,
        pod: &ListedPod<'_>,
        read_at: Moment,
        observe: bool,
    ) -> bool {
        let requested = !self.reinspect.is_empty() && self.reinspect.remove(pod.uid);
        let old = &self.record(pod.uid).items;
        if !requested && same(old, pod.items) {
            return false;
        }
        let next = adopt(old, pod.items);
        let changes = Changes::between(old, &next);
        if changes.is_empty() && !requested {
            return false;
        }
        self.pending.push_back(Pending {
            wanted: Wanted {
                uid: SharedUid::from(pod.uid),
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

    /// The record of a pod; a new one if there is none.
    fn record(&mut self, uid: &str) -> &mut Record {
        if !self.records.contains_key(uid) {
            self.records.insert(SharedUid::from(uid), Record::default());
        }
        self.records.get_mut(uid).expect("it was just inserted")
    }

    /// Removes the recorded pods that are not listed. A record without items stays.
    fn remove_unlisted(&mut self, kubelet: &mut Kubelet) {
        let (round, reinspect) = (self.round, &mut self.reinspect);
        self.records.retain(|uid, record| {
            if record.listed.0 == round {
                return true;
            }
            let requested = reinspect.remove(uid);
            if record.items.is_empty() && !requested {
                return true;
            }
            kubelet.cache.delete(uid.as_str());
            send_changes(kubelet, uid, Changes::between(&record.items, &[]));
            false
        });
    }

    /// Stores an inspection. Returns whether the pod's changes take effect.
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

    /// Drops the pending inspections; none of them has been recorded yet.
    fn give_up(&mut self) {
        self.closing = None;
        for pending in self.pending.drain(..) {
            if pending.wanted.requested {
                self.reinspect.insert(pending.wanted.uid);
            }
        }
    }
}

/// A container or a sandbox in the engine's records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) id: SharedId,
    pub(super) phase: Phase,
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

/// Sends the changes of a pod; without any, that it was inspected.
fn send_changes(kubelet: &mut Kubelet, pod: &SharedUid, changes: Changes) {
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

/// Sends the change of a container or a sandbox.
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

/// The first item of each id.
fn by_id(items: &[Item]) -> HashMap<&str, &Item> {
    let items = items.iter().rev();
    items.map(|item| (item.id.as_str(), item)).collect()
}
