//! What is made of events and relists. Pure: each step returns what there is to say.
//!
//! It keeps the Evented PLEG of kubelet 1.26 to 1.36, whose cache events fill, beside what the
//! relist loop's Generic PLEG has found. As in a kubelet, the evented cache starts from a relist,
//! and gets another one every five minutes and after each stream that ended.

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

/// A relist that begins so soon after its stream was asked for may show what the runtime had no
/// listener for yet.
const DEAF_AFTER_OPENING: Duration = Duration::from_millis(500);

/// All that is known.
pub(super) struct Observer {
    within: Duration,
    began: HostInstant,
    /// When the stream was asked for; none while there is none.
    opened: Option<HostInstant>,
    /// When the last list was asked for.
    listed: Option<HostInstant>,
    ledger: Ledger,
    kubelet: Kubelet,
    generic: Generic,
    /// When the evented cache was last relisted; none if it has to be.
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

    /// A stream was asked for.
    pub(super) fn opened(&mut self, at: HostInstant, again: bool) {
        self.opened = Some(at);
        self.summary.reconnects += u64::from(again);
    }

    /// The stream is no more, or events of it were lost.
    pub(super) fn deafened(&mut self) {
        self.opened = None;
        self.relisted = None;
    }

    /// An event came.
    pub(super) fn event(&mut self, at: HostInstant, event: &Event) -> Notice {
        let subject = self.subject(event);
        // A runtime that makes ids up without end must not use up our memory.
        let is_followed = self.ledger.takes(&subject.id);
        let asked_ns = self.opened.map_or(0, |opened| opened.realtime_ns);
        let created_at_ns = event.created_at.0;
        let queued = created_at_ns != 0 && created_at_ns < asked_ns;
        let lag_ns = (created_at_ns != 0).then(|| at.realtime_ns.saturating_sub(created_at_ns));
        self.count(event.kind, lag_ns, queued);
        if is_followed {
            self.follow(&subject, event.kind, at, queued);
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
        tell_state(&mut seen, event);
        if is_followed {
            self.receive(&mut seen, event);
        } else {
            seen.evented = "unfollowed";
        }
        Notice::Event(seen)
    }

    fn follow(&mut self, subject: &Subject, kind: EventKind, at: HostInstant, queued: bool) {
        self.ledger.told(subject, kind, at, queued);
        let uid = SharedUid::from(subject.uid.as_str());
        if kind == EventKind::Deleted {
            let deleted = self.deleted.entry(uid.clone()).or_default();
            deleted.insert(subject.id.clone());
        }
        self.active.insert(uid, at);
    }

    /// A relist came.
    pub(super) fn relisted(&mut self, now: HostInstant, relist: Relist) -> Vec<Notice> {
        self.summary.relists += 1;
        let listed = listed(&relist);
        let deaf = self.is_deaf(&relist);
        self.listed = Some(relist.began);
        // The ledger forgets what is gone, so it is asked for names first.
        let mut notices = if self.summary.relists > 1 {
            self.sent(&relist.lifecycle, &listed)
        } else {
            Vec::new()
        };
        let unheard = self.ledger.listed(relist.began, &listed, deaf);
        if self.summary.relists > 1 {
            self.summary.unheard += unheard;
        }
        notices.extend(self.missed(now));
        self.relist_evented(&relist);
        let outage = self.opened.is_none() || self.relisted.is_none();
        if deaf {
            // Events may have gone by since: the next list, which is not deaf, is needed, too.
            self.relisted = None;
        }
        self.note_activity(now, relist.believed);
        notices.extend(self.compare(outage || deaf));
        notices
    }

    /// Whether a relist may show what no stream could tell: there was none, or it had just been
    /// asked for, or this is the first list since then.
    fn is_deaf(&self, relist: &Relist) -> bool {
        let Some(opened) = self.opened else {
            return true;
        };
        let first = self.listed.is_none_or(|before| before < opened);
        first || relist.began.since(opened) < DEAF_AFTER_OPENING
    }

    /// All that was seen until now.
    pub(super) fn summary(&self, now: HostInstant) -> Summary {
        Summary {
            watched_ns: nanos(now.since(self.began)),
            lag_median_ns: self.lags.percentile(50),
            lag_p95_ns: self.lags.percentile(95),
            lag_max_ns: self.lags.max(),
            ..self.summary.clone()
        }
    }

    /// What relists tell of a pod.
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

    /// Whom an event is about, as it says itself or as is known from before.
    fn subject(&self, event: &Event) -> Subject {
        let id = event.container.to_string();
        let known = self.ledger.subject(&id).cloned();
        let metadata = event
            .sandbox
            .as_ref()
            .and_then(|told| told.metadata.as_ref());
        let Some(metadata) = metadata else {
            let unknown = Subject {
                id,
                ..Subject::default()
            };
            return known.unwrap_or(unknown);
        };
        let own = event.own_status().and_then(|own| own.metadata.as_ref());
        let own = own.map(|metadata| metadata.name.to_string());
        let is_sandbox = event
            .sandbox
            .as_ref()
            .is_some_and(|told| told.id.as_str() == id);
        let unnamed = (!is_sandbox).then(String::new);
        Subject {
            namespace: metadata.namespace.to_string(),
            pod: metadata.name.to_string(),
            uid: metadata.uid.to_string(),
            container: own.or(known.and_then(|known| known.container)).or(unnamed),
            id,
        }
    }

    /// Gives an event to the Evented PLEG.
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

    /// What the other side's Generic PLEG has sent.
    fn sent(&self, lifecycle: &[LifecycleEvent], listed: &[(Subject, State)]) -> Vec<Notice> {
        let listed = listed
            .iter()
            .map(|(subject, _)| (subject.id.as_str(), subject));
        let listed: BTreeMap<&str, &Subject> = listed.collect();
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

    /// Lets the evented side's own Generic PLEG relist, if a kubelet would. What inspections would
    /// tell it they have told the other one: in this relist, or before, and it is so still.
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
            let told_now = relist.with_evented_pleg_gate.get(&wanted.uid).cloned();
            let told_before = || Some(relist.believed.get(&wanted.uid)?.clone().map(as_of_now));
            let Some(told) = told_now.or_else(told_before) else {
                break;
            };
            self.generic.inspected(&mut self.kubelet, told);
        }
        self.kubelet.channel.drain().for_each(drop);
        self.relisted = Some(relist.began);
    }

