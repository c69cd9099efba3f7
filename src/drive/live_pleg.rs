//! A Generic PLEG on a runtime: relists it, and keeps the cache of a kubelet; and the relists of a
//! run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::sync::Notify;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::time::Interval;
use tokio_util::task::AbortOnDropHandle;

use super::recording_client::RecordingClient;
use super::session::Session;
use crate::history::{
    CallFault, ContainerId, ContainerListing, ContainerStatus, HostInstant, Labels, Reply, Request,
    SandboxId, SandboxListing, SandboxReport, StatusCode,
};
use crate::metrics::{Metrics, RunningState};
use crate::pleg::{
    Channel, Features, Generic, Inspection, Kubelet, LifecycleEvent, ListedPod, Moment,
    POD_UID_LABEL, PodList, SharedUid, State, StatusFault, Statuses, list_pods, pod_status,
};
use crate::{host, limits};

/// One relist that succeeded.
#[derive(Debug)]
pub struct Relist {
    /// The pod, if it was relisted on demand; none for a relist of all pods.
    pub pod: Option<SharedUid>,
    pub began: HostInstant,
    /// All sandboxes, in the order of the answer.
    pub sandboxes: Vec<SandboxListing>,
    /// All containers, in the order of the answer.
    pub containers: Vec<ContainerListing>,
    /// The events that the PLEG has sent.
    pub lifecycle: Vec<LifecycleEvent>,
    /// The inspections as a kubelet with the gate `EventedPLEG` makes them, which takes containers
    /// from the sandbox's own status where they are reported there.
    pub with_evented_pleg_gate: BTreeMap<SharedUid, Inspection>,
    /// The contents of its cache.
    pub believed: BTreeMap<SharedUid, Inspection>,
}

