//! The relist loop: asks the runtime once a second, and gives the answers to a Generic PLEG.
//!
//! It runs in a task of its own, for a runtime that is slow to answer must not hold up events.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::mpsc::Sender;

use crate::cri::Client;
use crate::history::{
    CallFault, ContainerId, ContainerListing, ContainerStatus, HostInstant, Labels, Reply, Request,
    SandboxId, SandboxListing, SandboxStatus, StatusCode,
};
use crate::host;
use crate::metrics::{Metrics, RunningState};
use crate::pleg::{
    Channel, Features, Generic, Inspection, Kubelet, LifecycleEvent, ListedPod, Moment,
    POD_UID_LABEL, SandboxAnswer, SharedUid, State, StatusFault, Statuses, list_pods, pod_status,
};

/// One relist that succeeded.
#[derive(Debug)]
pub(super) struct Relist {
    /// When the runtime was asked.
    pub(super) began: HostInstant,
    pub(super) sandboxes: Vec<SandboxListing>,
    pub(super) containers: Vec<ContainerListing>,
    /// What the PLEG has sent.
    pub(super) lifecycle: Vec<LifecycleEvent>,
    /// All that its cache has.
    pub(super) believed: BTreeMap<SharedUid, Inspection>,
}

/// The call that failed, and how.
pub(super) type Failed = (&'static str, CallFault);

/// The loop's state.
pub(super) struct Relister {
    client: Client,
    metrics: Metrics,
    kubelet: Kubelet,
    generic: Generic,
}

impl Relister {
    pub(super) fn new(client: Client, metrics: Metrics) -> Self {
        Self {
            client,
            metrics,
            kubelet: Kubelet::new(Features::Generic, Channel::KUBELET_CAPACITY),
            generic: Generic::new(),
        }
    }

    /// Relists, a period after the end of the last time, until nobody wants to know.
    pub(super) async fn run(mut self, to: Sender<Result<Relist, Failed>>) {
        let mut tick = tokio::time::interval(Generic::PERIOD);
        loop {
            tick.tick().await;
            let relisted = self.relist().await;
            if to.send(relisted).await.is_err() {
                return;
            }
            tick.reset();
        }
    }

    async fn relist(&mut self) -> Result<Relist, Failed> {
        let began = host::now();
        let at = Moment::from_ns(began.realtime_ns);
        if let Some(last) = self.generic.relisted_at() {
            self.metrics.relist_began_after(at.since(last));
        }
        let relisted = self.relist_at(began, at).await;
        self.metrics.relisted(host::elapsed(began));
        if relisted.is_ok() {
            self.measure(began);
        }
        relisted
    }

    async fn relist_at(&mut self, began: HostInstant, at: Moment) -> Result<Relist, Failed> {
        let (sandboxes, containers) = self.list().await?;
        let list = list_pods(at, &sandboxes, &containers);
        self.generic.relist(&mut self.kubelet, at, &list);
        while let Some(wanted) = self.generic.wanted() {
            let pod = list.pod(wanted.index).expect("it was found in this list");
            let now = Moment::from_ns(host::now().realtime_ns);
            let answers = Answers::ask(&self.client, &pod).await;
            let inspection = pod_status(&pod, false, now, &answers);
            let inspection = inspection.map(Into::into);
            self.generic.inspected(&mut self.kubelet, inspection);
        }
        let entries = self.kubelet.cache.entries().into_iter();
        let believed = entries.map(|(uid, entry)| (uid.clone(), entry.inspection.clone()));
        Ok(Relist {
            began,
            believed: believed.collect(),
            lifecycle: self.kubelet.channel.drain().collect(),
            sandboxes,
            containers,
        })
    }

    async fn list(&self) -> Result<(Vec<SandboxListing>, Vec<ContainerListing>), Failed> {
        let sandboxes = Request::ListSandboxes(Labels::new());
        let containers = Request::ListContainers {
            sandbox: None,
            labels: Labels::new(),
        };
        let Reply::Sandboxes(sandboxes) = ask(&self.client, &sandboxes).await? else {
            unreachable!("`ListPodSandbox` is answered by sandboxes");
        };
        let Reply::Containers(mut containers) = ask(&self.client, &containers).await? else {
            unreachable!("`ListContainers` is answered by containers");
        };
        label_as_kubelets_do(&sandboxes, &mut containers);
        Ok((sandboxes, containers))
    }

    fn measure(&self, began: HostInstant) {
        self.metrics.last_seen(began.realtime_ns / 1_000_000_000);
        self.metrics.discarded(self.kubelet.channel.discarded());
        let gauges = &self.kubelet.gauges;
        self.metrics.running_pods(gauges.running_pods());
        for state in State::ALL {
            if let Some(containers) = gauges.containers(state) {
                let state = RunningState(state.label());
                self.metrics.containers(state, containers);
            }
        }
    }
}

async fn ask(client: &Client, request: &Request) -> Result<Reply, Failed> {
    let reply = client.call(request).await;
    reply.map_err(|fault| (request.method(), fault))
}

/// A kubelet finds a container's pod by labels of its own. Who runs pods without a kubelet may not
/// have set them: then they are put in, or all such containers would be taken for one pod's.
fn label_as_kubelets_do(sandboxes: &[SandboxListing], containers: &mut [ContainerListing]) {
    let pods = sandboxes.iter();
    let pods = pods.filter_map(|sandbox| Some((&sandbox.id, sandbox.metadata.as_ref()?)));
    let pods: BTreeMap<_, _> = pods.collect();
    for container in containers {
        if container.labels.contains_key(POD_UID_LABEL) {
            continue;
        }
        if let Some(pod) = pods.get(&container.sandbox) {
            let uid = (POD_UID_LABEL.to_owned(), pod.uid.to_string());
            container.labels.extend([uid]);
        }
    }
}

/// What the runtime answered about one pod.
#[derive(Debug, Default)]
struct Answers {
    sandboxes: BTreeMap<String, Result<SandboxStatus, StatusFault>>,
    containers: BTreeMap<String, Result<ContainerStatus, StatusFault>>,
}

impl Answers {
    async fn ask(client: &Client, pod: &ListedPod<'_>) -> Self {
        let mut answers = Self::default();
        for seen in pod.sandboxes() {
            let request = Request::SandboxStatus(SandboxId::from(seen.id));
            let answer = match client.call(&request).await {
                Ok(Reply::SandboxStatus(status)) => Ok(*status),
                Ok(_) => Err(StatusFault::Empty),
                Err(fault) => Err(status_fault(&fault)),
            };
            answers.sandboxes.insert(seen.id.to_owned(), answer);
        }
        for seen in pod.containers() {
            let request = Request::ContainerStatus(ContainerId::from(seen.id));
            let answer = match client.call(&request).await {
                Ok(Reply::ContainerStatus(status)) => Ok(*status),
                Ok(_) => Err(StatusFault::Empty),
                Err(fault) => Err(status_fault(&fault)),
            };
            answers.containers.insert(seen.id.to_owned(), answer);
        }
        answers
    }
}

fn status_fault(fault: &CallFault) -> StatusFault {
    if fault.code == StatusCode::NOT_FOUND {
        StatusFault::NotFound
    } else {
        StatusFault::Failed(fault.to_string())
    }
}

impl Statuses for Answers {
    fn sandbox(&self, id: &str) -> Result<SandboxAnswer<'_>, StatusFault> {
        let answer = self.sandboxes.get(id).ok_or(StatusFault::NotFound)?;
        let status = answer.as_ref().map_err(Clone::clone)?;
        Ok(SandboxAnswer {
            status,
            containers: &[],
            timestamp: 0,
        })
    }

    fn container(&self, id: &str) -> Result<&ContainerStatus, StatusFault> {
        let answer = self.containers.get(id).ok_or(StatusFault::NotFound)?;
        answer.as_ref().map_err(Clone::clone)
    }
}

