//! Views on the entries of a case: sandboxes and containers with their events, subscriptions, and
//! calls with their results.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use super::{
    Body, CallFault, CaseRun, ContainerId, ContainerMetadata, ContainerSpec, Entry, Event,
    EventKind, HostInstant, Labels, Observer, POD_UID_LABEL, PodUid, Reply, Request, SandboxId,
    SandboxListing, SandboxMetadata, SandboxSpec, Seq, StreamEnd, SubscriptionId,
};
use crate::limits::EVENTS_OF_A_KIND;

/// A sandbox or a container of the case.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Its kind and specification.
    pub kind: SubjectKind,
    pub id: ContainerId,
    /// Its events, in order of arrival.
    pub arrivals: Vec<EventArrival>,
}

/// The kind of a subject, with its specification.
#[derive(Clone, Debug)]
pub enum SubjectKind {
    Sandbox(Arc<SandboxSpec>),
    Container(Arc<ContainerSpec>),
    /// Known by its events alone: no call of the case has returned this id (yet).
    Stray,
}

#[derive(Clone, Debug)]
pub struct EventArrival {
    entry: Arc<Entry>,
}

impl Subject {
    /// Its name in the case; absent for an unknown id.
    pub fn binding(&self) -> Option<&str> {
        match &self.kind {
            SubjectKind::Sandbox(spec) => Some(&spec.binding),
            SubjectKind::Container(spec) => Some(&spec.binding),
            SubjectKind::Stray => None,
        }
    }

    /// Its name in messages: `c`, `c#17` for the 17th of that name, or its id if it has no name.
    pub fn label(&self) -> String {
        match &self.kind {
            SubjectKind::Container(spec) if spec.attempt > 0 => {
                format!("{}#{}", spec.binding, spec.attempt)
            }
            _ => self.binding().unwrap_or(self.id.as_str()).to_owned(),
        }
    }

    pub fn first(&self, kind: EventKind) -> Option<&EventArrival> {
        self.arrivals
            .iter()
            .find(|arrival| arrival.event().kind == kind)
    }
}

impl EventArrival {
    /// The arrival that an entry records; none if it is no event's.
    pub(super) fn from_entry(entry: &Arc<Entry>) -> Option<Self> {
        matches!(entry.body, Body::Event { .. }).then(|| Self {
            entry: entry.clone(),
        })
    }

    pub fn event(&self) -> &Event {
        self.parts().1
    }

    /// The stream on which it arrived.
    pub fn subscription(&self) -> SubscriptionId {
        self.parts().0
    }

    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    pub fn seq(&self) -> Seq {
        self.entry.seq
    }

    pub fn at(&self) -> HostInstant {
        self.entry.at
    }

    /// The size of its message in bytes; 0 if that is not known.
    pub fn bytes(&self) -> u32 {
        u32::try_from(self.parts().2.len()).unwrap_or(u32::MAX)
    }

    fn parts(&self) -> (SubscriptionId, &Event, &Bytes) {
        match &self.entry.body {
            Body::Event {
                subscription,
                event,
                message,
            } => (*subscription, event, message),
            _ => unreachable!("an arrival is only ever made of an event's entry"),
        }
    }
}

/// A subscription of a case, with its entries.
#[derive(Clone, Debug)]
pub struct Observed {
    opened: Arc<Entry>,
    entries: Vec<Arc<Entry>>,
    /// How many events of each kind have come of each sandbox and container.
    seen: BTreeMap<(ContainerId, EventKind), usize>,
}

impl Observed {
    pub(super) fn new(opened: Arc<Entry>) -> Self {
        let entries = vec![opened.clone()];
        let seen = BTreeMap::new();
        Self {
            opened,
            entries,
            seen,
        }
    }

    pub(super) fn push(&mut self, entry: &Arc<Entry>) {
        if let Body::Event { event, .. } = &entry.body {
            let key = (event.container.clone(), event.kind);
            let seen = self.seen.entry(key).or_default();
            *seen += 1;
            if *seen > EVENTS_OF_A_KIND {
                return;
            }
        }
        self.entries.push(entry.clone());
    }

    pub(super) fn is_of(&self, case: CaseRun) -> bool {
        self.observer().case == Some(case)
    }

    /// Its number.
    pub fn id(&self) -> SubscriptionId {
        self.parts().0
    }

    /// How it was requested.
    pub fn observer(&self) -> &Observer {
        self.parts().1
    }

    pub fn opened(&self) -> &Entry {
        &self.opened
    }

    /// The entry of the response headers.
    pub fn answered(&self) -> Option<&Entry> {
        self.find(|body| matches!(body, Body::SubscriptionAnswered { .. }))
    }

    /// The entry from which it is live.
    pub fn proven(&self) -> Option<&Entry> {
        self.find(|body| matches!(body, Body::SubscriptionProven { .. }))
    }

