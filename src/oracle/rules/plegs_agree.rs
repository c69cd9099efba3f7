//! Replays a history to two kubelets (INV-13), one with the Generic and one with the Evented PLEG.
//! While a pod is at rest, both must have the same status of it.
//!
//! The input of the Generic PLEG is the relists: those of all pods, which run during the cases;
//! those on demand after the calls of a case that end a sync, or after a sync that a watch infers;
//! and the on-demand one with which the driver inspects each pod at the end of a case's steps. The
//! Evented PLEG has none on demand, a feature of 1.36: up to 1.35 nothing repairs the loss of an
//! event for 300 s.
//!
//! The input of the Evented PLEG of kubelet 1.26 to 1.36 is the events of one stream and, after the
//! end of a stream, the next relist. In that relist it takes the containers from `PodSandboxStatus`
//! if the answer has them, and caches them with the answer's timestamp.
//!
//! A pod is at rest after a relist if no call changes it, and no later relist shows it changed,
//! within the maximum latency of its events; and at the driver's own inspection, which waits for
//! the events.

mod at_rest;
mod belief;
mod relists;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::history::{
    Body, Call, CaseHistory, ContainerListing, Event, EventArrival, EventKind, PodUid,
    SandboxListing, SandboxSpec, Seq, Subject, SubjectKind, SubscriptionId,
};
use crate::oracle::index::Index;
use crate::oracle::invariants::{Invariant, MUST_MAY};
use crate::oracle::name_of;
use crate::oracle::rules::snapshots_never_regress::pods_that_went_back;
use crate::oracle::subscribers::is_split;
use crate::outcome::{Fact, Facts, Kind, Mismatch, Violation};
use crate::pleg::{
    Features, Generic, Kubelet, KubeletPanic, POD_UID_LABEL, PodStatus, list_pods, pod_status,
    receive,
};
use belief::{Belief, Believed, differences};
use relists::{Answers, PlegRelist, relists};

pub(in crate::oracle) const RULE: Invariant = Invariant {
    id: "INV-13",
    name: "invariant::plegs-agree",
    sentence: "While a pod is at rest, a kubelet with the Evented PLEG believes the same of it as \
                   one with the Generic PLEG.",
    source: "kubernetes pkg/kubelet/pleg/evented.go and generic.go of 1.36",
    requirements: &["R15", "R17", "R20", "R21", "R23"],
    kinds: &[Kind::KubeletPanic, Kind::BeliefsDiffer],
    compares_clocks: true,
    of_foreign_pods: true,
    levels: MUST_MAY,
    check,
};

/// The capacity of a kubelet's event channel, which is emptied after each relist and event.
const CHANNEL: usize = 1_000;

/// The beliefs of one kubelet about each pod, each with the entry from which it holds.
type Beliefs = BTreeMap<String, Vec<(Seq, Believed)>>;

/// The containers that were deleted and may stay in the cache, as in the real kubelet, each with
/// the entry from which that is known: their own DELETED does not remove them, nor does a relist if
/// the previous one did not list them either.
type Deleted = BTreeMap<String, Seq>;

/// A part of the history without events for the evented kubelet: from the end of its stream to the
/// relist after it.
type Outage = (Seq, Seq);

