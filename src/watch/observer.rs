//! Evaluates events and relists. Pure: each step returns the notices to print.
//!
//! It runs the Evented PLEG of kubelet 1.26 to 1.36, whose cache is filled by events. As in a
//! kubelet, the cache starts from a relist, and is relisted every five minutes and after the end of
//! each stream. With only profiles of kubelet 1.37 or later, it runs that version's Evented PLEG,
//! which has no cache.
//!
//! Long, because all of it changes one state.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::notice::{EventSeen, Notice, Subject, Summary};
use super::table::{LastEvent, PodRow, belief};
use crate::drive::Relist;
use crate::history::{
    ContainerListing, ContainerStatus, Event, EventKind, HostInstant, Labels, PodUid, SandboxId,
    SandboxListing, SandboxStatus,
};
use crate::limits;
use crate::oracle::{self, NO_MISSED_EVENT, PLEGS_AGREE};
use crate::outcome::{Guarantee, Profile, WatchTotals};
use crate::pleg::{
    Channel, Features, Generic, Hint, Inspection, Kubelet, LifecycleEvent, Moment, POD_UID_LABEL,
    PodStatus, Receipt, SharedUid, State, list_pods, receive, relist_hint,
};
use crate::report::nanos;
use crate::verdicts::WatchNews;

pub(super) struct Observer {
    began: HostInstant,
    profile: Profile,
    /// The time of the stream's request; `None` without a stream.
    opened: Option<HostInstant>,
    /// The names in the last relist or in later events, by id.
    names: BTreeMap<String, Subject>,
    /// Names that only the previous relist contains.
    earlier: BTreeMap<String, Subject>,
    kubelet: Kubelet,
    generic: Generic,
    /// The time of the evented cache's last relist; `None` if one is due.
    relisted: Option<HostInstant>,
    believed: BTreeMap<SharedUid, Inspection>,
    /// The size in bytes of the last event about each pod in the evented cache, and of all these.
    cached: BTreeMap<String, usize>,
    cached_bytes: usize,
    /// The last event of each pod, by its UID, and since when the two kubelets differ about it.
    last_events: BTreeMap<String, LastEvent>,
    differ: BTreeMap<String, HostInstant>,
    lags: Lags,
    summary: Summary,
}

/// The number of lags kept for the quantiles; older ones are dropped.
const KEPT: usize = 100_000;

/// In nanoseconds.
#[derive(Debug, Default)]
pub(super) struct Lags {
    kept: VecDeque<i64>,
    max: Option<i64>,
}

impl Observer {
    /// An observer for a kubelet that takes its state from events, or one that takes events as
    /// hints.
    pub(super) fn new(began: HostInstant, profile: Profile) -> Self {
        Self {
            began,
            profile,
            opened: None,
            names: BTreeMap::new(),
            earlier: BTreeMap::new(),
            kubelet: Kubelet::new(Features::EventedInUse, Channel::KUBELET_CAPACITY),
            generic: Generic::new(),
            relisted: None,
            believed: BTreeMap::new(),
            cached: BTreeMap::new(),
            cached_bytes: 0,
            last_events: BTreeMap::new(),
            differ: BTreeMap::new(),
            lags: Lags::default(),
            summary: Summary::default(),
        }
    }

    /// Records the request of a stream.
    pub(super) fn opened(&mut self, at: HostInstant, again: bool) {
        self.opened = Some(at);
        self.summary.reconnects += u64::from(again);
    }

    /// Records the end of the stream, or the loss of some of its events.
    pub(super) fn stream_lost(&mut self) {
        self.opened = None;
        self.relisted = None;
    }

