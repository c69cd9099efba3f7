//! Evaluates events and relists. Pure: each step returns the notices to print.
//!
//! It runs the Evented PLEG of kubelet 1.26 to 1.36, whose cache is filled by events, and compares
//! it with the Generic PLEG of the relist loop. As in a kubelet, the evented cache starts from a
//! relist, and is relisted every five minutes and after each stream that ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::lags::Lags;
use super::ledger::Ledger;
use super::notice::{EventSeen, Notice, Subject, Summary, View, nanos};
use super::views::views;
use crate::drive::Relist;
use crate::history::{
    ContainerListing, Event, EventKind, HostInstant, Labels, SandboxId, SandboxListing,
    SandboxStatus,
};
use crate::pleg::{
    Channel, Features, Generic, Inspection, Kubelet, LifecycleEvent, Moment, POD_UID_LABEL,
    PodStatus, Receipt, SharedUid, State, list_pods, receive,
};

/// A relist that begins this soon after its stream was requested may show transitions from before
/// the subscription was effective.
const BLIND_AFTER_OPENING: Duration = Duration::from_millis(500);

/// The state of the observation.
pub(super) struct Observer {
    within: Duration,
    began: HostInstant,
    /// When the stream was requested; none while there is no stream.
    opened: Option<HostInstant>,
    /// When the last list was requested.
    listed: Option<HostInstant>,
    ledger: Ledger,
    kubelet: Kubelet,
    generic: Generic,
    /// When the evented cache was last relisted; none if a relist is due.
    relisted: Option<HostInstant>,
    believed: BTreeMap<SharedUid, Inspection>,
    active: BTreeMap<SharedUid, HostInstant>,
    deleted: BTreeMap<SharedUid, BTreeSet<String>>,
    disputes: BTreeMap<SharedUid, (View, View)>,
    lags: Lags,
    summary: Summary,
}

impl Observer {
    pub(super) fn new(within: Duration, began: HostInstant) -> Self {
        Self {
            within,
            began,
            opened: None,
            listed: None,
            ledger: Ledger::default(),
            kubelet: Kubelet::new(Features::EventedInUse, Channel::KUBELET_CAPACITY),
            generic: Generic::new(),
            relisted: None,
            believed: BTreeMap::new(),
            active: BTreeMap::new(),
            deleted: BTreeMap::new(),
            disputes: BTreeMap::new(),
            lags: Lags::default(),
            summary: Summary::default(),
        }
    }

    /// A stream was requested.
    pub(super) fn opened(&mut self, at: HostInstant, again: bool) {
        self.opened = Some(at);
        self.summary.reconnects += u64::from(again);
    }

    /// The stream has ended, or some of its events were lost.
    pub(super) fn stream_lost(&mut self) {
        self.opened = None;
        self.relisted = None;
    }

