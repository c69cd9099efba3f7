//! The input of a relist: all pods of a node, as one flat, borrowed list, built from the CRI's
//! lists.
//!
//! Source: kubernetes `pkg/kubelet/kuberuntime/kuberuntime_manager.go` (`GetPods`, `GetPod`),
//! `helpers.go` (`podSandboxByCreated`, `containersByID`, `toKubeContainer`), `labels.go`.

use std::borrow::Borrow;
use std::collections::HashMap;

use super::state::{Moment, State};
pub use crate::history::POD_UID_LABEL;
use crate::history::{ContainerListing, Labels, SandboxListing};

const POD_NAME_LABEL: &str = "io.kubernetes.pod.name";
const POD_NAMESPACE_LABEL: &str = "io.kubernetes.pod.namespace";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedItem<'a> {
    pub id: &'a str,
    pub state: State,
    /// The sandbox of a container; empty for a sandbox.
    pub sandbox: &'a str,
}

impl<'a> ListedItem<'a> {
    pub fn sandbox(id: &'a str, state: State) -> Self {
        Self {
            id,
            state,
            sandbox: "",
        }
    }

    pub fn container(id: &'a str, state: State, sandbox: &'a str) -> Self {
        Self { id, state, sandbox }
    }
}

/// The identity of a pod in a [`PodList`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodIdentity<'a> {
    pub uid: &'a str,
    pub name: &'a str,
    pub namespace: &'a str,
}

/// One pod of a [`PodList`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedPod<'l> {
    pub uid: &'l str,
    pub name: &'l str,
    pub namespace: &'l str,
    /// Its containers and then its sandboxes.
    pub items: &'l [ListedItem<'l>],
    containers: usize,
}

impl<'l> ListedPod<'l> {
    /// Its containers, in the kubelet's order.
    pub fn containers(&self) -> &'l [ListedItem<'l>] {
        &self.items[..self.containers]
    }

    /// Its sandboxes, in the kubelet's order.
    pub fn sandboxes(&self) -> &'l [ListedItem<'l>] {
        &self.items[self.containers..]
    }
}

/// The pods of a node at one moment. Built with [`PodList::push`], or from the CRI's lists by
/// [`list_pods`].
#[derive(Clone, Debug)]
pub struct PodList<'a> {
    at: Moment,
    heads: Vec<Head<'a>>,
    items: Vec<ListedItem<'a>>,
}

#[derive(Clone, Copy, Debug)]
struct Head<'a> {
    uid: &'a str,
    name: &'a str,
    namespace: &'a str,
    first: usize,
    containers: usize,
    items: usize,
}

impl<'a> PodList<'a> {
    /// An empty list; `at` is the moment just *before* the runtime was called.
    pub fn new(at: Moment) -> Self {
        Self::with_capacity(at, 0, 0)
    }

    pub(super) fn with_capacity(at: Moment, pods: usize, items: usize) -> Self {
        Self {
            at,
            heads: Vec::with_capacity(pods),
            items: Vec::with_capacity(items),
        }
    }

    /// Adds a pod. Of a repeated UID, the last one counts.
    pub fn push(
        &mut self,
        pod: PodIdentity<'a>,
        containers: impl IntoIterator<Item = ListedItem<'a>>,
        sandboxes: impl IntoIterator<Item = ListedItem<'a>>,
    ) {
        let first = self.items.len();
        self.items.extend(containers);
        let containers = self.items.len() - first;
        self.items.extend(sandboxes);
        self.heads.push(Head {
            uid: pod.uid,
            name: pod.name,
            namespace: pod.namespace,
            first,
            containers,
            items: self.items.len() - first,
        });
    }

    pub fn at(&self) -> Moment {
        self.at
    }

    pub fn pod(&self, index: usize) -> Option<ListedPod<'_>> {
        self.heads.get(index).map(|head| self.whole(head))
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = ListedPod<'_>> {
        self.heads.iter().map(|head| self.whole(head))
    }

    fn whole(&self, head: &Head<'a>) -> ListedPod<'_> {
        ListedPod {
            uid: head.uid,
            name: head.name,
            namespace: head.namespace,
            items: &self.items[head.first..head.first + head.items],
            containers: head.containers,
        }
    }
}

