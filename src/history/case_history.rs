//! The part of a history that one case caused, or that is about one foreign pod, folded entry by
//! entry.
//!
//! An event belongs to a case if it has a pod UID that the case chose, or an id that the runtime
//! returned to the case. A runtime may send an event before the call that caused it has returned,
//! and its pod UID may be missing or wrong; a relist may show and inspect the object that this call
//! is creating. Such events and calls are kept while a call that can return their id is under way.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem::discriminant;
use std::sync::Arc;
use std::time::Duration;

use super::{
    Body, Call, CallFault, CallId, CaseRun, ContainerId, Entry, Event, EventArrival, HostFact,
    HostInstant, Observed, PodUid, Reply, Request, Seq, StepsEnd, Subject, SubjectKind,
    SubscriptionId, Unavailable, views,
};
use crate::limits::EVENTS_OF_A_KIND;

/// The most entries about unknown ids that are kept until a call returns their id. More than this
/// come from other cases and foreign pods; the oldest are dropped.
const UNCLAIMED_LIMIT: usize = 1_000;

/// The actions and observations of one execution of a case.
#[derive(Clone, Debug, Default)]
pub struct CaseHistory {
    case: CaseRun,
    /// The factor of the timeouts in percent, if this is about a foreign pod.
    foreign: Option<u32>,
    entries: Vec<Arc<Entry>>,
    bytes: usize,
    /// By their ids: new ones come last, as calls are numbered in the order in which they are sent.
    calls: Vec<(CallId, Call)>,
    subjects: Vec<Subject>,
    pods: BTreeSet<PodUid>,
    /// How many calls are under way that will return an id.
    making: usize,
    unclaimed: VecDeque<Arc<Entry>>,
    observed: BTreeMap<SubscriptionId, Observed>,
    /// The last `Body::StepsEnded` of the case.
    steps_ended: Option<Arc<Entry>>,
    pub(super) held_up: Vec<(HostInstant, Duration)>,
    pub(super) unavailable: Unavailable,
}

impl CaseHistory {
    /// The empty history of one execution of a case.
    pub fn new(case: CaseRun) -> Self {
        Self {
            case,
            ..Self::default()
        }
    }

    /// The empty history of a foreign pod, whose sandboxes and containers are known by lists and by
    /// events. Timeouts are multiplied by this many percent.
    pub fn of_foreign_pod(uid: PodUid, timeout_percent: u32) -> Self {
        Self {
            foreign: Some(timeout_percent),
            pods: BTreeSet::from([uid]),
            ..Self::new(CaseRun::default())
        }
    }

    /// Whether it is about a foreign pod, which calls may change that are not recorded.
    pub fn is_of_foreign_pod(&self) -> bool {
        self.foreign.is_some()
    }

    /// The execution that this is the history of.
    pub fn case(&self) -> CaseRun {
        self.case
    }

    /// The case's own subscriptions, in the order in which they were opened. Their events are only
    /// here; all other events are of the run's stream, which all cases read.
    pub fn observed(&self) -> impl Iterator<Item = &Observed> {
        let of_case = |observed: &&Observed| observed.is_of(self.case);
        self.observed.values().filter(of_case)
    }

    /// The entries that belong to the case, in order.
    pub fn entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// An estimate of the memory that the entries use, in bytes.
    pub fn approximate_bytes(&self) -> usize {
        self.bytes
    }

    /// The case's sandboxes and containers, in the order in which they first occur.
    pub fn subjects(&self) -> &[Subject] {
        &self.subjects
    }

    /// Every sandbox or container that has this name in the case.
    pub fn named(&self, binding: &str) -> impl Iterator<Item = &Subject> {
        self.subjects
            .iter()
            .filter(move |subject| subject.binding() == Some(binding))
    }

    /// The case's calls, and the run's relists during the case, in the order in which they were
    /// sent.
    pub fn calls(&self) -> impl DoubleEndedIterator<Item = &Call> {
        self.calls.iter().map(|(_, call)| call)
    }

    /// The UIDs that the case gave to its pods.
    pub fn pods(&self) -> &BTreeSet<PodUid> {
        &self.pods
    }

    /// When the case began; absent if the history lacks its beginning.
    pub fn began(&self) -> Option<HostInstant> {
        self.entries.iter().find_map(|entry| match entry.body {
            Body::CaseBegan { .. } => Some(entry.at),
            _ => None,
        })
    }