    fn note_activity(&mut self, now: HostInstant, believed: BTreeMap<SharedUid, Inspection>) {
        for (uid, told) in &believed {
            let is_same = match (told, self.believed.get(uid)) {
                (Ok(told), Some(Ok(before))) => Arc::ptr_eq(told, before),
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

    /// Names the containers whose names their labels do not tell.
    fn name(&self, view: &mut View) {
        for (id, viewed) in view.iter_mut().flatten() {
            let known = self.ledger.subject(id);
            if let Some(name) = viewed.container.as_mut().filter(|name| name.is_empty()) {
                let known = known.and_then(|known| known.container.clone());
                *name = known.unwrap_or_default();
            }
        }
    }

    /// Compares both caches' views of each pod that is quiet. Where they differ because there was
    /// no stream, the runtime is not to blame.
    fn compare(&mut self, outage: bool) -> Vec<Notice> {
        let cached = self.kubelet.cache.entries().into_iter();
        let cached: BTreeMap<SharedUid, Inspection> = cached
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
            let status =
                |told: Option<&Inspection>| told.and_then(|told| told.as_ref().ok()).cloned();
            let (generic, evented) = (status(both.0), status(both.1));
            let deleted = self.deleted.get(uid).unwrap_or(&none);
            let mut found = views(generic.as_deref(), evented.as_deref(), deleted);
            self.name(&mut found.0);
            self.name(&mut found.1);
            let names = generic.or(evented);
            let disputes = &mut self.disputes;
            notices.extend(dispute(disputes, uid, names.as_deref(), found, outage));
        }
        let new = notices.iter();
        let new = new.filter(|notice| matches!(notice, Notice::Disagreement { .. }));
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

/// Says when two views have come to differ, or to agree again.
fn dispute(
    disputes: &mut BTreeMap<SharedUid, (View, View)>,
    uid: &SharedUid,
    names: Option<&PodStatus>,
    (generic, evented): (View, View),
    outage: bool,
) -> Option<Notice> {
    let namespace = names.map_or_else(String::new, |names| names.namespace.to_string());
    let pod = names.map_or_else(String::new, |names| names.name.to_string());
    let told = uid.to_string();
    if generic == evented {
        disputes.remove(uid)?;
        return Some(Notice::Agreement {
            namespace,
            pod,
            uid: told,
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
        uid: told,
        generic,
        evented,
        outage,
    })
}

/// The state of what an event is about, as its own snapshot tells it.
fn tell_state(seen: &mut EventSeen, event: &Event) {
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

/// All that a relist shows, each with its pod.
fn listed(relist: &Relist) -> Vec<(Subject, State)> {
    let sandboxes = relist.sandboxes.iter().map(|listed| {
        let state = State::from(listed.state);
        (sandbox_subject(listed), state)
    });
    let own = relist.sandboxes.iter().map(|listed| (&listed.id, listed));
    let own: BTreeMap<&SandboxId, &SandboxListing> = own.collect();
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