/// Finds each pod about which the two kubelets have different beliefs, unless a snapshot regressed,
/// which explains it and breaks INV-09, or the kubelet itself has forgotten the pod.
fn check(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    let history = index.history;
    if is_split(history) {
        // Subscribers that take events from each other break INV-12.
        return Vec::new();
    }
    let relists = relists(history);
    let relisting = relisting_kubelet(history, &relists);
    let evented = match evented_kubelet(history, &relists) {
        Ok(evented) => evented,
        Err((seq, panic)) => return vec![panicked(rule, history, seq, &panic)],
    };
    let pods = history.subjects().iter().filter_map(|subject| {
        let SubjectKind::Sandbox(spec) = &subject.kind else {
            return None;
        };
        if is_forgotten(history, &spec.uid) {
            return None;
        }
        let pod = Pod {
            history,
            subject,
            spec,
            changes: at_rest::changes(history, subject),
            relists: &relists,
            relisting: relisting.get(spec.uid.as_str())?,
            evented: evented
                .beliefs
                .get(spec.uid.as_str())
                .map_or(&[], Vec::as_slice),
            deleted: &evented.deleted,
            outages: &evented.outages,
        };
        Some((&spec.uid, pod.disagreements(rule)))
    });
    // A pod's sandboxes share their pod's beliefs: only the newest one names it.
    let mut disagreements: BTreeMap<&PodUid, Vec<Violation>> =
        pods.filter(|(_, found)| !found.is_empty()).collect();
    if !disagreements.is_empty() {
        let went_back = pods_that_went_back(history);
        disagreements.retain(|pod, _| !went_back.contains(*pod));
    }
    disagreements.into_values().flatten().collect()
}

/// Whether a pod had another sandbox when one of its sandboxes was DELETED: at that event a kubelet
/// forgets the whole pod, although the other sandbox may run, and no runtime can prevent it. A
/// later event of the other sandbox, even its DELETED, recreates the pod.
fn is_forgotten(history: &CaseHistory, uid: &PodUid) -> bool {
    let sandboxes = history
        .subjects()
        .iter()
        .filter(|subject| matches!(&subject.kind, SubjectKind::Sandbox(spec) if spec.uid == *uid));
    let sandboxes: Vec<&Subject> = sandboxes.collect();
    let at = |sandbox: &Subject, kind| sandbox.first(kind).map(EventArrival::seq);
    let deleted = |sandbox| at(sandbox, EventKind::Deleted).filter(|at| history.within_steps(*at));
    sandboxes.iter().any(|gone| {
        let others = sandboxes.iter().filter(|other| other.id != gone.id);
        deleted(gone).is_some_and(|gone| {
            others.into_iter().any(|other| {
                let was_there = at(other, EventKind::Created).is_none_or(|made| made < gone);
                let stays = deleted(other).is_none_or(|other| other > gone);
                was_there && stays
            })
        })
    })
}

fn panicked(rule: &Invariant, history: &CaseHistory, at: Seq, panic: &KubeletPanic) -> Violation {
    let of = |subject: &&Subject| subject.arrivals.iter().any(|seen| seen.seq() == at);
    let subject = history.subjects().iter().find(of);
    rule.violation(
        subject.map_or_else(String::new, name_of),
        Mismatch::new(Kind::KubeletPanic, [], [Fact::Panic(panic.to_string())]),
        vec![at],
    )
}

/// One pod, and the beliefs of both kubelets about it.
struct Pod<'a> {
    history: &'a CaseHistory,
    subject: &'a Subject,
    spec: &'a SandboxSpec,
    /// The calls that change it.
    changes: Vec<&'a Call>,
    relists: &'a [PlegRelist<'a>],
    relisting: &'a [(Seq, Believed)],
    evented: &'a [(Seq, Believed)],
    deleted: &'a Deleted,
    outages: &'a [Outage],
}

