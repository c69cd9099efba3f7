//! The foreign pods in the recorded history of a watch: assigns entries to pods, and determines
//! when the history of a pod can be judged.
//!
//! A pod is *followed* from its first change until it has been idle long enough for every event
//! about it to be overdue. Then its history is judged and dropped, and a later change begins a new
//! one with the last relists that show the previous state. So memory depends on the number of
//! changing pods and not on the duration of a watch.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::history::{
    Body, CallFault, CallId, CaseHistory, ContainerId, Entry, Event, HostFact, HostInstant,
    POD_UID_LABEL, PodUid, Reply, Request,
};
use crate::limits;

mod followed;
mod relist;

use followed::Followed;
use followed::Unclaimed;
pub(super) use followed::{Loss, Untracked};
use relist::{FailedRelist, PodListing, Relist, Relists, Step};

#[derive(Debug, Default)]
pub(super) struct WatchedPods {
    within: Duration,
    /// The entries about the open stream.
    stream: Vec<Arc<Entry>>,
    relists: Relists,
    last: Option<Relist>,
    /// The state of each pod in the last relist.
    pods: BTreeMap<PodUid, Listed>,
    /// The pod of each sandbox and container in the last relist or a later event.
    owners: HashMap<ContainerId, PodUid>,
    /// Pending calls for a list of a pod's parts, or for the status of one.
    asked: BTreeMap<CallId, PodUid>,
    /// The entries of the lists of the last relist, if it was an on-demand relist of one pod.
    on_demand: Vec<Arc<Entry>>,
    /// The size of all inspections, in bytes.
    inspected: usize,
    followed: BTreeMap<PodUid, Followed>,
    /// Events whose pod is still unknown.
    unclaimed: Unclaimed,
    pub(super) untracked: Untracked,
}

/// A pod in a relist.
#[derive(Debug, Default)]
struct Listed {
    shown: PodListing,
    /// The entries of the last relist that requested the status of each part of the pod.
    inspection: Vec<Arc<Entry>>,
}

impl Listed {
    fn bytes(&self) -> usize {
        let entries = self.inspection.iter();
        entries.map(|entry| entry.approximate_bytes()).sum()
    }
}

impl WatchedPods {
    /// Without pods. An event is late after `within`.
    pub(super) fn new(within: Duration) -> Self {
        Self {
            within,
            ..Self::default()
        }
    }

    /// The maximum lateness of an event.
    pub(super) fn within(&self) -> Duration {
        self.within
    }

    pub(super) fn is_following(&self) -> bool {
        !self.followed.is_empty()
    }

    /// Processes the next entry. Returns the histories that can be judged.
    pub(super) fn push(&mut self, entry: &Arc<Entry>) -> Vec<CaseHistory> {
        let mut histories = self.process(&Arc::new(entry.compact()));
        histories.extend(self.make_room(entry.at));
        histories
    }

    fn process(&mut self, entry: &Arc<Entry>) -> Vec<CaseHistory> {
        match &entry.body {
            Body::SubscriptionOpened { observer: None, .. } => {
                self.stream = vec![entry.clone()];
                self.show_all(entry);
            }
            Body::SubscriptionAnswered { .. } | Body::SubscriptionProven { .. } => {
                self.stream.push(entry.clone());
                self.show_all(entry);
            }
            Body::SubscriptionEnded { .. } => {
                self.stream.clear();
                self.show_all(entry);
            }
            Body::HeldUp { .. } => self.show_all(entry),
            Body::Event { event, .. } => {
                self.arrived(event, entry);
                // While a relist hangs, no call ends.
                if self.is_overlong(event) {
                    return self.quiet(entry.at);
                }
            }
            Body::Fact {
                fact: HostFact::ProcessGone { container, .. },
                ..
            } => {
                if let Some(pod) = self.owners.get(container).cloned() {
                    self.changed(&pod, entry);
                }
            }
            Body::CallBegan {
                call,
                case: None,
                request,
                ..
            } => self.call_began(*call, request, entry),
            Body::CallEnded { call, result, .. } => {
                self.call_ended(*call, result.as_ref(), entry);
                return self.quiet(entry.at);
            }
            _ => {}
        }
        Vec::new()
    }

