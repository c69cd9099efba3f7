//! The input of a relist: all pods of a node, as one flat, borrowed list.

use super::moment::Moment;
use super::state::State;

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
/// [`list_pods`](super::list_pods).
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
