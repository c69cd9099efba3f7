//! The relists of a watch: the lists of all sandboxes and of all containers.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::history::{
    Body, CallFault, CallId, ContainerId, ContainerListing, ContainerState, Entry, HostInstant,
    PodUid, Reply, Request, SandboxListing, SandboxState, Seq,
};

/// Collects the entries of a relist.
#[derive(Debug, Default)]
pub(super) struct Relists {
    sandboxes: Option<ListCall>,
    containers: Option<ListCall>,
}

/// A list under way, or done.
#[derive(Debug)]
struct ListCall {
    call: CallId,
    began: Arc<Entry>,
    ended: Option<Arc<Entry>>,
}

/// The effect of a call's end on the relist.
pub(super) enum Step {
    None,
    Failed(FailedRelist),
    Whole(Relist),
}

/// A relist in which a list failed: the begin and the end of that list, and of the one before it.
pub(super) struct FailedRelist {
    sandboxes: Option<[Arc<Entry>; 2]>,
    failed: [Arc<Entry>; 2],
}

/// A relist that succeeded: the begin and the end of both lists.
#[derive(Clone, Debug)]
pub(super) struct Relist {
    sandboxes: [Arc<Entry>; 2],
    containers: [Arc<Entry>; 2],
}

/// The state of each sandbox and container of a pod in a relist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PodListing {
    sandboxes: BTreeMap<ContainerId, SandboxState>,
    containers: BTreeMap<ContainerId, ContainerState>,
}

impl PodListing {
    pub(super) fn ids(&self) -> impl Iterator<Item = &ContainerId> {
        self.sandboxes.keys().chain(self.containers.keys())
    }
}

impl Relists {
    /// Processes the begin of a call.
    pub(super) fn began(&mut self, call: CallId, request: &Request, entry: &Arc<Entry>) {
        let list = || {
            Some(ListCall {
                call,
                began: entry.clone(),
                ended: None,
            })
        };
        match request {
            Request::ListSandboxes { labels, .. } if labels.is_empty() => {
                (self.sandboxes, self.containers) = (list(), None);
            }
            Request::ListContainers {
                sandbox: None,
                labels,
                ..
            } if labels.is_empty() => self.containers = list(),
            _ => {}
        }
    }

    /// Processes the end of a call.
    pub(super) fn ended(
        &mut self,
        call: CallId,
        result: Result<&Reply, &CallFault>,
        entry: &Arc<Entry>,
    ) -> Step {
        let lists = [&mut self.sandboxes, &mut self.containers].into_iter();
        let Some(list) = lists.flatten().find(|list| list.call == call) else {
            return Step::None;
        };
        if result.is_err() {
            let failed = [list.began.clone(), entry.clone()];
            let both = self.sandboxes.as_ref().zip(self.containers.as_ref());
            let sandboxes = both.and_then(|(sandboxes, _)| {
                Some([sandboxes.began.clone(), sandboxes.ended.clone()?])
            });
            *self = Self::default();
            return Step::Failed(FailedRelist { sandboxes, failed });
        }
        list.ended = Some(entry.clone());
        let both = self.sandboxes.as_ref().zip(self.containers.as_ref());
        let whole = both.and_then(|(sandboxes, containers)| {
            Some(Relist {
                sandboxes: [sandboxes.began.clone(), sandboxes.ended.clone()?],
                containers: [containers.began.clone(), containers.ended.clone()?],
            })
        });
        match whole {
            None => Step::None,
            Some(relist) => {
                *self = Self::default();
                Step::Whole(relist)
            }
        }
    }
}

impl FailedRelist {
    /// Its entries, with only the sandboxes of one pod in the reply.
    pub(super) fn of_pod(&self, pod: &PodUid) -> Vec<Arc<Entry>> {
        let sandboxes = self.sandboxes.iter().flat_map(|[began, ended]| {
            let own = sandboxes_of(pod, ended).cloned().collect();
            [began.clone(), with_reply(ended, Reply::Sandboxes(own))]
        });
        sandboxes.chain(self.failed.iter().cloned()).collect()
    }
}

impl Relist {
    pub(super) fn began(&self) -> Seq {
        self.sandboxes[0].seq
    }

    pub(super) fn ended_at(&self) -> HostInstant {
        self.containers[1].at
    }

    pub(super) fn began_at(&self) -> HostInstant {
        self.sandboxes[0].at
    }

    /// The state of each pod in it.
    pub(super) fn pods(&self) -> BTreeMap<PodUid, PodListing> {
        let mut pods = BTreeMap::<PodUid, PodListing>::new();
        let mut owners = BTreeMap::new();
        for listing in self.listed_sandboxes() {
            let Some(metadata) = &listing.metadata else {
                continue;
            };
            owners.insert(&listing.id, &metadata.uid);
            let pod = pods.entry(metadata.uid.clone()).or_default();
            let id = ContainerId::from(&listing.id);
            pod.sandboxes.insert(id, listing.state);
        }
        for listing in self.listed_containers() {
            if let Some(pod) = owners.get(&listing.sandbox)
                && let Some(pod) = pods.get_mut(*pod)
            {
                pod.containers.insert(listing.id.clone(), listing.state);
            }
        }
        pods
    }

    /// Its entries, with only the sandboxes and containers of one pod in the replies.
    pub(super) fn of_pod(&self, pod: &PodUid) -> Vec<Arc<Entry>> {
        let sandboxes = sandboxes_of(pod, &self.sandboxes[1]);
        let sandboxes: Vec<SandboxListing> = sandboxes.cloned().collect();
        let holds = |listing: &&ContainerListing| {
            let mut sandboxes = sandboxes.iter();
            sandboxes.any(|sandbox| sandbox.id == listing.sandbox)
        };
        let containers = self.listed_containers().iter().filter(holds);
        let containers = Reply::Containers(containers.cloned().collect());
        vec![
            self.sandboxes[0].clone(),
            with_reply(&self.sandboxes[1], Reply::Sandboxes(sandboxes)),
            self.containers[0].clone(),
            with_reply(&self.containers[1], containers),
        ]
    }

    fn listed_sandboxes(&self) -> &[SandboxListing] {
        sandboxes_in(&self.sandboxes[1])
    }

    fn listed_containers(&self) -> &[ContainerListing] {
        match reply(&self.containers[1]) {
            Some(Reply::Containers(listed)) => listed,
            _ => &[],
        }
    }
}

fn sandboxes_in(entry: &Entry) -> &[SandboxListing] {
    match reply(entry) {
        Some(Reply::Sandboxes(listed)) => listed,
        _ => &[],
    }
}

fn sandboxes_of<'a>(pod: &PodUid, entry: &'a Entry) -> impl Iterator<Item = &'a SandboxListing> {
    sandboxes_in(entry).iter().filter(move |listing| {
        let metadata = listing.metadata.as_ref();
        metadata.is_some_and(|metadata| metadata.uid == *pod)
    })
}

fn reply(entry: &Entry) -> Option<&Reply> {
    match &entry.body {
        Body::CallEnded { result, .. } => result.as_ref().ok(),
        _ => None,
    }
}

/// The end of a call with another reply.
fn with_reply(entry: &Entry, reply: Reply) -> Arc<Entry> {
    let Body::CallEnded { call, .. } = entry.body else {
        unreachable!("a list is only ever made of the ends of its calls");
    };
    Arc::new(Entry {
        seq: entry.seq,
        at: entry.at,
        body: Body::CallEnded {
            call,
            result: Ok(reply),
            message: bytes::Bytes::new(),
        },
    })
}