    /// Processes an event.
    pub(super) fn event(&mut self, at: HostInstant, event: &Event) -> Notice {
        let subject = self.subject(event);
        // Unbounded ids of a broken runtime must not exhaust the memory.
        let is_tracked = self.ledger.can_track(&subject.id);
        let asked_ns = self.opened.map_or(0, |opened| opened.realtime_ns);
        let created_at_ns = event.created_at.0;
        let queued = created_at_ns != 0 && created_at_ns < asked_ns;
        let lag_ns = (created_at_ns != 0).then(|| at.realtime_ns.saturating_sub(created_at_ns));
        self.count(event.kind, lag_ns, queued);
        if is_tracked {
            self.track(&subject, event.kind, at, queued);
        }
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
            self.receive(&mut seen, event);
        } else {
            seen.evented = "unfollowed";
        }
        Notice::Event(seen)
    }

    fn track(&mut self, subject: &Subject, kind: EventKind, at: HostInstant, queued: bool) {
        self.ledger.event(subject, kind, at, queued);
        let uid = SharedUid::from(subject.uid.as_str());
        if kind == EventKind::Deleted {
            let deleted = self.deleted.entry(uid.clone()).or_default();
            deleted.insert(subject.id.clone());
        }
        self.active.insert(uid, at);
    }

    /// Processes a relist.
    pub(super) fn relisted(&mut self, now: HostInstant, relist: Relist) -> Vec<Notice> {
        self.summary.relists += 1;
        let listed = listed(&relist);
        let blind = self.may_miss_events(&relist);
        self.listed = Some(relist.began);
        // The ledger drops what is gone, so names are looked up first.
        let mut notices = if self.summary.relists > 1 {
            self.sent(&relist.lifecycle, &listed)
        } else {
            Vec::new()
        };
        let unheard = self.ledger.listed(relist.began, &listed, blind);
        if self.summary.relists > 1 {
            self.summary.unheard += unheard;
        }
        notices.extend(self.missed(now));
        self.relist_evented(&relist);
        let outage = self.opened.is_none() || self.relisted.is_none();
        if blind {
            // Events may have been missed since: the next list, which is not blind, is needed, too.
            self.relisted = None;
        }
        self.note_activity(now, relist.believed);
        notices.extend(self.compare(outage || blind));
        notices
    }

    /// Whether a relist may show transitions that no stream could report: there was no stream, or
    /// it had just been requested, or this is the first list since.
    fn may_miss_events(&self, relist: &Relist) -> bool {
        let Some(opened) = self.opened else {
            return true;
        };
        let first = self.listed.is_none_or(|before| before < opened);
        first || relist.began.since(opened) < BLIND_AFTER_OPENING
    }

    /// The summary until now.
    pub(super) fn summary(&self, now: HostInstant) -> Summary {
        Summary {
            watched_ns: nanos(now.since(self.began)),
            lag_median_ns: self.lags.percentile(50),
            lag_p95_ns: self.lags.percentile(95),
            lag_max_ns: self.lags.max(),
            ..self.summary.clone()
        }
    }

    /// The state of a pod according to relists.
    #[cfg(test)]
    pub(super) fn believes(&self, uid: &SharedUid) -> Option<&Inspection> {
        self.believed.get(uid)
    }

    fn count(&mut self, kind: EventKind, lag_ns: Option<i64>, queued: bool) {
        *self.summary.events.entry(kind.to_string()).or_default() += 1;
        self.summary.queued += u64::from(queued);
        if let Some(lag_ns) = lag_ns.filter(|_| !queued) {
            self.lags.add(lag_ns);
        }
    }

    /// The subject of an event, by its own snapshot or as known before.
    fn subject(&self, event: &Event) -> Subject {
        let id = event.container.to_string();
        let known = self.ledger.subject(&id).cloned();
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

    /// The notices for what the relist loop's Generic PLEG has sent.
    fn sent(&self, lifecycle: &[LifecycleEvent], listed: &[(Subject, State)]) -> Vec<Notice> {
        let listed: BTreeMap<&str, &Subject> = listed
            .iter()
            .map(|(subject, _)| (subject.id.as_str(), subject))
            .collect();
        let notice = |event: &LifecycleEvent| {
            let id = event.container.as_ref().map_or("", |id| id.as_str());
            let known = listed.get(id).copied().or(self.ledger.subject(id));
            let unknown = || Subject {
                uid: event.pod.to_string(),
                id: id.to_owned(),
                ..Subject::default()
            };
            Notice::Relist {
                subject: known.cloned().unwrap_or_else(unknown),
                lifecycle: event.kind.to_string(),
            }
        };
        lifecycle.iter().map(notice).collect()
    }

    fn missed(&mut self, now: HostInstant) -> Vec<Notice> {
        let missing = self.ledger.missing(now, self.within);
        self.summary.missed += missing.len() as u64;
        let notices = missing.into_iter().map(|missing| Notice::Missed {
            listed: match missing.listed {
                Some(state) => state.label().to_uppercase(),
                None => "gone".to_owned(),
            },
            subject: missing.subject,
            kind: missing.kind.to_string(),
            waited_ns: nanos(missing.waited),
        });
        notices.collect()
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
        self.relisted = Some(relist.began);
    }

    fn note_activity(&mut self, now: HostInstant, believed: BTreeMap<SharedUid, Inspection>) {
        for (uid, inspection) in &believed {
            let is_same = match (inspection, self.believed.get(uid)) {
                (Ok(now), Some(Ok(before))) => Arc::ptr_eq(now, before),
                _ => false,
            };
            if !is_same {
                self.active.insert(uid.clone(), now);
            }
        }
        for uid in self.believed.keys() {
            if !believed.contains_key(uid) {
                self.active.insert(uid.clone(), now);
            }
        }
        self.believed = believed;
        let within = self.within;
        self.active.retain(|_, at| now.since(*at) <= within);
    }

    /// Fills in the names of containers that have no name label.
    fn name(&self, view: &mut View) {
        for (id, viewed) in view.iter_mut().flatten() {
            let known = self.ledger.subject(id);
            if let Some(name) = viewed.container.as_mut().filter(|name| name.is_empty()) {
                let known = known.and_then(|known| known.container.clone());
                *name = known.unwrap_or_default();
            }
        }
    }

    /// Compares both caches for each pod that is idle. A difference because of an `outage` of the
    /// stream is not the runtime's fault.
    fn compare(&mut self, outage: bool) -> Vec<Notice> {
        let cached: BTreeMap<SharedUid, Inspection> = self
            .kubelet
            .cache
            .entries()
            .into_iter()
            .map(|(uid, entry)| (uid.clone(), entry.inspection.clone()))
            .collect();
        self.deleted.retain(|uid, _| cached.contains_key(uid));
        let pods: BTreeSet<&SharedUid> = self.believed.keys().chain(cached.keys()).collect();
        let none = BTreeSet::new();
        let mut notices = Vec::new();
        for uid in pods {
            let both = (self.believed.get(uid), cached.get(uid));
            if self.active.contains_key(uid)
                || matches!(both, (Some(Err(_)), _) | (_, Some(Err(_))))
            {
                continue;
            }
            let status = |inspection: Option<&Inspection>| {
                inspection.and_then(|it| it.as_ref().ok()).cloned()
            };
            let (generic, evented) = (status(both.0), status(both.1));
            let deleted = self.deleted.get(uid).unwrap_or(&none);
            let mut found = views(generic.as_deref(), evented.as_deref(), deleted);
            self.name(&mut found.0);
            self.name(&mut found.1);
            let names = generic.or(evented);
            let disputes = &mut self.disputes;
            notices.extend(dispute(disputes, uid, names.as_deref(), found, outage));
        }
        let new = notices
            .iter()
            .filter(|notice| matches!(notice, Notice::Disagreement { .. }));
        let counter = if outage {
            &mut self.summary.disagreements_in_outages
        } else {
            &mut self.summary.disagreements
        };
        *counter += new.count() as u64;
        let known = |uid: &SharedUid| self.believed.contains_key(uid) || cached.contains_key(uid);
        self.disputes.retain(|uid, _| known(uid));
        notices
    }
}

