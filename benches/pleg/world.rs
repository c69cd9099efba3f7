//! A node for the benchmarks: pods of one sandbox and two containers each, all running.

use std::collections::HashMap;
use std::sync::Arc;

use cri_event_conformance::testing::history::{
    ContainerId, ContainerListing, ContainerMetadata, ContainerState, ContainerStatus, Event,
    EventKind, Labels, PodUid, RuntimeNanos, SandboxId, SandboxListing, SandboxMetadata,
    SandboxReport, SandboxState, SandboxStatus, Shared, Text,
};
use cri_event_conformance::testing::pleg::{
    Features, Generic, Kubelet, ListedItem, Moment, PodIdentity, PodList, PodStatus, State,
    StatusFault, Statuses, list_pods, pod_status,
};

const CONTAINERS: usize = 2;
const EPOCH_NS: i64 = 1_700_000_000_000_000_000;

/// The objects of a runtime.
pub(crate) struct World {
    sandboxes: Vec<SandboxListing>,
    containers: Vec<ContainerListing>,
    sandbox_reports: HashMap<SandboxId, SandboxReport>,
    container_statuses: Vec<ContainerStatus>,
    places: HashMap<ContainerId, usize>,
}

impl World {
    pub(crate) fn new(pods: usize) -> Self {
        let sandboxes = (0..pods).map(sandbox_status);
        let containers: Vec<_> = (0..pods * CONTAINERS).map(container_status).collect();
        let ids = containers.iter().map(|status| status.id.clone());
        Self {
            sandboxes: sandboxes.clone().map(sandbox_listing).collect(),
            containers: containers
                .iter()
                .enumerate()
                .map(|(number, status)| container_listing(number, status))
                .collect(),
            sandbox_reports: sandboxes
                .map(|status| (status.id.clone(), status.into()))
                .collect(),
            places: ids.zip(0..).collect(),
            container_statuses: containers,
        }
    }

    /// Every n-th container exits, or runs again.
    pub(crate) fn flip(&mut self, every: usize) {
        for place in (0..self.containers.len()).step_by(every) {
            let state = match self.containers[place].state {
                ContainerState::Running => ContainerState::Exited,
                _ => ContainerState::Running,
            };
            self.containers[place].state = state;
            self.container_statuses[place].state = state;
        }
    }

    /// The list of a kubelet.
    pub(crate) fn list(&self) -> PodList<'_> {
        list_pods(Moment::from_ns(EPOCH_NS), &self.sandboxes, &self.containers)
    }

    /// A kubelet's status of each listed pod.
    pub(crate) fn statuses(&self, list: &PodList<'_>) -> Vec<Arc<PodStatus>> {
        let status = |pod| pod_status(&pod, false, list.at(), self).expect("nothing fails here");
        list.iter().map(status).map(Arc::new).collect()
    }

    /// An event of the second container of the first pod.
    pub(crate) fn event(kind: EventKind) -> Event {
        let mut containers = vec![container_status(0), container_status(1)];
        if kind == EventKind::Stopped {
            containers[1].state = ContainerState::Exited;
        }
        Event {
            container: container_id(1),
            kind,
            created_at: RuntimeNanos(EPOCH_NS),
            sandbox: Some(sandbox_status(0).into()),
            containers: containers.into_iter().map(Into::into).collect(),
        }
    }
}

/// The same list, with every n-th container exited.
pub(crate) fn flipped<'a>(list: &'a PodList<'a>, every: usize) -> PodList<'a> {
    let mut flipped = PodList::new(list.at());
    for (number, pod) in list.iter().enumerate() {
        let containers = pod.containers().iter().zip(number * CONTAINERS..);
        let containers = containers.map(|(seen, place)| match place % every {
            0 => ListedItem::container(seen.id, State::Exited, seen.sandbox),
            _ => *seen,
        });
        let sandboxes = pod.sandboxes().iter().copied();
        let identity = PodIdentity {
            uid: pod.uid,
            name: pod.name,
            namespace: pod.namespace,
        };
        flipped.push(identity, containers, sandboxes);
    }
    flipped
}

impl Statuses for World {
    fn sandbox(&self, id: &str) -> Result<&SandboxReport, StatusFault> {
        self.sandbox_reports.get(id).ok_or(StatusFault::NotFound)
    }

    fn container(&self, id: &str) -> Result<&ContainerStatus, StatusFault> {
        let place = self.places.get(id).ok_or(StatusFault::NotFound)?;
        Ok(&self.container_statuses[*place])
    }
}

/// A kubelet whose channel is emptied after each relist, as its sync loop does.
pub(crate) struct Node {
    pub(crate) kubelet: Kubelet,
    pub(crate) generic: Generic,
    now_ns: i64,
}