    /// Processes an event of this size in bytes.
    pub(super) fn event(&mut self, at: HostInstant, event: &Event, bytes: usize) -> Notice {
        let subject = self.subject(event);
        // Unbounded ids of a broken runtime must not exhaust the memory.
        let is_known = self.names.contains_key(&subject.id);
        let is_tracked = (is_known || self.names.len() < limits::WATCHED)
            && !event.has_long_names()
            && self.reserve(event, bytes);
        let created_at_ns = event.created_at.0;
        let queued = self.is_queued(event);
        let lag_ns = (created_at_ns != 0).then(|| at.realtime_ns.saturating_sub(created_at_ns));
        self.count(event.kind, lag_ns, queued);
        let mut seen = EventSeen {
            subject,
            kind: event.kind.to_string(),
            created_at_ns,
            arrived_ns: at.realtime_ns,
            lag_ns,
            queued,
            ..EventSeen::default()
        };
        set_state(&mut seen, event);
        if is_tracked {
            self.names
                .insert(seen.subject.id.clone(), seen.subject.clone());
            let of = seen.subject.container.as_deref().unwrap_or("sandbox");
            let text = format!("{} {of}", seen.kind);
            let uid = &seen.subject.uid;
            if self.last_events.len() < limits::WATCHED || self.last_events.contains_key(uid) {
                self.last_events.insert(uid.clone(), LastEvent { at, text });
            }
            self.receive(&mut seen, event);
        } else {
            seen.evented = "unfollowed";
        }
        Notice::Event(seen)
    }

    /// Reserves room in the evented cache for an event, which replaces the one before it; whether
    /// there is room.
    fn reserve(&mut self, event: &Event, bytes: usize) -> bool {
        let uid = event.pod_uid().map_or("", PodUid::as_str);
        let others = self.cached_bytes - self.cached.get(uid).copied().unwrap_or_default();
        let has_room = others + bytes <= limits::WATCHED_BYTES;
        if has_room {
            self.cached.insert(uid.to_owned(), bytes);
            self.cached_bytes = others + bytes;
        }
        has_room
    }

    /// Whether an event is older than the stream on which it came.
    fn is_queued(&self, event: &Event) -> bool {
        let asked_ns = self.opened.map_or(0, |opened| opened.realtime_ns);
        event.created_at.0 != 0 && event.created_at.0 < asked_ns
    }

