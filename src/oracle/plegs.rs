//! Two kubelets on one history: one relists, one lives by events. Where a case is at rest, both
//! must believe the same of its pods.
//!
//! The driver inspects each pod at the end of a case's steps. The Generic PLEG is fed with that,
//! the Evented one of kubelet 1.26 to 1.36 with all events of the pod.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::invariants::Invariant;
use super::name_of;
use crate::history::{
    CaseHistory, ContainerId, ContainerListing, ContainerStatus, Reply, Request, SandboxId,
    SandboxListing, SandboxSpec, SandboxStatus, Seq, Sighting, Subject, SubjectKind,
};
use crate::outcome::Violation;
use crate::pleg::{
    Features, Generic, Kubelet, KubeletPanic, Moment, PodStatus, SandboxAnswer, StatusFault,
    Statuses, list_pods, pod_status, receive,
};

/// A kubelet's channel holds as many events; more than a case's pod ever sends at rest.
const CHANNEL: usize = 1_000;

/// What the runtime answered when a pod was inspected at rest.
#[derive(Debug)]
struct Inspected<'a> {
    began: Seq,
    ended: Seq,
    at: Moment,
    sandboxes: &'a [SandboxListing],
    containers: &'a [ContainerListing],
    sandbox: &'a SandboxStatus,
    statuses: BTreeMap<&'a str, &'a ContainerStatus>,
}

/// What a kubelet believes of one pod: of each container its name, state, exit code and reason.
type Belief = BTreeMap<String, String>;

/// Each pod of which the two kubelets believe different things.
pub(super) fn plegs_agree(rule: &Invariant, history: &CaseHistory) -> Vec<Violation> {
    let differing = |subject: &Subject| {
        let SubjectKind::Sandbox(spec) = &subject.kind else {
            return None;
        };
        let inspected = inspection(history, subject)?;
        let relisting = relisting_kubelet(&inspected, spec)?;
        let evented = evented_kubelet(history, spec, &inspected, &relisting);
        let actual = match evented {
            Ok(evented) if evented == relisting => return None,
            Ok(evented) => format!(
                "a kubelet that lives by events believes {}, one that relists {}",
                in_words(&evented, &relisting),
                in_words(&relisting, &evented)
            ),
            Err(panic) => format!("the kubelet panics: {panic}"),
        };
        let expected = "both kubelets believe the same of the pod".to_owned();
        let events = events_of(history, spec).into_iter();
        let mut evidence: Vec<Seq> = events.map(Sighting::seq).collect();
        evidence.extend([inspected.began, inspected.ended]);
        evidence.sort_unstable();
        Some(rule.told(name_of(subject), expected, actual, evidence))
    };
    history.subjects().iter().filter_map(differing).collect()
}

/// The last inspection of a sandbox before the teardown.
fn inspection<'a>(history: &'a CaseHistory, subject: &Subject) -> Option<Inspected<'a>> {
    let calls: Vec<_> = history.calls().collect();
    let is_of = |id: &SandboxId| ContainerId::from(id) == subject.id;
    let (place, sandbox) = calls.iter().enumerate().rev().find_map(|(place, call)| {
        let Request::SandboxStatus(id) = call.request() else {
            return None;
        };
        let Some(Ok(Reply::SandboxStatus(status))) = call.result() else {
            return None;
        };
        let ended = call.ended()?;
        (is_of(id) && history.within_steps(ended.seq)).then_some((place, &**status))
    })?;
    let sandboxes = calls[..place]
        .iter()
        .rev()
        .find_map(|call| match call.result() {
            Some(Ok(Reply::Sandboxes(listed))) => Some((call, listed)),
            _ => None,
        });
    let (first, sandboxes) = sandboxes?;
    let containers =
        calls[place..]
            .iter()
            .find_map(|call| match (call.request(), call.result()) {
                (
                    Request::ListContainers {
                        sandbox: Some(id), ..
                    },
                    Some(Ok(Reply::Containers(listed))),
                ) if is_of(id) => Some(listed),
                _ => None,
            })?;
    let statuses = calls[place..]
        .iter()
        .filter_map(|call| match call.result() {
            Some(Ok(Reply::ContainerStatus(status))) => Some((status.id.as_str(), &**status)),
            _ => None,
        });
    let last = calls[place..].iter().rev().filter_map(|call| call.ended());
    Some(Inspected {
        began: first.began().seq,
        ended: last
            .map(|entry| entry.seq)
            .find(|seq| history.within_steps(*seq))?,
        at: Moment::from_ns(first.began().at.realtime_ns),
        sandboxes,
        containers,
        sandbox,
        statuses: statuses.collect(),
    })
}

