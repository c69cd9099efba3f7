//! From the CRI's listings to the kubelet's list of pods.
//!
//! Source: kubernetes `pkg/kubelet/kuberuntime/kuberuntime_manager.go` (`GetPods`, `GetPod`),
//! `helpers.go` (`podSandboxByCreated`, `containersByID`, `toKubeContainer`), `labels.go`.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::list::{PodList, Seen};
use super::moment::Moment;
use super::state::State;
use crate::history::{ContainerListing, Labels, SandboxListing};

/// The label that tells a container's, or a sandbox's, pod.
pub const POD_UID_LABEL: &str = "io.kubernetes.pod.uid";
const POD_NAME_LABEL: &str = "io.kubernetes.pod.name";
const POD_NAMESPACE_LABEL: &str = "io.kubernetes.pod.namespace";

/// Groups what `ListPodSandbox` and `ListContainers` returned by pods, as a kubelet does.
///
/// What lacks metadata is left out. A container belongs to the pod that its labels name, known or
/// not; without an id or an image it is left out, but its pod is not. Sandboxes come newest
/// attempt first, containers newest first.
///
/// `at` is the moment just before the runtime was asked. Allocates as often for one pod as for
/// thousands.
#[must_use]
pub fn list_pods<'a>(
    at: Moment,
    sandboxes: &'a [SandboxListing],
    containers: &'a [ContainerListing],
) -> PodList<'a> {
    let mut grouping = Grouping::new(sandboxes.len(), containers.len());
    for sandbox in sandboxes {
        grouping.add_sandbox(sandbox);
    }
    for container in containers {
        grouping.add_container(container);
    }
    grouping.into_list(at)
}

fn label<'a>(labels: &'a Labels, key: &str) -> &'a str {
    labels.get(key).map_or("", String::as_str)
}

/// Pods in the order in which they first appear, and what belongs to them.
struct Grouping<'a> {
    places: HashMap<&'a str, usize>,
    pods: Vec<(&'a str, &'a str, &'a str)>,
    members: Vec<Member<'a>>,
}

/// Sorts as the kubelet does: by pod, containers before sandboxes, newest first, then by id.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Member<'a> {
    pod: usize,
    is_sandbox: bool,
    attempt: Reverse<u32>,
    created_at: Reverse<i64>,
    id: &'a str,
    state: State,
    sandbox: &'a str,
}

impl<'a> Grouping<'a> {
    fn new(sandboxes: usize, containers: usize) -> Self {
        Self {
            places: HashMap::with_capacity(sandboxes),
            pods: Vec::with_capacity(sandboxes),
            members: Vec::with_capacity(sandboxes + containers),
        }
    }

    fn place(&mut self, uid: &'a str, names: impl FnOnce() -> (&'a str, &'a str)) -> usize {
        *self.places.entry(uid).or_insert_with(|| {
            let (name, namespace) = names();
            self.pods.push((uid, name, namespace));
            self.pods.len() - 1
        })
    }

    fn add_sandbox(&mut self, sandbox: &'a SandboxListing) {
        let Some(metadata) = &sandbox.metadata else {
            return;
        };
        let names = || (metadata.name.as_str(), metadata.namespace.as_str());
        let pod = self.place(metadata.uid.as_str(), names);
        self.members.push(Member {
            pod,
            is_sandbox: true,
            attempt: Reverse(metadata.attempt),
            created_at: Reverse(sandbox.created_at.0),
            id: sandbox.id.as_str(),
            state: sandbox.state.into(),
            sandbox: "",
        });
    }

    fn add_container(&mut self, container: &'a ContainerListing) {
        if container.metadata.is_none() {
            return;
        }
        let labels = &container.labels;
        let pod = self.place(label(labels, POD_UID_LABEL), || {
            (
                label(labels, POD_NAME_LABEL),
                label(labels, POD_NAMESPACE_LABEL),
            )
        });
        if container.id.as_str().is_empty() || container.image.is_none() {
            return;
        }
        self.members.push(Member {
            pod,
            is_sandbox: false,
            attempt: Reverse(0),
            created_at: Reverse(container.created_at.0),
            id: container.id.as_str(),
            state: container.state.into(),
            sandbox: container.sandbox.as_str(),
        });
    }

    fn into_list(mut self, at: Moment) -> PodList<'a> {
        self.members.sort_unstable();
        let mut list = PodList::with_capacity(at, self.pods.len(), self.members.len());
        let mut rest = self.members.as_slice();
        for (place, pod) in self.pods.iter().enumerate() {
            let members = rest.partition_point(|member| member.pod <= place);
            let (own, others) = rest.split_at(members);
            let (containers, sandboxes) =
                own.split_at(own.partition_point(|member| !member.is_sandbox));
            list.push(
                *pod,
                containers.iter().map(seen),
                sandboxes.iter().map(seen),
            );
            rest = others;
        }
        list
    }
}

fn seen<'a>(member: &Member<'a>) -> Seen<'a> {
    Seen {
        id: member.id,
        state: member.state,
        sandbox: member.sandbox,
    }
}