    /// The pod that a kubelet relists on demand after an event: because it has just synced the pod,
    /// as inferred from the event, or because the event is a hint.
    pub(super) fn relisted_after<'a>(&self, event: &'a Event) -> Option<&'a str> {
        let hinted = || match relist_hint(event) {
            Hint::Relist(_) if self.profile == Profile::Hint => event.pod_uid(),
            _ => None,
        };
        let synced = synced_pod(event).filter(|_| !self.is_queued(event));
        synced.or_else(|| hinted().map(PodUid::as_str))
    }

    pub(super) fn relisted(&mut self, relist: Relist) -> Vec<Notice> {
        let is_of_pod = relist.pod.is_some();
        let listed = listed(&relist).into_iter();
        let by_id = listed.map(|subject| (subject.id.clone(), subject));
        if is_of_pod {
            self.summary.pod_relists += 1;
            self.names.extend(by_id);
        } else {
            self.summary.relists += 1;
            self.earlier = std::mem::replace(&mut self.names, by_id.collect());
        }
        let notices = if is_of_pod || self.summary.relists > 1 {
            self.sent(&relist.lifecycle, is_of_pod)
        } else {
            Vec::new()
        };
        if !is_of_pod {
            self.relist_evented(&relist);
        }
        self.believed = relist.believed;
        notices
    }

    /// The notice of a violation.
    pub(super) fn found(&mut self, news: &WatchNews) -> Notice {
        let violation = &news.violation;
        let rule = oracle::invariant(&violation.rule);
        let own = rule.and_then(|rule| Guarantee::proven_by(rule.name, rule.requirements));
        let guarantee = Guarantee::broken_by(own, &violation.rule, violation.mismatch.kind);
        match &*violation.rule {
            NO_MISSED_EVENT => self.summary.missed += 1,
            PLEGS_AGREE => self.summary.disagreements += 1,
            _ => self.summary.other_violations += 1,
        }
        Notice::Violation {
            rule: violation.rule.clone(),
            guarantee: guarantee.name(),
            level: violation.level.to_string(),
            finding: violation.mismatch.kind.key().to_owned(),
            subject: violation.subject.clone(),
            expected: violation.expected(),
            actual: violation.actual(),
            known: news.is_known,
        }
    }

    /// The pods, by their UIDs, as both kubelets see them.
    pub(super) fn pods(&mut self, now: HostInstant) -> BTreeMap<String, PodRow> {
        let mut pods = BTreeMap::<String, PodRow>::new();
        for (uid, inspection) in &self.believed {
            if let Ok(status) = inspection {
                let pod = pods.entry(uid.to_string()).or_default();
                pod.add(status);
                pod.by_relists = belief(status);
            }
        }
        for (uid, entry) in self.kubelet.cache.entries() {
            if let Some(status) = entry.status() {
                let pod = pods.entry(uid.to_string()).or_default();
                pod.add(status);
                pod.by_events = belief(status);
            }
        }
        self.last_events.retain(|uid, _| pods.contains_key(uid));
        self.differ.retain(|uid, _| pods.contains_key(uid));
        for (uid, pod) in &mut pods {
            pod.last_event = self.last_events.get(uid).cloned();
            let has_cache = self.profile != Profile::Hint;
            pod.differs_since = if !has_cache || pod.by_relists == pod.by_events {
                self.differ.remove(uid);
                None
            } else {
                Some(*self.differ.entry(uid.clone()).or_insert(now))
            };
        }
        pods
    }

    pub(super) fn summary(&self, now: HostInstant, totals: &WatchTotals) -> Summary {
        Summary {
            watched_ns: nanos(now.since(self.began)),
            lag_median_ns: self.lags.percentile(50),
            lag_p95_ns: self.lags.percentile(95),
            lag_max_ns: self.lags.max(),
            outages: totals.outages,
            without_stream_ns: nanos(totals.without_stream),
            ..self.summary.clone()
        }
    }

    fn count(&mut self, kind: EventKind, lag_ns: Option<i64>, queued: bool) {
        let kind = match kind {
            EventKind::Unknown(_) => "UNKNOWN".to_owned(),
            known => known.to_string(),
        };
        *self.summary.events.entry(kind).or_default() += 1;
        self.summary.queued += u64::from(queued);
        if let Some(lag_ns) = lag_ns.filter(|_| !queued) {
            self.lags.add(lag_ns);
        }
    }

    fn known(&self, id: &str) -> Option<&Subject> {
        self.names.get(id).or_else(|| self.earlier.get(id))
    }

    /// The subject of an event, by its own snapshot or as known before.
    fn subject(&self, event: &Event) -> Subject {
        let id = event.container.to_string();
        let known = self.known(&id).cloned();
        let metadata = event
            .sandbox
            .as_ref()
            .and_then(|sandbox| sandbox.metadata.as_ref());
        let Some(metadata) = metadata else {
            let unknown = Subject {
                id,
                ..Subject::default()
            };
            return known.unwrap_or(unknown);
        };
        let own = event
            .own_status()
            .and_then(|own| own.metadata.as_ref())
            .map(|metadata| metadata.name.to_string());
        let is_sandbox = event
            .sandbox
            .as_ref()
            .is_some_and(|sandbox| sandbox.id.as_str() == id);
        let unnamed = (!is_sandbox).then(String::new);
        Subject {
            namespace: metadata.namespace.to_string(),
            pod: metadata.name.to_string(),
            uid: metadata.uid.to_string(),
            container: own.or(known.and_then(|known| known.container)).or(unnamed),
            id,
        }
    }

    /// Passes an event to the Evented PLEG.
    fn receive(&mut self, seen: &mut EventSeen, event: &Event) {
        if self.profile == Profile::Hint {
            seen.evented = match relist_hint(event) {
                Hint::Ignored => "ignored",
                Hint::Sample => "sampled",
                Hint::Relist(_) => "relist",
            };
            return;
        }
        match receive(&mut self.kubelet, event) {
            Ok(Receipt::Taken(_)) => seen.evented = "taken",
            Ok(Receipt::Refused(_)) => seen.evented = "refused",
            Ok(Receipt::Ignored) => seen.evented = "ignored",
            Err(panic) => {
                seen.evented = "panic";
                seen.panic = Some(panic.to_string());
                self.summary.panics += 1;
            }
        }
        let sent = self.kubelet.channel.drain();
        seen.lifecycle = sent.map(|event| event.kind.to_string()).collect();
    }

    /// The notices for the lifecycle events of the relist loop's Generic PLEG.
    fn sent(&self, lifecycle: &[LifecycleEvent], on_demand: bool) -> Vec<Notice> {
        let notice = |event: &LifecycleEvent| {
            let id = event.container.as_ref().map_or("", |id| id.as_str());
            let unknown = || Subject {
                uid: event.pod.to_string(),
                id: id.to_owned(),
                ..Subject::default()
            };
            Notice::Relist {
                subject: self.known(id).cloned().unwrap_or_else(unknown),
                lifecycle: event.kind.to_string(),
                on_demand,
            }
        };
        lifecycle.iter().map(notice).collect()
    }

    /// Relists the evented cache, if a kubelet would. The statuses come from the relist loop's
    /// Generic PLEG: from this relist, or from an earlier one if the pod has not changed since.
    fn relist_evented(&mut self, relist: &Relist) {
        let due = self
            .relisted
            .is_none_or(|last| relist.began.since(last) >= Generic::PERIOD_WITH_EVENTS);
        if !due || self.opened.is_none() {
            return;
        }
        let at = Moment::from_ns(relist.began.realtime_ns);
        let list = list_pods(at, &relist.sandboxes, &relist.containers);
        self.generic.relist(&mut self.kubelet, at, &list);
        while let Some(wanted) = self.generic.wanted() {
            let as_of_now = |mut status: Arc<PodStatus>| {
                Arc::make_mut(&mut status).read_at = at;
                status
            };
            let current = relist.with_evented_pleg_gate.get(&wanted.uid).cloned();
            let earlier = || Some(relist.believed.get(&wanted.uid)?.clone().map(as_of_now));
            let Some(inspection) = current.or_else(earlier) else {
                break;
            };
            self.generic.inspected(&mut self.kubelet, inspection);
        }
        self.kubelet.channel.drain().for_each(drop);
        let cache = &self.kubelet.cache;
        self.cached.retain(|uid, _| cache.get(uid).is_some());
        self.cached_bytes = self.cached.values().sum();
        self.relisted = Some(relist.began);
    }
}