    /// The number of pods that still wait for a relist after their last change, for longer than a
    /// relist may take.
    pub(super) fn without_relist(&self, now: HostInstant) -> usize {
        let waits = |followed: &&Followed| {
            let passed = followed.history.not_held_up(followed.changed, now);
            followed.relisted.is_none() && passed > limits::LATE_RELIST
        };
        self.followed.values().filter(waits).count()
    }

    /// The histories of all followed pods.
    pub(super) fn finish(&mut self) -> Vec<CaseHistory> {
        let followed = std::mem::take(&mut self.followed).into_values();
        followed.map(|followed| followed.history).collect()
    }

    fn show_all(&mut self, entry: &Arc<Entry>) {
        for followed in self.followed.values_mut() {
            followed.history.push(entry);
        }
    }

    fn arrived(&mut self, event: &Event, entry: &Arc<Entry>) {
        let known = self.owners.get(&event.container);
        if event.shows_its_subject() {
            self.untracked.shown(&event.container);
        } else if known.is_none() && self.is_relisted() {
            self.untracked.unlisted(&event.container, entry.at);
        }
        let Some(pod) = known.or(event.pod_uid()).cloned() else {
            for _ in 0..self.unclaimed.push(entry) {
                self.untracked.add(Loss::Unclaimed, entry.at);
            }
            return;
        };
        if self.owners.len() < limits::WATCHED {
            self.owners.insert(event.container.clone(), pod.clone());
        } else if known.is_none() {
            self.untracked.add(Loss::Containers, entry.at);
        }
        self.changed(&pod, entry);
    }

    /// Whether the history of an event's pod is too long.
    fn is_overlong(&self, event: &Event) -> bool {
        let pod = self.owners.get(&event.container).or(event.pod_uid());
        let followed = pod.and_then(|pod| self.followed.get(pod));
        followed.is_some_and(Followed::is_overlong)
    }

    /// Whether a relist has shown all pods since the stream was opened. Before that, events may be
    /// about objects that were removed earlier.
    fn is_relisted(&self) -> bool {
        let opened = self.stream.first().zip(self.last.as_ref());
        opened.is_some_and(|(opened, last)| opened.seq < last.began())
    }

    /// Follows a pod that an entry shows as changed.
    fn changed(&mut self, pod: &PodUid, entry: &Arc<Entry>) {
        self.follow(pod, entry.at);
        if let Some(followed) = self.followed.get_mut(pod) {
            followed.changed(entry.at);
            followed.history.push(entry);
        }
    }

    fn call_began(&mut self, call: CallId, request: &Request, entry: &Arc<Entry>) {
        self.relists.began(call, request, entry);
        let id = match request {
            Request::SandboxStatus(id) => ContainerId::from(id),
            Request::ContainerStatus(id) => id.clone(),
            Request::ListSandboxes { labels, .. } | Request::ListContainers { labels, .. } => {
                if matches!(request, Request::ListSandboxes { .. }) {
                    self.on_demand.clear();
                }
                if let Some(uid) = labels.get(POD_UID_LABEL) {
                    let pod = PodUid::from(&**uid);
                    self.listed_on_demand(&pod, entry);
                    self.asked.insert(call, pod);
                }
                return;
            }
            _ => return,
        };
        if let Some(pod) = self.owners.get(&id).cloned() {
            self.inspected(&pod, entry);
            self.asked.insert(call, pod);
        }
    }

    fn call_ended(&mut self, call: CallId, result: Result<&Reply, &CallFault>, entry: &Arc<Entry>) {
        if let Some(pod) = self.asked.remove(&call) {
            match result {
                Ok(Reply::Containers(listed)) => {
                    for container in listed {
                        self.untracked.shown(&container.id);
                    }
                    self.listed_on_demand(&pod, entry);
                }
                Ok(Reply::Sandboxes(_)) => {
                    self.listed_on_demand(&pod, entry);
                }
                Ok(_) | Err(_) => self.inspected(&pod, entry),
            }
        }
        match self.relists.ended(call, result, entry) {
            Step::None => {}
            Step::Failed(relist) => self.relist_failed(&relist),
            Step::Whole(relist) => self.relisted(relist),
        }
    }

    /// Adds a failed relist to every followed pod: it may prove that the runtime was unavailable.
    fn relist_failed(&mut self, relist: &FailedRelist) {
        self.asked.clear();
        for (pod, followed) in &mut self.followed {
            for entry in relist.of_pod(pod) {
                followed.history.push_earlier(&entry);
            }
        }
    }