/// Pods in the order of their first appearance.
#[derive(Default)]
struct Grouping<'a> {
    places: HashMap<&'a str, usize>,
    pods: Vec<Group<'a>>,
}

struct Group<'a> {
    identity: PodIdentity<'a>,
    containers: Vec<(i64, ListedItem<'a>)>,
    sandboxes: Vec<((u32, i64), ListedItem<'a>)>,
}

impl<'a> Grouping<'a> {
    /// The group of a pod; a new one with these names if there is none.
    fn pod(&mut self, uid: &'a str, name: &'a str, namespace: &'a str) -> &mut Group<'a> {
        let place = *self.places.entry(uid).or_insert(self.pods.len());
        if place == self.pods.len() {
            self.pods.push(Group {
                identity: PodIdentity {
                    uid,
                    name,
                    namespace,
                },
                containers: Vec::new(),
                sandboxes: Vec::new(),
            });
        }
        &mut self.pods[place]
    }

    fn add_sandbox(&mut self, sandbox: &'a SandboxListing) {
        let Some(metadata) = &sandbox.metadata else {
            return;
        };
        let pod = self.pod(metadata.uid.as_str(), &metadata.name, &metadata.namespace);
        let seen = ListedItem::sandbox(sandbox.id.as_str(), sandbox.state.into());
        pod.sandboxes
            .push(((metadata.attempt, sandbox.created_at.0), seen));
    }

    fn add_container(&mut self, container: &'a ContainerListing) {
        if container.metadata.is_none() {
            return;
        }
        let label = |key| label(&container.labels, key);
        let uid = label(POD_UID_LABEL);
        let pod = self.pod(uid, label(POD_NAME_LABEL), label(POD_NAMESPACE_LABEL));
        if container.id.as_str().is_empty() || container.image.is_none() {
            return;
        }
        let (id, sandbox) = (container.id.as_str(), container.sandbox.as_str());
        let seen = ListedItem::container(id, container.state.into(), sandbox);
        pod.containers.push((container.created_at.0, seen));
    }

    fn into_list(self, at: Moment) -> PodList<'a> {
        let mut list = PodList::new(at);
        for mut pod in self.pods {
            newest_first(&mut pod.containers);
            newest_first(&mut pod.sandboxes);
            let containers = pod.containers.into_iter().map(|(_, seen)| seen);
            let sandboxes = pod.sandboxes.into_iter().map(|(_, seen)| seen);
            list.push(pod.identity, containers, sandboxes);
        }
        list
    }
}

/// Groups the results of `ListPodSandbox` and `ListContainers` by pods, as a kubelet does.
///
/// Objects without metadata are left out. A container belongs to the pod that its labels name,
/// known or not; without an id or an image it is left out, but its pod is not. Sandboxes are sorted
/// by attempt, containers by creation, newest first.
///
/// `at` is the moment just before the runtime was called.
pub fn list_pods<'a>(
    at: Moment,
    sandboxes: &'a [impl Borrow<SandboxListing>],
    containers: &'a [impl Borrow<ContainerListing>],
) -> PodList<'a> {
    let mut grouping = Grouping::default();
    for sandbox in sandboxes {
        grouping.add_sandbox(sandbox.borrow());
    }
    for container in containers {
        grouping.add_container(container.borrow());
    }
    grouping.into_list(at)
}

/// The value of a label; empty if there is none.
fn label<'a>(labels: &'a Labels, key: &str) -> &'a str {
    labels.get(key).map_or("", |value| &**value)
}

/// Sorts into the kubelet's order: newest first, equally old ones by id.
fn newest_first<A: Ord>(items: &mut [(A, ListedItem<'_>)]) {
    items.sort_unstable_by(|(one, a), (other, b)| other.cmp(one).then_with(|| a.id.cmp(b.id)));
}