/// The maximum time from the start of a container to the creation of the next one of the same sync.
/// Measured beside a kubelet 1.36.2: up to 0.1 s. A kubelet notices the exit of a container, and
/// syncs its pod again, up to a second later.
const SYNC_NS: i64 = 500_000_000;

/// The pod that a kubelet has just synced without an error, as inferred from an event: one of its
/// containers was started, and no other has failed, since back-off is an error. One that was
/// started by the same sync is in no back-off. Only a kubelet's pods have the label.
pub(super) fn synced_pod(event: &Event) -> Option<&str> {
    let sandbox = event.sandbox.as_ref()?;
    let is_start = event.kind == EventKind::Started;
    let is_container = sandbox.id.as_str() != event.container.as_str();
    let uid = sandbox.labels.get(POD_UID_LABEL)?;
    let name = |status: &ContainerStatus| status.metadata.as_ref().map(|own| own.name.clone());
    let mut newest = BTreeMap::new();
    for status in &event.containers {
        let of_name = newest.entry(name(status)).or_insert(status);
        if status.created_at.0 > of_name.created_at.0 {
            *of_name = status;
        }
    }
    let mut newest = newest.into_values();
    let mut all = event.containers.iter();
    let own = all.find(|status| status.id == event.container);
    let is_of_sync = |status: &ContainerStatus| {
        let since = |own: &ContainerStatus| own.created_at.0.saturating_sub(status.started_at.0);
        own.is_some_and(|own| since(own) < SYNC_NS)
    };
    let has_failed = newest.any(|status| {
        let has_failed = State::from(status.state) == State::Exited && status.exit_code != 0;
        has_failed && !is_of_sync(status)
    });
    (is_start && is_container && !has_failed).then_some(&**uid)
}