/// The call that a relist failed in, and how.
pub type RelistFault = (&'static str, CallFault);

/// The pod of a request, and its time.
type Requested = (SharedUid, Moment);

/// Requests a relist of one pod, as a kubelet 1.36 or later does after each sync of it.
#[derive(Clone, Debug)]
pub struct RelistRequests(Sender<Requested>);

impl RelistRequests {
    /// Requests it. A request beyond the queue of a kubelet is dropped: the next relist of all pods
    /// serves it.
    pub fn request(&self, pod: &str) {
        let now = Moment::from_ns(host::now().realtime_ns);
        let _ = self.0.try_send((SharedUid::from(pod), now));
    }
}

/// A Generic PLEG, and the runtime that it asks.
pub struct LivePleg {
    client: RecordingClient,
    metrics: Metrics,
    labels: Labels,
    kubelet: Kubelet,
    generic: Generic,
    requests: (Sender<Requested>, Receiver<Requested>),
}

impl LivePleg {
    /// A PLEG with an empty cache. It will list the objects with these labels; all objects if there
    /// are none.
    pub fn new(client: RecordingClient, metrics: Metrics, labels: Labels) -> Self {
        Self {
            client,
            metrics,
            labels,
            kubelet: Kubelet::new(Features::Generic, Channel::KUBELET_CAPACITY),
            generic: Generic::new(),
            requests: mpsc::channel(Generic::RELIST_REQUESTS),
        }
    }

    /// The queue of requests to relist one pod.
    pub fn requests(&self) -> RelistRequests {
        RelistRequests(self.requests.0.clone())
    }

    /// Relists all pods, a period after the end of the last time and when it is woken, and single
    /// pods on demand, until the receiver is dropped.
    ///
    /// A runtime that is slow to answer shall not hold up events: this belongs into a task of its
    /// own.
    pub async fn run(mut self, to: Sender<Result<Relist, RelistFault>>, wake: Arc<Notify>) {
        let mut tick = tokio::time::interval(Generic::PERIOD);
        loop {
            let relisted = tokio::select! {
                // As in a kubelet, a relist of all pods that is due goes first.
                biased;
                () = due(&mut tick, &wake) => {
                    let relisted = self.relist().await;
                    tick.reset();
                    Some(relisted)
                }
                Some((pod, requested_at)) = self.requests.1.recv() => {
                    // A relist of all pods that began later has served the request.
                    if self.generic.is_due(requested_at) {
                        self.relist_pod(&pod).await.map(Ok)
                    } else {
                        None
                    }
                }
            };
            if let Some(relisted) = relisted
                && to.send(relisted).await.is_err()
            {
                return;
            }
        }
    }

    /// Waits for requests to relist one pod. Returns the pods, which have one relist each, without
    /// those that a later relist of all pods has served.
    pub(super) async fn requested(&mut self) -> BTreeSet<SharedUid> {
        let mut requests = Vec::new();
        let requested = self
            .requests
            .1
            .recv_many(&mut requests, Generic::RELIST_REQUESTS);
        requested.await;
        let due = |request: &Requested| self.generic.is_due(request.1);
        requests.into_iter().filter(due).map(|it| it.0).collect()
    }

    /// Relists one pod. None if a list fails or lacks the pod: that is left to the next relist of
    /// all pods.
    pub(super) async fn relist_pod(&mut self, uid: &SharedUid) -> Option<Relist> {
        let began = host::now();
        let relisted = self.relist_pod_at(began, uid).await;
        self.metrics.pod_relisted(host::elapsed(began));
        relisted
    }

    async fn relist_pod_at(&mut self, began: HostInstant, uid: &SharedUid) -> Option<Relist> {
        let mut labels = self.labels.clone();
        labels.extend([(POD_UID_LABEL.to_owned(), uid.to_string())]);
        let (sandboxes, containers) = self.list(labels).await.ok()?;
        let list = list_pods(Moment::from_ns(began.realtime_ns), &sandboxes, &containers);
        if !list.iter().any(|pod| pod.uid == uid.as_str()) {
            return None;
        }
        self.generic
            .relist_pod(&mut self.kubelet, uid.as_str(), &list);
        let inspections = self.inspect(&list).await;
        Some(self.relisted(Some(uid.clone()), began, inspections, sandboxes, containers))
    }

    /// Relists once. Fails if a list fails. A failed inspection is an entry of the cache.
    pub async fn relist(&mut self) -> Result<Relist, RelistFault> {
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

    async fn relist_at(&mut self, began: HostInstant, at: Moment) -> Result<Relist, RelistFault> {
        let (sandboxes, containers) = self.list(self.labels.clone()).await?;
        let list = list_pods(at, &sandboxes, &containers);
        self.generic.relist(&mut self.kubelet, at, &list);
        let inspections = self.inspect(&list).await;
        Ok(self.relisted(None, began, inspections, sandboxes, containers))
    }

    /// Inspects the wanted pods. Returns the inspections as with the gate `EventedPLEG`.
    async fn inspect(&mut self, list: &PodList<'_>) -> BTreeMap<SharedUid, Inspection> {
        let mut with_evented_pleg_gate = BTreeMap::new();
        while let Some(wanted) = self.generic.wanted() {
            let pod = list.pod(wanted.index).expect("it was found in this list");
            let now = Moment::from_ns(host::now().realtime_ns);
            let answers = Answers::ask(&self.client, &pod).await;
            let inspection = |gate| pod_status(&pod, gate, now, &answers).map(Into::into);
            with_evented_pleg_gate.insert(wanted.uid.clone(), inspection(true));
            self.generic.inspected(&mut self.kubelet, inspection(false));
        }
        with_evented_pleg_gate
    }

    fn relisted(
        &mut self,
        pod: Option<SharedUid>,
        began: HostInstant,
        with_evented_pleg_gate: BTreeMap<SharedUid, Inspection>,
        sandboxes: Vec<SandboxListing>,
        containers: Vec<ContainerListing>,
    ) -> Relist {
        let entries = self.kubelet.cache.entries().into_iter();
        let believed = entries.map(|(uid, entry)| (uid.clone(), entry.inspection.clone()));
        Relist {
            pod,
            began,
            with_evented_pleg_gate,
            believed: believed.collect(),
            lifecycle: self.kubelet.channel.drain().collect(),
            sandboxes,
            containers,
        }
    }

    async fn list(
        &self,
        labels: Labels,
    ) -> Result<(Vec<SandboxListing>, Vec<ContainerListing>), RelistFault> {
        let sandboxes = Request::sandboxes(labels.clone());
        let containers = Request::containers(None, labels);
        let Reply::Sandboxes(sandboxes) = ask(&self.client, sandboxes).await? else {
            unreachable!("`ListPodSandbox` is answered by sandboxes");
        };
        let Reply::Containers(mut containers) = ask(&self.client, containers).await? else {
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

/// Relists of the pods that a run made, as the Generic PLEG of a kubelet makes them, until this is
/// dropped: of all pods each second, and from kubelet 1.36 on of one pod on demand, after each sync
/// of it. A change that a list shows and no event has reported is a missed event.
#[derive(Debug)]
pub struct BackgroundRelist {
    _task: AbortOnDropHandle<()>,
}

impl BackgroundRelist {
    /// Relists the pods of a run, except while a case wants silence. A pod is relisted on demand
    /// [`limits::RELISTS_OF_A_POD`] times between two relists of all pods, and once for requests
    /// that wait at the same time.
    pub fn begin(session: &Arc<Session>) -> Self {
        let session = session.clone();
        let client = session.client().clone().showing_only(session.labels());
        // As a kubelet, it lists all objects of the node.
        let mut pleg = LivePleg::new(client, session.metrics().clone(), Labels::new());
        session.take_requests(pleg.requests());
        let task = tokio::spawn(async move {
            let mut period = tokio::time::interval(Generic::PERIOD);
            // The first tick comes at once, when there is nothing to list yet.
            period.tick().await;
            let mut relisted = BTreeMap::<SharedUid, usize>::new();
            loop {
                // A list that fails shows nothing; it stands in the history all the same.
                tokio::select! {
                    // As in a kubelet, a relist of all pods that is due goes first.
                    biased;
                    _ = period.tick() => {
                        let _quiet = session.relisting().await;
                        let _ = pleg.relist().await;
                        period.reset();
                        relisted.clear();
                    }
                    pods = pleg.requested() => {
                        for pod in pods {
                            let times = relisted.entry(pod.clone()).or_default();
                            if *times < limits::RELISTS_OF_A_POD {
                                *times += 1;
                                let _quiet = session.relisting().await;
                                let _ = pleg.relist_pod(&pod).await;
                            }
                        }
                    }
                }
            }
        });
        Self {
            _task: AbortOnDropHandle::new(task),
        }
    }
}

/// Waits until a relist of all pods is due.
async fn due(tick: &mut Interval, wake: &Notify) {
    tokio::select! {
        _ = tick.tick() => {}
        () = wake.notified() => {}
    }
}

async fn ask(client: &RecordingClient, request: Request) -> Result<Reply, RelistFault> {
    let method = request.method();
    let reply = client.call(None, request).await;
    reply.map_err(|fault| (method, fault))
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

/// The answers of the runtime about one pod.
#[derive(Debug, Default)]
struct Answers {
    sandboxes: BTreeMap<String, Result<SandboxReport, StatusFault>>,
    containers: BTreeMap<String, Result<ContainerStatus, StatusFault>>,
}

impl Answers {
    async fn ask(client: &RecordingClient, pod: &ListedPod<'_>) -> Self {
        let mut answers = Self::default();
        for seen in pod.sandboxes() {
            let request = Request::SandboxStatus(SandboxId::from(seen.id));
            let answer = match client.call(None, request).await {
                Ok(Reply::SandboxStatus(report)) => Ok(report),
                Ok(_) => Err(StatusFault::Empty),
                Err(fault) => Err(status_fault(&fault)),
            };
            answers.sandboxes.insert(seen.id.to_owned(), answer);
        }
        for seen in pod.containers() {
            let request = Request::ContainerStatus(ContainerId::from(seen.id));
            let answer = match client.call(None, request).await {
                Ok(Reply::ContainerStatus(report)) => Ok(report.status.into_inner()),
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
    fn sandbox(&self, id: &str) -> Result<&SandboxReport, StatusFault> {
        let answer = self.sandboxes.get(id).ok_or(StatusFault::NotFound)?;
        answer.as_ref().map_err(Clone::clone)
    }

    fn container(&self, id: &str) -> Result<&ContainerStatus, StatusFault> {
        let answer = self.containers.get(id).ok_or(StatusFault::NotFound)?;
        answer.as_ref().map_err(Clone::clone)
    }
}

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
            ..ContainerListing::default()
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
            ..SandboxListing::default()
        };
        let labels = Labels::from([(POD_UID_LABEL.to_owned(), "given".to_owned())]);
        let mut containers = [container(Labels::new()), container(labels)];
        label_as_kubelets_do(&[sandbox], &mut containers);
        let uids = containers.map(|container| container.labels[POD_UID_LABEL].clone());
        assert_eq!(uids, ["u".into(), "given".into()]);
    }
}