impl Pod<'_> {
    /// The differences at the first entry where the pod is at rest and the kubelets disagree.
    fn disagreements(&self, rule: &Invariant) -> Vec<Violation> {
        let unlabelled = self.unlabelled();
        self.relisting
            .iter()
            .enumerate()
            .find_map(|(place, (ended, relisting))| {
                let relist = self
                    .relists
                    .iter()
                    .find(|relist| relist.ended.seq == *ended)?;
                let until = self.at_rest_until(relist, place)?;
                if self.has_outage_between(relist.began.seq, until) {
                    return None;
                }
                let nothing = (Seq::default(), Believed::default());
                let evented = self.believed_by_events(&nothing, relist.began.seq, until);
                let (held_from, last) = *evented.last().unwrap_or(&&nothing);
                let newest = last.newest_sandbox();
                let until_then = self.events().filter(|event| event.seq() <= *held_from);
                let cause = relisting.replaced_by(until_then);
                let relisting = relisting.belief(newest);
                let evented = evented.iter().map(|(held_from, believed)| {
                    let deleted = |id| self.deleted.get(id).is_some_and(|from| from <= held_from);
                    let mut belief = believed.belief(newest);
                    belief.retain(|part, _| {
                        !unlabelled.contains(part.id()) && !part.container().is_some_and(deleted)
                    });
                    belief
                });
                let evented: Vec<Belief<'_>> = evented.collect();
                let differences = differences(&relisting, &evented);
                if differences.is_empty() {
                    return None;
                }
                let mut evidence: Vec<Seq> = self.events().map(EventArrival::seq).collect();
                evidence.extend(relist.evidence());
                evidence.sort_unstable();
                let violation = |(beliefs, parts): (Facts, Vec<String>)| {
                    let of = [Fact::Of(parts.join(" and "))];
                    let beliefs: Facts = beliefs.iter().chain(&cause).cloned().collect();
                    let mismatch = Mismatch::new(Kind::BeliefsDiffer, of, beliefs);
                    rule.violation(name_of(self.subject), mismatch, evidence.clone())
                };
                Some(differences.into_iter().map(violation).collect())
            })
            .unwrap_or_default()
    }

    /// The containers that no relist shows: they lack the label that names their pod.
    fn unlabelled(&self) -> BTreeSet<&str> {
        if self.history.is_of_foreign_pod() || !self.spec.labels.contains_key(POD_UID_LABEL) {
            return BTreeSet::new();
        }
        let subjects = self.history.subjects().iter();
        let unlabelled = subjects.filter(|subject| match &subject.kind {
            SubjectKind::Container(spec) => !spec.labels.contains_key(POD_UID_LABEL),
            SubjectKind::Sandbox(_) | SubjectKind::Stray => false,
        });
        unlabelled.map(|subject| subject.id.as_str()).collect()
    }

    fn has_outage_between(&self, from: Seq, until: Seq) -> bool {
        let mut outages = self.outages.iter();
        outages.any(|(since, ended)| *since <= until && from < *ended)
    }

    /// The beliefs of the evented kubelet at an entry, and the later ones until another entry.
    fn believed_by_events<'a>(
        &'a self,
        nothing: &'a (Seq, Believed),
        from: Seq,
        until: Seq,
    ) -> Vec<&'a (Seq, Believed)> {
        let later = self.evented.partition_point(|(since, _)| *since <= from);
        let nothing = (later == 0).then_some(nothing);
        let in_time = |(since, _): &&(Seq, Believed)| *since <= until;
        let believed = self.evented[later.saturating_sub(1)..].iter();
        let believed = believed.take_while(in_time);
        nothing.into_iter().chain(believed).collect()
    }

    fn events(&self) -> impl Iterator<Item = &EventArrival> {
        let of_pod = |subject: &&Subject| match &subject.kind {
            SubjectKind::Sandbox(own) => own.uid == self.spec.uid,
            SubjectKind::Container(own) => own.sandbox_spec.uid == self.spec.uid,
            SubjectKind::Stray => false,
        };
        let subjects = self.history.subjects().iter().filter(of_pod);
        let events = subjects.flat_map(|subject| &subject.arrivals);
        events.filter(|arrival| self.history.within_steps(arrival.seq()))
    }
}

/// A kubelet with the Generic PLEG.
struct Relisting {
    kubelet: Kubelet,
    generic: Generic,
}

impl Relisting {
    fn new(features: Features) -> Self {
        Self {
            kubelet: Kubelet::new(features, CHANNEL),
            generic: Generic::new(),
        }
    }