    /// A timeout, multiplied by the run's factor.
    pub fn scaled(&self, bound: Duration) -> Duration {
        let percent = self.entries.iter().find_map(|entry| match entry.body {
            Body::CaseBegan {
                timeout_percent, ..
            } => Some(timeout_percent),
            _ => None,
        });
        bound * percent.or(self.foreign).unwrap_or(100) / 100
    }

    /// How the case's steps ended; absent until its teardown begins.
    pub fn steps_end(&self) -> Option<&StepsEnd> {
        match &self.steps_ended.as_ref()?.body {
            Body::StepsEnded { end, .. } => Some(end),
            _ => None,
        }
    }

    /// When the steps were over.
    pub fn steps_ended_at(&self) -> Option<HostInstant> {
        self.steps_ended.as_ref().map(|ended| ended.at)
    }

    /// The size in bytes of the largest message of an event; 0 if none came.
    pub fn largest_event(&self) -> u32 {
        let seen = self.subjects.iter().flat_map(|it| &it.arrivals);
        seen.map(EventArrival::bytes).max().unwrap_or_default()
    }

    /// Whether an entry precedes the teardown.
    pub fn within_steps(&self, seq: Seq) -> bool {
        let mut ended = self.steps_ended.iter();
        ended.all(|ended| seq < ended.seq)
    }

    /// The facts that were read from the kernel, in order.
    pub fn facts(&self) -> impl Iterator<Item = &HostFact> {
        self.entries.iter().filter_map(|entry| match &entry.body {
            Body::Fact { fact, .. } => Some(fact),
            _ => None,
        })
    }

    /// When the kernel had ended each first process that the suite killed, by the id of its
    /// container or sandbox.
    pub fn kills(&self) -> BTreeMap<&str, HostInstant> {
        let kills = self.entries.iter().filter_map(|entry| match &entry.body {
            Body::Fact {
                fact: HostFact::Killed { id, .. },
                ..
            } => Some((id.as_str(), entry.at)),
            _ => None,
        });
        kills.collect()
    }

    /// Adds the next entry of the run's history, if it concerns this case.
    pub fn push(&mut self, entry: &Arc<Entry>) {
        if self.is_observed(entry) {
            return;
        }
        match &entry.body {
            Body::CaseBegan { case, .. }
            | Body::CaseEnded { case }
            | Body::Waited { case, .. }
            | Body::Fact { case, .. } => {
                if *case == self.case {
                    self.keep(entry);
                }
            }
            Body::StepsEnded { case, .. } => {
                if *case == self.case {
                    self.steps_ended = Some(entry.clone());
                    self.keep(entry);
                }
            }
            Body::CallBegan {
                call,
                case,
                request,
                ..
            } => {
                let of_run = case.is_none() && self.reports_pods(request);
                if *case == Some(self.case) || of_run {
                    self.call_began(*call, request, entry);
                } else if case.is_none() && status_of(request).is_some() {
                    self.keep_unclaimed(entry);
                }
            }
            Body::CallEnded { call, result, .. } => {
                if self.unclaimed.iter().any(|began| begins(began, *call)) {
                    self.keep_unclaimed(entry);
                } else {
                    self.call_ended(*call, result, entry);
                }
            }
            Body::Event { event, .. } => self.saw(event, entry),
            Body::SubscriptionOpened { .. }
            | Body::SubscriptionAnswered { .. }
            | Body::SubscriptionProven { .. }
            | Body::SubscriptionEnded { .. } => self.keep(entry),
            Body::HeldUp { by } => {
                self.held_up.push((entry.at, *by));
                self.keep(entry);
            }
            Body::RunBegan(_)
            | Body::RunPlanned(_)
            | Body::Unjudged { .. }
            | Body::CasesEnded
            | Body::RunEnded(_) => {}
        }
    }

    fn keep(&mut self, entry: &Arc<Entry>) {
        self.bytes += entry.approximate_bytes();
        self.entries.push(entry.clone());
    }

    /// Adds an entry of another subscription to that; returns whether it is one.
    fn is_observed(&mut self, entry: &Arc<Entry>) -> bool {
        match &entry.body {
            Body::SubscriptionOpened {
                subscription,
                observer: Some(_),
            } => {
                let observed = Observed::new(entry.clone());
                self.observed.insert(*subscription, observed);
                true
            }
            Body::Event { subscription, .. }
            | Body::SubscriptionAnswered { subscription }
            | Body::SubscriptionProven { subscription }
            | Body::SubscriptionEnded { subscription, .. } => {
                let observed = self.observed.get_mut(subscription);
                observed.map(|observed| observed.push(entry)).is_some()
            }
            _ => false,
        }
    }