    /// Adds an entry of a list of a pod's parts.
    fn listed_on_demand(&mut self, pod: &PodUid, entry: &Arc<Entry>) {
        self.on_demand.push(entry.clone());
        if let Some(followed) = self.followed.get_mut(pod) {
            followed.history.push(entry);
        }
    }

    /// Adds an entry about the status of a part of a pod, which belongs to the last relist. An
    /// on-demand one may be the first to show the pod.
    fn inspected(&mut self, pod: &PodUid, entry: &Arc<Entry>) {
        let lists = self.on_demand.first().map(|first| first.seq);
        let began = lists.or(self.last.as_ref().map(Relist::began));
        let is_new = lists.is_some() && self.pods.len() < limits::WATCHED;
        if is_new || self.pods.contains_key(pod) {
            let listed = self.pods.entry(pod.clone()).or_default();
            if listed.inspection.first().map(|first| first.seq) != began {
                listed.inspection = match &self.last {
                    _ if lists.is_some() => self.on_demand.clone(),
                    Some(last) => last.of_pod(pod),
                    None => Vec::new(),
                };
            }
            self.inspected += entry.approximate_bytes();
            if self.inspected <= limits::WATCHED_BYTES {
                listed.inspection.push(entry.clone());
            } else {
                self.untracked.add(Loss::Statuses, entry.at);
            }
        }
        if let Some(followed) = self.followed.get_mut(pod) {
            followed.history.push(entry);
        }
    }

    /// Processes a relist: each pod that it shows as changed is followed from now on.
    fn relisted(&mut self, relist: Relist) {
        let mut listings = relist.pods();
        let owners = listings.iter().flat_map(|(pod, listing)| {
            let ids = listing.ids();
            ids.map(move |id| (id.clone(), pod.clone()))
        });
        let owners: HashMap<ContainerId, PodUid> = owners.collect();
        let is_first = self.last.is_none();
        let now = relist.ended_at();
        let gone = self.pods.keys().filter(|pod| !listings.contains_key(*pod));
        let gone: Vec<PodUid> = gone.cloned().collect();
        listings.extend(gone.into_iter().map(|pod| (pod, PodListing::default())));
        for (pod, shown) in &listings {
            let before = self.pods.get(pod).map(|listed| &listed.shown);
            if !is_first && before.unwrap_or(&PodListing::default()) != shown {
                self.follow(pod, now);
                if let Some(followed) = self.followed.get_mut(pod) {
                    followed.changed(now);
                }
            }
        }
        self.claim(&owners);
        self.untracked
            .relisted(&owners, relist.began_at(), self.within);
        for (pod, followed) in &mut self.followed {
            for entry in relist.of_pod(pod) {
                followed.history.push_earlier(&entry);
            }
            if followed.relisted.is_none()
                && followed.changed.monotonic_ns < relist.began_at().monotonic_ns
            {
                followed.relisted = Some(now);
            }
        }
        listings.retain(|_, shown| *shown != PodListing::default());
        self.pods.retain(|pod, _| listings.contains_key(pod));
        for (pod, shown) in listings {
            self.pods.entry(pod).or_default().shown = shown;
        }
        self.inspected = self.pods.values().map(Listed::bytes).sum();
        // Ids that only events have shown are needed as long as their pods are followed.
        let followed = &self.followed;
        self.owners.retain(|_, pod| followed.contains_key(pod));
        self.owners.extend(owners);
        self.last = Some(relist);
    }

    /// Assigns the events of ids in a relist to their pods.
    fn claim(&mut self, owners: &HashMap<ContainerId, PodUid>) {
        for (pod, entry) in self.unclaimed.claim(owners) {
            self.follow(&pod, entry.at);
            if let Some(followed) = self.followed.get_mut(&pod) {
                followed.history.push_earlier(&entry);
            }
        }
    }

    /// Begins the history of a pod that is not followed, with the known facts about it. The number
    /// of pods is limited, in case a runtime invents them.
    fn follow(&mut self, pod: &PodUid, at: HostInstant) {
        if self.followed.contains_key(pod) {
            return;
        }
        if self.followed.len() >= limits::FOLLOWED_PODS {
            self.untracked.add(Loss::Pods, at);
            return;
        }
        let mut known = self.stream.clone();
        if let Some(listed) = self.pods.get(pod) {
            known.extend(listed.inspection.iter().cloned());
        }
        known.extend(self.last.iter().flat_map(|last| last.of_pod(pod)));
        known.sort_by_key(|entry| entry.seq);
        known.dedup_by_key(|entry| entry.seq);
        let mut history = self.blank(pod);
        for entry in &known {
            history.push(entry);
        }
        let followed = Followed {
            history,
            since: at,
            changed: at,
            relisted: None,
        };
        self.followed.insert(pod.clone(), followed);
    }