/// The notice if two views begin to differ, or agree again.
fn dispute(
    disputes: &mut BTreeMap<SharedUid, (View, View)>,
    uid: &SharedUid,
    names: Option<&PodStatus>,
    (generic, evented): (View, View),
    outage: bool,
) -> Option<Notice> {
    let namespace = names.map_or_else(String::new, |names| names.namespace.to_string());
    let pod = names.map_or_else(String::new, |names| names.name.to_string());
    let id = uid.to_string();
    if generic == evented {
        disputes.remove(uid)?;
        return Some(Notice::Agreement {
            namespace,
            pod,
            uid: id,
        });
    }
    let found = (generic, evented);
    if disputes.get(uid) == Some(&found) {
        return None;
    }
    disputes.insert(uid.clone(), found.clone());
    let (generic, evented) = found;
    Some(Notice::Disagreement {
        namespace,
        pod,
        uid: id,
        generic,
        evented,
        outage,
    })
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

/// The listed objects with their pods and states.
fn listed(relist: &Relist) -> Vec<(Subject, State)> {
    let sandboxes = relist.sandboxes.iter().map(|listed| {
        let state = State::from(listed.state);
        (sandbox_subject(listed), state)
    });
    let own: BTreeMap<&SandboxId, &SandboxListing> = relist
        .sandboxes
        .iter()
        .map(|listed| (&listed.id, listed))
        .collect();
    let containers = relist.containers.iter().map(|listed| {
        let state = State::from(listed.state);
        let sandbox = own.get(&listed.sandbox).copied();
        (container_subject(listed, sandbox), state)
    });
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