impl Node {
    pub(crate) fn new(features: Features) -> Self {
        Self {
            kubelet: Kubelet::new(features, 1000),
            generic: Generic::new(),
            now_ns: EPOCH_NS,
        }
    }

    /// Relists; statuses are ready made.
    pub(crate) fn relist(&mut self, list: &PodList<'_>, statuses: &[Arc<PodStatus>]) -> usize {
        self.begin(list);
        while let Some(wanted) = self.generic.wanted() {
            let status = statuses[wanted.index].clone();
            self.generic.inspected(&mut self.kubelet, Ok(status));
        }
        self.kubelet.channel.drain().count()
    }

    /// Relists from the CRI's messages.
    pub(crate) fn relist_cri(&mut self, world: &World) -> usize {
        let list = world.list();
        self.begin(&list);
        while let Some(wanted) = self.generic.wanted() {
            let pod = list.pod(wanted.index).expect("it is wanted");
            let inspection = pod_status(&pod, false, list.at(), world).map(Arc::new);
            self.generic.inspected(&mut self.kubelet, inspection);
        }
        self.kubelet.channel.drain().count()
    }

    fn begin(&mut self, list: &PodList<'_>) {
        self.now_ns += 1_000_000_000;
        self.generic
            .relist(&mut self.kubelet, Moment::from_ns(self.now_ns), list);
    }
}

fn uid(pod: usize) -> String {
    format!("{pod:08x}-5a3c-4c1e-9b7d-{pod:012x}")
}

fn id(kind: char, number: usize) -> String {
    format!(
        "{:064x}",
        number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ kind as usize
    )
}

fn container_id(number: usize) -> ContainerId {
    ContainerId::from(id('c', number))
}

fn map(pairs: &[(&str, &str)]) -> Labels {
    let owned = pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    owned.collect()
}

fn pod_labels(pod: usize) -> Labels {
    map(&[
        ("io.kubernetes.pod.name", &format!("web-{pod}")),
        ("io.kubernetes.pod.namespace", "default"),
        ("io.kubernetes.pod.uid", &uid(pod)),
    ])
}

fn sandbox_status(pod: usize) -> SandboxStatus {
    SandboxStatus {
        id: SandboxId::from(id('s', pod)),
        metadata: Some(SandboxMetadata {
            name: format!("web-{pod}").into(),
            uid: PodUid::from(uid(pod)),
            namespace: "default".into(),
            attempt: 0,
        }),
        state: SandboxState::Ready,
        created_at: RuntimeNanos(EPOCH_NS),
        ips: vec![format!("10.{}.{}.1", pod / 256, pod % 256)],
        namespaces: None,
        labels: pod_labels(pod),
        annotations: Labels::new(),
        runtime_handler: String::new(),
    }
}

fn sandbox_listing(status: SandboxStatus) -> SandboxListing {
    SandboxListing {
        id: status.id,
        metadata: status.metadata,
        state: status.state,
        created_at: status.created_at,
        labels: status.labels,
        ..SandboxListing::default()
    }
}

fn container_status(number: usize) -> ContainerStatus {
    let name = Text::from(format!("c{}", number % CONTAINERS));
    let mut labels = pod_labels(number / CONTAINERS);
    labels.insert("io.kubernetes.container.name", name.clone());
    let created_ns = EPOCH_NS + i64::try_from(number % CONTAINERS).expect("it is small");
    ContainerStatus {
        id: container_id(number),
        metadata: Some(ContainerMetadata { name, attempt: 0 }),
        state: ContainerState::Running,
        created_at: RuntimeNanos(created_ns),
        started_at: RuntimeNanos(created_ns),
        finished_at: RuntimeNanos(0),
        exit_code: 0,
        image: Some("registry.example/web:1".into()),
        image_ref: format!("sha256:{}", id('i', 0)).into(),
        reason: "Completed".into(),
        message: String::new(),
        labels,
        annotations: map(&[
            ("io.kubernetes.container.hash", "1a2b3c4d"),
            ("io.kubernetes.container.restartCount", "0"),
            (
                "io.kubernetes.container.terminationMessagePath",
                "/dev/termination-log",
            ),
            ("io.kubernetes.container.terminationMessagePolicy", "File"),
            ("io.kubernetes.pod.terminationGracePeriod", "30"),
        ]),
        setup: Shared::default(),
    }
}

fn container_listing(number: usize, status: &ContainerStatus) -> ContainerListing {
    ContainerListing {
        id: status.id.clone(),
        sandbox: SandboxId::from(id('s', number / CONTAINERS)),
        metadata: status.metadata.clone(),
        state: status.state,
        created_at: status.created_at,
        labels: status.labels.clone(),
        image: status.image.clone(),
        ..ContainerListing::default()
    }
}