    /// Lets the kubelet relist the case's pods.
    fn relist(&mut self, pods: &BTreeSet<PodUid>, relist: &PlegRelist<'_>, answers: &Answers<'_>) {
        let at = relist.at();
        let sandboxes = relist.sandboxes.iter().filter(|listed| {
            let metadata = listed.metadata.as_ref();
            metadata.is_some_and(|metadata| pods.contains(&metadata.uid))
        });
        let sandboxes: Vec<&SandboxListing> = sandboxes.collect();
        let containers = relist.containers.iter();
        let containers =
            containers.filter(|listed| sandboxes.iter().any(|of| of.id == listed.sandbox));
        let containers: Vec<&ContainerListing> = containers.collect();
        let list = list_pods(at, &sandboxes, &containers);
        match relist.pod {
            Some(uid) => self.generic.relist_pod(&mut self.kubelet, uid, &list),
            None => self.generic.relist(&mut self.kubelet, at, &list),
        }
        while let Some(wanted) = self.generic.wanted() {
            let pod = list.pod(wanted.index).expect("it was found in this list");
            if answers.are_outdated(&pod, relist) {
                // The case was over before this relist asked.
                break;
            }
            let status = pod_status(&pod, self.kubelet.gate(), at, answers);
            self.generic
                .inspected(&mut self.kubelet, status.map(Arc::new));
        }
        self.kubelet.channel.drain().for_each(drop);
    }

    fn believed(&self, uid: &str) -> Option<&Arc<PodStatus>> {
        self.kubelet.cache.get(uid)?.status()
    }
}