    /// The entry and manner of its end; absent while it is open.
    pub fn ended(&self) -> Option<(&Entry, &StreamEnd)> {
        self.entries.iter().find_map(|entry| match &entry.body {
            Body::SubscriptionEnded { end, .. } => Some((&**entry, end)),
            _ => None,
        })
    }

    /// All its entries, in order.
    pub fn entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// Its events, of all pods, in order.
    pub fn events(&self) -> impl Iterator<Item = EventArrival> {
        self.entries.iter().filter_map(EventArrival::from_entry)
    }

    fn find(&self, wanted: impl Fn(&Body) -> bool) -> Option<&Entry> {
        let found = self.entries.iter().find(|entry| wanted(&entry.body));
        found.map(AsRef::as_ref)
    }

    fn parts(&self) -> (SubscriptionId, &Observer) {
        match &self.opened.body {
            Body::SubscriptionOpened {
                subscription,
                observer: Some(observer),
            } => (*subscription, observer),
            _ => unreachable!("it is only ever made of an observer's opening"),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Call {
    pub(super) began: Arc<Entry>,
    pub(super) ended: Option<Arc<Entry>>,
    /// The request with the whole id, if it was sent with a prefix of one.
    whole: Option<Request>,
}

impl Call {
    /// A call that began here; `whole` is the request with the whole id, if it was sent with a
    /// prefix.
    pub(super) fn new(began: Arc<Entry>, whole: Option<Request>) -> Self {
        Self {
            began,
            ended: None,
            whole,
        }
    }

    /// The request, with the full id where the call used a prefix of a container's id.
    pub fn request(&self) -> &Request {
        match &self.began.body {
            Body::CallBegan { request, .. } => self.whole.as_ref().unwrap_or(request),
            _ => unreachable!("a call is only ever made of a CallBegan entry"),
        }
    }

    /// Whether the call is the run's and not the case's.
    pub fn is_of_run(&self) -> bool {
        matches!(self.began.body, Body::CallBegan { case: None, .. })
    }

    /// Its result; absent while the call is under way.
    pub fn result(&self) -> Option<&Result<Reply, CallFault>> {
        match &self.ended.as_ref()?.body {
            Body::CallEnded { result, .. } => Some(result),
            _ => None,
        }
    }

    /// The entry of its beginning.
    pub fn began(&self) -> &Entry {
        &self.began
    }

    /// The entry of its return; absent while it is under way.
    pub fn ended(&self) -> Option<&Entry> {
        self.ended.as_deref()
    }
}

impl Request {
    /// Whether this lists a pod by the label of its UID, or all pods.
    pub fn lists(&self, pod: &PodUid) -> bool {
        let (Self::ListSandboxes { labels, .. } | Self::ListContainers { labels, .. }) = self
        else {
            return false;
        };
        let uid = labels.get(POD_UID_LABEL);
        uid.is_none_or(|uid| **uid == *pod.as_str())
    }

    /// The same with the whole id of the container that it starts, stops or removes, if it is not
    /// whole.
    pub(super) fn with_whole_id(
        &self,
        whole: impl Fn(&ContainerId) -> Option<ContainerId>,
    ) -> Option<Self> {
        match self {
            Self::StartContainer(id) => Some(Self::StartContainer(whole(id)?)),
            Self::RemoveContainer(id) => Some(Self::RemoveContainer(whole(id)?)),
            Self::StopContainer { container, grace } => Some(Self::StopContainer {
                container: whole(container)?,
                grace: *grace,
            }),
            _ => None,
        }
    }
}

/// The sandboxes of these pods in a list of sandboxes, and the containers of known sandboxes in a
/// list of containers.
pub(super) fn listed(
    reply: &Reply,
    pods: &BTreeSet<PodUid>,
    known: &[Subject],
) -> Vec<(ContainerId, SubjectKind)> {
    match reply {
        Reply::Sandboxes(listed) => {
            let of_pods = listed.iter().filter_map(|listing| {
                let metadata = listing.metadata.as_ref()?;
                let sandbox = SubjectKind::Sandbox(sandbox(metadata, Some(listing)));
                let is_own = pods.contains(&metadata.uid);
                is_own.then(|| (ContainerId::from(&listing.id), sandbox))
            });
            of_pods.collect()
        }
        Reply::Containers(listed) => {
            let of_pods = listed.iter().filter_map(|listing| {
                let mut known = known.iter();
                let own = known.find(|subject| subject.id.as_str() == listing.sandbox.as_str())?;
                let SubjectKind::Sandbox(sandbox) = &own.kind else {
                    return None;
                };
                let of_listing = ContainerSpec {
                    labels: listing.labels.clone(),
                    ..container(&listing.sandbox, sandbox, listing.metadata.as_ref())
                };
                let kind = SubjectKind::Container(Arc::new(of_listing));
                Some((listing.id.clone(), kind))
            });
            of_pods.collect()
        }
        _ => Vec::new(),
    }
}

/// The subject of an event, by its own snapshot; none if the snapshot does not show it.
pub(super) fn shown(event: &Event) -> Option<SubjectKind> {
    let status = event.sandbox.as_ref()?;
    let sandbox = sandbox(status.metadata.as_ref()?, None);
    if status.id.as_str() == event.container.as_str() {
        return Some(SubjectKind::Sandbox(sandbox));
    }
    let own = event.own_status()?;
    let spec = container(&status.id, &sandbox, own.metadata.as_ref());
    Some(SubjectKind::Container(Arc::new(spec)))
}

fn sandbox(metadata: &SandboxMetadata, listing: Option<&SandboxListing>) -> Arc<SandboxSpec> {
    Arc::new(SandboxSpec {
        binding: "sandbox".to_owned(),
        name: metadata.name.to_string(),
        namespace: metadata.namespace.to_string(),
        uid: metadata.uid.clone(),
        attempt: metadata.attempt,
        labels: listing.map_or_else(Default::default, |listing| listing.labels.clone()),
        ..SandboxSpec::default()
    })
}

fn container(
    id: &SandboxId,
    sandbox: &Arc<SandboxSpec>,
    metadata: Option<&ContainerMetadata>,
) -> ContainerSpec {
    let name = metadata.map_or_else(String::new, |metadata| metadata.name.to_string());
    ContainerSpec {
        sandbox: id.clone(),
        sandbox_spec: sandbox.clone(),
        binding: name,
        attempt: metadata.map_or(0, |metadata| metadata.attempt),
        ..ContainerSpec::default()
    }
}

impl Reply {
    /// Removes the objects without these labels from a list; returns whether there were any.
    pub fn leave_out_others(&mut self, labels: &Labels) -> bool {
        let mut others = false;
        let mut is_own = |of: &Labels| {
            let is_own = labels.iter().all(|(key, value)| of.get(key) == Some(value));
            others |= !is_own;
            is_own
        };
        match self {
            Self::Sandboxes(listed) => listed.retain(|it| is_own(&it.labels)),
            Self::Containers(listed) => listed.retain(|it| is_own(&it.labels)),
            _ => {}
        }
        others
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{CaseHistory, Event, HostInstant, PodUid, RuntimeNanos, Seq};

    #[test]
    fn a_list_keeps_the_objects_with_the_labels() {
        let labels = |pairs: &[(&str, &str)]| -> Labels {
            let pairs = pairs.iter();
            pairs
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect()
        };
        let listing = |of: &[(&str, &str)]| SandboxListing {
            labels: labels(of),
            ..SandboxListing::default()
        };
        let own = listing(&[("run", "a"), ("app", "web")]);
        let all = vec![own.clone(), listing(&[("run", "b")]), listing(&[])];
        let mut reply = Reply::Sandboxes(all.clone());
        assert!(!reply.leave_out_others(&Labels::new()));
        assert_eq!(reply, Reply::Sandboxes(all));
        assert!(reply.leave_out_others(&labels(&[("run", "a")])));
        assert_eq!(reply, Reply::Sandboxes(vec![own]));
    }

    /// A stream that repeats each event without end takes no memory without end, and none of its
    /// kinds is lost.
    #[test]
    fn repetitions_of_an_event_are_kept_up_to_a_bound() {
        let event = |subscription, kind| Body::Event {
            subscription,
            event: Event {
                container: ContainerId::from("c"),
                kind,
                created_at: RuntimeNanos(1),
                sandbox: None,
                containers: Vec::new(),
            },
            message: bytes::Bytes::new(),
        };
        let [main, other] = [SubscriptionId(1), SubscriptionId(2)];
        let opened = Body::SubscriptionOpened {
            subscription: other,
            observer: Some(Observer {
                case: Some(CaseRun::default()),
                ..Observer::default()
            }),
        };
        let kinds = [EventKind::Created, EventKind::Stopped];
        let repeated = |of| {
            kinds
                .into_iter()
                .flat_map(move |kind| vec![event(of, kind); 1_000])
        };
        let bodies = std::iter::once(opened)
            .chain(repeated(main))
            .chain(repeated(other));
        let mut history = CaseHistory::of_foreign_pod(PodUid::from("uid"), 100);
        for (seq, body) in (0..).map(Seq).zip(bodies) {
            let at = HostInstant::default();
            history.push(&Arc::new(Entry { seq, at, body }));
        }
        let kept = kinds.len() * EVENTS_OF_A_KIND;
        assert_eq!(history.entries().len(), kept);
        assert_eq!(history.subjects()[0].arrivals.len(), kept);
        assert!(history.subjects()[0].first(EventKind::Stopped).is_some());
        let observed = history.observed().map(|it| it.events().count());
        assert_eq!(observed.sum::<usize>(), kept);
    }
}