    /// Whether a call of the run, such as one of a relist, may report the case's pods.
    fn reports_pods(&self, request: &Request) -> bool {
        let known = |id: &str| {
            let mut subjects = self.subjects.iter();
            subjects.any(|subject| subject.id.as_str() == id)
        };
        match request {
            Request::ListSandboxes { .. } | Request::ListContainers { sandbox: None, .. } => {
                self.pods.iter().any(|pod| request.lists(pod))
            }
            _ => status_of(request).is_some_and(known),
        }
    }

    fn call_began(&mut self, call: CallId, request: &Request, entry: &Arc<Entry>) {
        if let Request::RunSandbox(spec) = request {
            self.pods.insert(spec.uid.clone());
        }
        self.making += usize::from(makes(request));
        let began = entry.clone();
        let whole = |prefix: &ContainerId| self.id_that_begins_with(prefix);
        let sent = (call, Call::new(began, request.with_whole_id(whole)));
        match self.place_of(call) {
            Ok(place) => self.calls[place] = sent,
            Err(place) => self.calls.insert(place, sent),
        }
        self.keep(entry);
    }

    fn call_ended(&mut self, id: CallId, result: &Result<Reply, CallFault>, entry: &Arc<Entry>) {
        let Ok(place) = self.place_of(id) else {
            return;
        };
        let call = &mut self.calls[place].1;
        if call.ended.replace(entry.clone()).is_none() {
            self.making -= usize::from(makes(call.request()));
        }
        let named = match (call.request(), result) {
            (Request::RunSandbox(spec), Ok(Reply::Sandbox(id))) => {
                Some((ContainerId::from(id), SubjectKind::Sandbox(spec.clone())))
            }
            (Request::CreateContainer(spec), Ok(Reply::Container(id))) => {
                Some((id.clone(), SubjectKind::Container(spec.clone())))
            }
            _ => None,
        };
        self.keep(entry);
        if let Some((id, kind)) = named {
            self.identify(&id, kind);
            self.claim(&id);
        }
        if self.is_of_foreign_pod()
            && let Ok(reply) = result
        {
            let listed = views::listed(reply, &self.pods, &self.subjects);
            for (id, kind) in listed {
                self.identify(&id, kind);
            }
        }
        if self.making == 0 {
            self.unclaimed.clear();
        }
    }

    /// Sets the kind of an id, unless it is known: a runtime may return an existing object if it is
    /// asked for the same one again.
    fn identify(&mut self, id: &ContainerId, kind: SubjectKind) {
        let subject = self.subject(id);
        if matches!(subject.kind, SubjectKind::Stray) {
            subject.kind = kind;
        }
    }

    /// The unique id of the case that has this prefix and is longer.
    fn id_that_begins_with(&self, prefix: &ContainerId) -> Option<ContainerId> {
        let ids = self.subjects.iter().map(|subject| &subject.id);
        let mut longer = ids.filter(|id| id.as_str().starts_with(prefix.as_str()));
        let id = longer.next().filter(|id| *id != prefix)?;
        longer.next().is_none().then(|| id.clone())
    }

    /// The index of a call in `calls`, or the index at which to insert it.
    fn place_of(&self, call: CallId) -> Result<usize, usize> {
        self.calls.binary_search_by_key(&call, |(id, _)| *id)
    }

    fn saw(&mut self, event: &Event, entry: &Arc<Entry>) {
        let known = self
            .subjects
            .iter()
            .any(|subject| subject.id == event.container);
        let has_uid = || event.pod_uid().is_some_and(|uid| self.pods.contains(uid));
        if known || has_uid() || self.is_of_foreign_pod() {
            let arrivals = &mut self.subject(&event.container).arrivals;
            // All kinds without a name count as one.
            let kind = discriminant(&event.kind);
            let of_kind = arrivals
                .iter()
                .filter(|it| discriminant(&it.event().kind) == kind);
            if of_kind.count() >= EVENTS_OF_A_KIND {
                return;
            }
            arrivals.extend(EventArrival::from_entry(entry));
            self.keep(entry);
            if self.is_of_foreign_pod()
                && let Some(kind) = views::shown(event)
            {
                self.identify(&event.container, kind);
            }
        } else {
            self.keep_unclaimed(entry);
        }
    }