/// The beliefs of a kubelet with the Generic PLEG after each relist, as of the relist's end.
fn relisting_kubelet(history: &CaseHistory, relists: &[PlegRelist<'_>]) -> Beliefs {
    let mut relisting = Relisting::new(Features::Generic);
    let mut answers = Answers::default();
    let mut beliefs = Beliefs::new();
    for relist in relists {
        answers.take(relist);
        relisting.relist(history.pods(), relist, &answers);
        for uid in history.pods() {
            // A kubelet leaves the removal of a pod to the next relist of all pods.
            let is_shown = relist
                .pod
                .is_none_or(|pod| pod == uid.as_str() && relist.lists(uid));
            if let Some(status) = relisting.believed(uid.as_str()).filter(|_| is_shown) {
                let believed = Believed(Some(status.clone()));
                let of_pod = beliefs.entry(uid.to_string()).or_default();
                of_pod.push((relist.ended.seq, believed));
            }
        }
    }
    beliefs
}

/// The beliefs of a kubelet with the Evented PLEG after each event, and after the relist that
/// follows the end of a stream, and the parts of the history without events.
fn evented_kubelet(
    history: &CaseHistory,
    relists: &[PlegRelist<'_>],
) -> Result<Evented, (Seq, KubeletPanic)> {
    let mut evented = Evented {
        kubelet: Relisting::new(Features::EventedInUse),
        listening: None,
        over: BTreeSet::new(),
        // A foreign pod may be older than the first event about it.
        outage_since: history.is_of_foreign_pod().then(Seq::default),
        live_since: None,
        outages: Vec::new(),
        listed: BTreeSet::new(),
        deleted: Deleted::new(),
        beliefs: Beliefs::new(),
    };
    let mut answers = Answers::default();
    let mut relists = relists.iter().peekable();
    for entry in history.entries() {
        if !history.within_steps(entry.seq) {
            break;
        }
        match &entry.body {
            Body::Event {
                subscription,
                event,
                ..
            } => {
                let received = evented.receive(entry.seq, *subscription, event);
                received.map_err(|panic| (entry.seq, panic))?;
            }
            Body::SubscriptionEnded { subscription, .. } => {
                evented.ended(entry.seq, *subscription);
            }
            Body::SubscriptionProven { .. } => evented.live_since = Some(entry.seq),
            Body::CallEnded { .. } => {
                while let Some(relist) = relists.next_if(|next| next.ended.seq <= entry.seq) {
                    answers.take(relist);
                    if evented.is_ended_by(relist) {
                        evented.relist(history.pods(), relist, &answers);
                    }
                }
            }
            _ => {}
        }
    }
    let for_good = evented.outage_since.map(|since| (since, Seq(u64::MAX)));
    evented.outages.extend(for_good);
    Ok(evented)
}

struct Evented {
    kubelet: Relisting,
    listening: Option<SubscriptionId>,
    /// Cancelled streams: an event that was in transit may still be recorded.
    over: BTreeSet<SubscriptionId>,
    /// The end of its stream, if it has not relisted since; the beginning of the history of a
    /// foreign pod.
    outage_since: Option<Seq>,
    /// The entry that proved its current stream: a relist that began earlier is older.
    live_since: Option<Seq>,
    outages: Vec<Outage>,
    /// The containers in its last relist.
    listed: BTreeSet<String>,
    deleted: Deleted,
    beliefs: Beliefs,
}

impl Evented {
    fn receive(
        &mut self,
        seq: Seq,
        subscription: SubscriptionId,
        event: &Event,
    ) -> Result<(), KubeletPanic> {
        let is_over = self.over.contains(&subscription);
        if is_over || *self.listening.get_or_insert(subscription) != subscription {
            return Ok(());
        }
        if event.kind == EventKind::Deleted {
            let id = event.container.to_string();
            self.deleted.entry(id).or_insert(seq);
        }
        receive(&mut self.kubelet.kubelet, event)?;
        self.kubelet.kubelet.channel.drain().for_each(drop);
        if let Some(uid) = event.pod_uid() {
            self.believe(seq, uid.as_str());
        }
        Ok(())
    }

    fn ended(&mut self, at: Seq, subscription: SubscriptionId) {
        self.over.insert(subscription);
        if self
            .listening
            .is_none_or(|listening| listening == subscription)
        {
            self.listening = None;
            self.live_since = None;
            self.outage_since.get_or_insert(at);
        }
    }

    /// Whether this is the relist after the end of a stream: it shows every change before the next
    /// stream was live.
    fn is_ended_by(&mut self, relist: &PlegRelist<'_>) -> bool {
        let is_live = self.live_since.is_some_and(|live| live < relist.began.seq);
        if relist.pod.is_some() || !is_live {
            return false;
        }
        let since = self.outage_since.take();
        let outages = since.map(|since| (since, relist.began.seq));
        self.outages.extend(outages);
        since.is_some()
    }

    /// Relists after the end of a stream. A relist is compared with the previous one: a container
    /// that was created and deleted between the two is no change, so that the pod is not inspected.
    fn relist(&mut self, pods: &BTreeSet<PodUid>, relist: &PlegRelist<'_>, answers: &Answers<'_>) {
        let listed = relist.containers.iter().map(|listed| listed.id.to_string());
        let listed: BTreeSet<String> = listed.collect();
        let listed_before = std::mem::replace(&mut self.listed, listed);
        for uid in pods {
            let held = self.held_before(uid.as_str(), relist.began.seq);
            let held = held.map_or(&[][..], |status| &status.containers);
            let held = held.iter().map(|container| container.id.to_string());
            let came_and_went = |id: &String| {
                let is_listed = self.listed.contains(id);
                !is_listed && !listed_before.contains(id)
            };
            let gone: Vec<String> = held.filter(came_and_went).collect();
            for id in gone {
                self.deleted.entry(id).or_insert(relist.ended.seq);
            }
        }
        self.kubelet.relist(pods, relist, answers);
        for uid in pods {
            self.believe(relist.ended.seq, uid.as_str());
        }
    }

    /// Its belief about a pod at an entry.
    fn held_before(&self, uid: &str, at: Seq) -> Option<&PodStatus> {
        let of_pod = self.beliefs.get(uid)?.iter();
        let before = of_pod.rev().find(|(since, _)| *since < at);
        before?.1.0.as_deref()
    }

    fn believe(&mut self, seq: Seq, uid: &str) {
        let believed = Believed(self.kubelet.believed(uid).cloned());
        match self.beliefs.get_mut(uid) {
            Some(of_pod) => of_pod.push((seq, believed)),
            None => {
                self.beliefs.insert(uid.to_owned(), vec![(seq, believed)]);
            }
        }
    }
}