/// Sets the state of the event's subject from its own snapshot.
fn set_state(seen: &mut EventSeen, event: &Event) {
    if let Some(own) = event.own_status() {
        let exited = State::from(own.state) == State::Exited;
        seen.state = Some(own.state.to_string());
        seen.exit_code = exited.then_some(own.exit_code);
        seen.reason = (!own.reason.is_empty()).then(|| own.reason.to_string());
    } else if let Some(SandboxStatus { id, state, .. }) = event.sandbox.as_deref()
        && id.as_str() == event.container.as_str()
    {
        seen.state = Some(state.to_string());
    }
}

/// The subjects in a relist, with the names of the pods.
fn listed(relist: &Relist) -> Vec<Subject> {
    let own: BTreeMap<&SandboxId, &SandboxListing> = relist
        .sandboxes
        .iter()
        .map(|listed| (&listed.id, listed))
        .collect();
    let containers = relist.containers.iter().map(|listed| {
        let sandbox = own.get(&listed.sandbox).copied();
        container_subject(listed, sandbox)
    });
    let sandboxes = relist.sandboxes.iter().map(sandbox_subject);
    sandboxes.chain(containers).collect()
}

fn sandbox_subject(listed: &SandboxListing) -> Subject {
    let metadata = listed.metadata.clone().unwrap_or_default();
    Subject {
        namespace: metadata.namespace.to_string(),
        pod: metadata.name.to_string(),
        uid: metadata.uid.to_string(),
        container: None,
        id: listed.id.to_string(),
    }
}

fn container_subject(listed: &ContainerListing, sandbox: Option<&SandboxListing>) -> Subject {
    let mut subject = sandbox.map(sandbox_subject).unwrap_or_default();
    if sandbox.is_none() {
        subject.uid = label(&listed.labels, POD_UID_LABEL);
    }
    let metadata = listed.metadata.as_ref();
    subject.container = Some(metadata.map_or_else(String::new, |own| own.name.to_string()));
    subject.id = listed.id.to_string();
    subject
}

fn label(labels: &Labels, key: &str) -> String {
    labels.get(key).map(ToString::to_string).unwrap_or_default()
}

impl Lags {
    pub(super) fn add(&mut self, lag_ns: i64) {
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(lag_ns);
        self.max = self.max.max(Some(lag_ns));
    }

    pub(super) fn percentile(&self, percent: usize) -> Option<i64> {
        let mut sorted: Vec<i64> = self.kept.iter().copied().collect();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100);
        sorted.get(rank.saturating_sub(1)).copied()
    }

    pub(super) fn max(&self) -> Option<i64> {
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_lags_that_occurred() {
        let mut lags = Lags::default();
        assert_eq!((lags.percentile(50), lags.max()), (None, None));
        (1..=100).rev().for_each(|lag| lags.add(lag));
        let summary = (lags.percentile(50), lags.percentile(95), lags.max());
        assert_eq!(summary, (Some(50), Some(95), Some(100)));
    }

    #[test]
    fn memory_is_bounded_and_the_maximum_is_kept() {
        let mut lags = Lags::default();
        lags.add(7);
        (0..KEPT).for_each(|_| lags.add(1));
        assert_eq!((lags.kept.len(), lags.percentile(100)), (KEPT, Some(1)));
        assert_eq!(lags.max(), Some(7));
    }
}