impl Statuses for Inspected<'_> {
    fn sandbox(&self, id: &str) -> Result<SandboxAnswer<'_>, StatusFault> {
        if self.sandbox.id.as_str() != id {
            return Err(StatusFault::NotFound);
        }
        Ok(SandboxAnswer {
            status: self.sandbox,
            containers: &[],
            timestamp: 0,
        })
    }

    fn container(&self, id: &str) -> Result<&ContainerStatus, StatusFault> {
        self.statuses.get(id).copied().ok_or(StatusFault::NotFound)
    }
}

/// What a kubelet believes that has just relisted.
fn relisting_kubelet(inspected: &Inspected<'_>, spec: &SandboxSpec) -> Option<Belief> {
    let mut kubelet = Kubelet::new(Features::Generic, CHANNEL);
    let mut generic = Generic::new();
    let list = list_pods(inspected.at, inspected.sandboxes, inspected.containers);
    generic.relist(&mut kubelet, inspected.at, &list);
    while let Some(wanted) = generic.wanted() {
        let pod = list.find(wanted.uid.as_str())?;
        let status = pod_status(&pod, kubelet.gate(), inspected.at, inspected);
        generic.inspected(&mut kubelet, status.map(Arc::new));
    }
    let entry = kubelet.cache.get(spec.uid.as_str())?;
    Some(belief(entry.status()?, &BTreeSet::new()))
}

/// What a kubelet believes that has been told every event. What happens while the pod is inspected
/// may be told before or after: of the beliefs since its beginning, one that agrees is taken.
fn evented_kubelet(
    history: &CaseHistory,
    spec: &SandboxSpec,
    inspected: &Inspected<'_>,
    relisting: &Belief,
) -> Result<Belief, KubeletPanic> {
    let mut kubelet = Kubelet::new(Features::EventedInUse, CHANNEL);
    // A container's own DELETED leaves the cache as it is, in the real kubelet too.
    let mut deleted = BTreeSet::new();
    let mut believed = Belief::new();
    for sighting in events_of(history, spec) {
        if sighting.seq() > inspected.began && believed == *relisting {
            break;
        }
        let event = sighting.event();
        if event.kind == crate::history::EventKind::Deleted {
            deleted.insert(event.container.as_str());
        }
        receive(&mut kubelet, event)?;
        let entry = kubelet.cache.get(spec.uid.as_str());
        let status = entry.and_then(|entry| entry.status());
        believed = status.map_or_else(Belief::new, |status| belief(status, &deleted));
    }
    Ok(believed)
}

/// The events of a pod before the teardown, in order of arrival.
fn events_of<'a>(history: &'a CaseHistory, spec: &SandboxSpec) -> Vec<&'a Sighting> {
    let of_pod = |subject: &&Subject| match &subject.kind {
        SubjectKind::Sandbox(own) => own.uid == spec.uid,
        SubjectKind::Container(own) => own.sandbox_spec.uid == spec.uid,
        SubjectKind::Stray => false,
    };
    let subjects = history.subjects().iter().filter(of_pod);
    let mut events: Vec<&Sighting> = subjects
        .flat_map(|subject| &subject.sightings)
        .filter(|sighting| history.within_steps(sighting.seq()))
        .collect();
    events.sort_by_key(|sighting| sighting.seq());
    events
}

fn belief(status: &PodStatus, deleted: &BTreeSet<&str>) -> Belief {
    let sandboxes = status.sandboxes.iter().map(|sandbox| {
        (
            format!("sandbox {}", sandbox.id.as_str()),
            sandbox.state.to_string(),
        )
    });
    let containers = status
        .containers
        .iter()
        .filter(|container| !deleted.contains(container.id.as_str()))
        .map(|container| {
            let name = format!("{} {}", container.name, container.id.as_str());
            let (state, code) = (container.state.label(), container.exit_code);
            (name, format!("{state} {code} {}", container.reason))
        });
    sandboxes.chain(containers).collect()
}

/// The part of a belief in which it differs from another.
fn in_words(belief: &Belief, other: &Belief) -> String {
    let own = belief
        .iter()
        .filter(|(name, value)| other.get(*name) != Some(value));
    let mut own: Vec<String> = own
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    let lacks = other.keys().filter(|name| !belief.contains_key(*name));
    own.extend(lacks.map(|name| format!("{name}: nothing")));
    own.join(", ")
}