    /// Keeps an entry about an unknown id, while a call is under way that may return the id.
    fn keep_unclaimed(&mut self, entry: &Arc<Entry>) {
        if self.making == 0 {
            return;
        }
        if self.unclaimed.len() == UNCLAIMED_LIMIT {
            self.unclaimed.pop_front();
        }
        self.unclaimed.push_back(entry.clone());
    }

    /// Adds the entries about this id that arrived before it was known.
    fn claim(&mut self, id: &ContainerId) {
        let mut calls = BTreeSet::new();
        let (claimed, others): (VecDeque<_>, _) = std::mem::take(&mut self.unclaimed)
            .into_iter()
            .partition(|entry: &Arc<Entry>| match &entry.body {
                Body::Event { event, .. } => event.container == *id,
                Body::CallBegan { call, request, .. } => {
                    status_of(request) == Some(id.as_str()) && calls.insert(*call)
                }
                Body::CallEnded { call, .. } => calls.contains(call),
                _ => false,
            });
        self.unclaimed = others;
        if claimed.is_empty() {
            return;
        }
        for entry in claimed {
            match &entry.body {
                Body::CallBegan { call, request, .. } => self.call_began(*call, request, &entry),
                Body::CallEnded { call, result, .. } => self.call_ended(*call, result, &entry),
                _ => {
                    self.keep(&entry);
                    self.subject(id)
                        .arrivals
                        .extend(EventArrival::from_entry(&entry));
                }
            }
        }
        self.entries.sort_by_key(|entry| entry.seq);
        self.subject(id).arrivals.sort_by_key(EventArrival::seq);
    }

    /// Adds an entry about a foreign pod that was recorded before entries that this history has.
    pub fn push_earlier(&mut self, entry: &Arc<Entry>) {
        self.push(entry);
        self.entries.sort_by_key(|entry| entry.seq);
        for subject in &mut self.subjects {
            subject.arrivals.sort_by_key(EventArrival::seq);
        }
    }

    fn subject(&mut self, id: &ContainerId) -> &mut Subject {
        let place = self.subjects.iter().position(|subject| subject.id == *id);
        let place = place.unwrap_or_else(|| {
            let kind = SubjectKind::Stray;
            self.subjects.push(Subject {
                kind,
                id: id.clone(),
                arrivals: Vec::new(),
            });
            self.subjects.len() - 1
        });
        &mut self.subjects[place]
    }
}

/// The id of the sandbox or container whose status a call asks for.
fn status_of(request: &Request) -> Option<&str> {
    match request {
        Request::SandboxStatus(id) => Some(id.as_str()),
        Request::ContainerStatus(id) => Some(id.as_str()),
        _ => None,
    }
}

fn begins(entry: &Entry, wanted: CallId) -> bool {
    matches!(entry.body, Body::CallBegan { call, .. } if call == wanted)
}

/// Whether a call returns the id of something new.
fn makes(request: &Request) -> bool {
    matches!(
        request,
        Request::RunSandbox(_) | Request::CreateContainer(_)
    )
}

#[cfg(test)]
mod tests {
    use super::super::{Labels, POD_UID_LABEL};
    use super::*;

    #[test]
    fn of_the_relists_of_a_run_a_case_has_those_of_all_pods_and_of_its_own() {
        let mut history = CaseHistory::new(CaseRun::default());
        history.pods.insert(PodUid::from("own"));
        let pods = [None, Some("own"), Some("another")];
        for (number, pod) in (0..).zip(pods) {
            let label = pod.map(|uid| (POD_UID_LABEL.to_owned(), uid.to_owned()));
            let labels: Labels = label.into_iter().collect();
            let list = Request::containers(None, labels.clone());
            for (call, request) in [(0, Request::sandboxes(labels)), (1, list)] {
                let body = Body::CallBegan {
                    call: CallId(number * 2 + call),
                    case: None,
                    request,
                    message: bytes::Bytes::new(),
                };
                let (seq, at) = (Seq(number), HostInstant::default());
                history.push(&Arc::new(Entry { seq, at, body }));
            }
        }
        let kept: Vec<u64> = history.calls().map(|call| call.began().seq.0).collect();
        assert_eq!(kept, [0, 0, 1, 1]);
    }
}