/// How many relists may wait to be looked at.
pub(super) const WAITING: usize = 2;

/// A relist that begins so soon after its stream was asked for may show what the runtime had no
/// listener for yet.
pub(super) const DEAF_AFTER_OPENING: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{ContainerState, PodUid, RuntimeNanos, SandboxMetadata, SandboxState};

    fn container(labels: Labels) -> ContainerListing {
        ContainerListing {
            id: ContainerId::from("c"),
            sandbox: SandboxId::from("s"),
            metadata: None,
            state: ContainerState::Running,
            created_at: RuntimeNanos(0),
            image: None,
            labels,
        }
    }

    #[test]
    fn a_container_without_a_kubelets_labels_belongs_to_its_sandboxs_pod() {
        let sandbox = SandboxListing {
            id: SandboxId::from("s"),
            metadata: Some(SandboxMetadata {
                uid: PodUid::from("u"),
                ..SandboxMetadata::default()
            }),
            state: SandboxState::Ready,
            created_at: RuntimeNanos(0),
            labels: Labels::new(),
        };
        let told = Labels::from([(POD_UID_LABEL.to_owned(), "told".to_owned())]);
        let mut containers = [container(Labels::new()), container(told)];
        label_as_kubelets_do(&[sandbox], &mut containers);
        let uids = containers.map(|container| container.labels[POD_UID_LABEL].clone());
        assert_eq!(uids, ["u", "told"]);
    }
}