    fn blank(&self, pod: &PodUid) -> CaseHistory {
        let percent = self.within.as_millis() * 100 / limits::EVENT_WAIT.as_millis();
        CaseHistory::of_foreign_pod(pod.clone(), u32::try_from(percent).unwrap_or(u32::MAX))
    }

    /// Removes the histories of idle pods, and the first parts of those that are never idle.
    fn quiet(&mut self, now: HostInstant) -> Vec<CaseHistory> {
        let is_endless = |followed: &Followed| {
            now.since(followed.since) > limits::WATCH_CUT || followed.is_overlong()
        };
        let is_quiet = |followed: &Followed| followed.is_quiet(self.within, now);
        let over: Vec<PodUid> = self
            .followed
            .iter()
            .filter(|(_, followed)| is_quiet(followed) || is_endless(followed))
            .map(|(pod, _)| pod.clone())
            .collect();
        let mut histories = Vec::new();
        for pod in over {
            let Some(followed) = self.followed.remove(&pod) else {
                continue;
            };
            if !followed.is_quiet(self.within, now) {
                let mut history = self.blank(&pod);
                for entry in self.rest(&followed.history, now) {
                    history.push_earlier(&entry);
                }
                let rest = Followed {
                    history,
                    since: now,
                    changed: followed.changed,
                    relisted: followed.relisted,
                };
                self.followed.insert(pod, rest);
            }
            histories.push(followed.history);
        }
        histories
    }

    /// Removes the largest histories while all of them exceed [`limits::WATCHED_BYTES`]. The rest
    /// of each begins with the stream alone.
    fn make_room(&mut self, now: HostInstant) -> Vec<CaseHistory> {
        let bytes = |followed: &Followed| followed.history.approximate_bytes();
        let mut all: usize = self.followed.values().map(bytes).sum();
        let mut histories = Vec::new();
        while all > limits::WATCHED_BYTES {
            let largest = self.followed.iter().max_by_key(|(_, it)| bytes(it));
            let Some(pod) = largest.map(|(pod, _)| pod.clone()) else {
                break;
            };
            let mut rest = self.blank(&pod);
            self.stream.iter().for_each(|entry| rest.push(entry));
            let Some(followed) = self.followed.get_mut(&pod) else {
                break;
            };
            all -= bytes(followed);
            (followed.since, followed.relisted) = (now, None);
            histories.push(std::mem::replace(&mut followed.history, rest));
            self.untracked.add(Loss::Bytes, now);
        }
        histories
    }

    /// The first entries of the rest of a history that is never idle: those since the last relist
    /// that inspected the pod and is so old that its changes have events. Without such a relist it
    /// begins with the stream alone.
    fn rest(&self, history: &CaseHistory, now: HostInstant) -> Vec<Arc<Entry>> {
        let entries = history.entries();
        let mut relist = None;
        let mut start = None;
        for entry in entries {
            if now.since(entry.at) <= self.within {
                break;
            }
            if let Body::CallBegan { request, .. } = &entry.body {
                match request {
                    Request::ListSandboxes { .. } => relist = Some(entry.seq),
                    Request::SandboxStatus(_) => start = relist,
                    _ => {}
                }
            }
        }
        let from = |start| entries.iter().filter(move |entry| entry.seq >= start);
        let start = start.filter(|start| from(*start).count() <= limits::WATCH_POD_ENTRIES / 2);
        let Some(start) = start else {
            return self.stream.clone();
        };
        let mut stream = Vec::new();
        for entry in entries.iter().take_while(|entry| entry.seq < start) {
            match &entry.body {
                Body::SubscriptionOpened { .. } => stream = vec![entry.clone()],
                Body::SubscriptionAnswered { .. } | Body::SubscriptionProven { .. } => {
                    stream.push(entry.clone());
                }
                Body::SubscriptionEnded { .. } => stream.clear(),
                _ => {}
            }
        }
        stream.extend(from(start).cloned());
        stream
    }
}
