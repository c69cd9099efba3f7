//! Converts the CRI's lists to the kubelet's list of pods.
//!
//! Source: kubernetes `pkg/kubelet/kuberuntime/kuberuntime_manager.go` (`GetPods`, `GetPod`),
//! `helpers.go` (`podSandboxByCreated`, `containersByID`, `toKubeContainer`), `labels.go`.

use std::borrow::Borrow;
use std::cmp::Reverse;

use super::moment::Moment;
use super::pod_list::{ListedItem, PodIdentity, PodList};
use super::shared_id::ById;
use crate::history::{ContainerListing, Labels, SandboxListing, Text};

pub use crate::history::POD_UID_LABEL;
const POD_NAME_LABEL: &str = "io.kubernetes.pod.name";
const POD_NAMESPACE_LABEL: &str = "io.kubernetes.pod.namespace";

/// Groups the results of `ListPodSandbox` and `ListContainers` by pods, as a kubelet does.
///
/// Objects without metadata are left out. A container belongs to the pod that its labels name,
/// known or not; without an id or an image it is left out, but its pod is not. Sandboxes are sorted
/// by attempt, containers by creation, newest first.
///
/// `at` is the moment just before the runtime was called. The number of allocations does not depend
/// on the number of pods.
pub fn list_pods<'a>(
    at: Moment,
    sandboxes: &'a [impl Borrow<SandboxListing>],
    containers: &'a [impl Borrow<ContainerListing>],
) -> PodList<'a> {
    let mut grouping = Grouping::new(sandboxes.len(), containers.len());
    for sandbox in sandboxes {
        grouping.add_sandbox(sandbox.borrow());
    }
    // Read in a loop of their own, so that cache misses overlap.
    let containers = containers.iter().map(Borrow::borrow);
    let owners: Vec<_> = containers.clone().map(owner).collect();
    for (container, owner) in containers.zip(owners) {
        grouping.add_container(container, owner);
    }
    grouping.into_list(at)
}

/// The UID of a container's pod.
fn owner(container: &ContainerListing) -> &str {
    label(&container.labels, POD_UID_LABEL)
}

/// The value of a label; empty if there is none.
fn label<'a>(labels: &'a Labels, key: &str) -> &'a str {
    find(labels, key).map_or("", |value| &**value)
}

/// The value of a label or an annotation.
///
/// Compares lengths first: they are adjacent in memory, whereas each key is a cache miss.
pub(super) fn find<'a>(labels: &'a Labels, key: &str) -> Option<&'a Text> {
    const WALKABLE: usize = 32;
    if labels.len() <= WALKABLE {
        let mut labels = labels.iter();
        labels.find_map(|(known, value)| {
            (known.len() == key.len() && **known == *key).then_some(value)
        })
    } else {
        labels.get(key)
    }
}

/// Pods in the order of their first appearance, and their members.
struct Grouping<'a> {
    places: ById<&'a str, u32>,
    pods: Vec<Group<'a>>,
    members: Vec<Member<'a>>,
}

struct Group<'a> {
    uid: &'a str,
    name: &'a str,
    namespace: &'a str,
    members: usize,
}

struct Member<'a> {
    pod: u32,
    is_sandbox: bool,
    attempt: u32,
    created_at_ns: i64,
    seen: ListedItem<'a>,
}

impl Member<'_> {
    /// The kubelet's order within a pod: newest first; containers before sandboxes.
    fn order(&self) -> impl Ord {
        (
            self.is_sandbox,
            Reverse(self.attempt),
            Reverse(self.created_at_ns),
            self.seen.id,
        )
    }
}

impl<'a> Grouping<'a> {
    fn new(sandboxes: usize, containers: usize) -> Self {
        let mut places = ById::default();
        places.reserve(sandboxes);
        Self {
            places,
            pods: Vec::with_capacity(sandboxes),
            members: Vec::with_capacity(sandboxes + containers),
        }
    }

    fn place(&mut self, uid: &'a str, names: impl FnOnce() -> (&'a str, &'a str)) -> u32 {
        *self.places.entry(uid).or_insert_with(|| {
            let (name, namespace) = names();
            self.pods.push(Group {
                uid,
                name,
                namespace,
                members: 0,
            });
            u32::try_from(self.pods.len() - 1).expect("memory ends before that")
        })
    }

    fn join(&mut self, member: Member<'a>) {
        self.pods[member.pod as usize].members += 1;
        self.members.push(member);
    }

    fn add_sandbox(&mut self, sandbox: &'a SandboxListing) {
        let Some(metadata) = &sandbox.metadata else {
            return;
        };
        let names = || (&*metadata.name, &*metadata.namespace);
        let pod = self.place(metadata.uid.as_str(), names);
        self.join(Member {
            pod,
            is_sandbox: true,
            attempt: metadata.attempt,
            created_at_ns: sandbox.created_at.0,
            seen: ListedItem::sandbox(sandbox.id.as_str(), sandbox.state.into()),
        });
    }

    fn add_container(&mut self, container: &'a ContainerListing, owner: &'a str) {
        if container.metadata.is_none() {
            return;
        }
        let labels = &container.labels;
        let pod = self.place(owner, || {
            (
                label(labels, POD_NAME_LABEL),
                label(labels, POD_NAMESPACE_LABEL),
            )
        });
        if container.id.as_str().is_empty() || container.image.is_none() {
            return;
        }
        let (id, sandbox) = (container.id.as_str(), container.sandbox.as_str());
        self.join(Member {
            pod,
            is_sandbox: false,
            attempt: 0,
            created_at_ns: container.created_at.0,
            seen: ListedItem::container(id, container.state.into(), sandbox),
        });
    }

    /// Groups members by counting sort, and sorts within each pod: sorting all members at once
    /// would take most of the time of a relist.
    fn into_list(self, at: Moment) -> PodList<'a> {
        let mut free: Vec<usize> = Vec::with_capacity(self.pods.len());
        let mut before = 0;
        for pod in &self.pods {
            free.push(before);
            before += pod.members;
        }
        let mut grouped = vec![0; self.members.len()];
        for (place, member) in self.members.iter().enumerate() {
            let free = &mut free[member.pod as usize];
            grouped[*free] = place;
            *free += 1;
        }
        let mut list = PodList::with_capacity(at, self.pods.len(), self.members.len());
        let seen = |place: &usize| self.members[*place].seen;
        for (pod, end) in self.pods.iter().zip(free) {
            let own = &mut grouped[end - pod.members..end];
            own.sort_unstable_by(|a, b| self.members[*a].order().cmp(&self.members[*b].order()));
            let containers = own.partition_point(|place| !self.members[*place].is_sandbox);
            let (containers, sandboxes) = own.split_at(containers);
            let identity = PodIdentity {
                uid: pod.uid,
                name: pod.name,
                namespace: pod.namespace,
            };
            list.push(
                identity,
                containers.iter().map(seen),
                sandboxes.iter().map(seen),
            );
        }
        list
    }
}
