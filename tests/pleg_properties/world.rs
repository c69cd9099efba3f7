//! A world of one pod with a container's life, and a kubelet that observes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use cri_event_conformance::testing::history::{
    ContainerId, ContainerState, ContainerStatus, Event, EventKind, PodUid, RuntimeNanos,
    SandboxId, SandboxMetadata, SandboxReport, SandboxState, SandboxStatus,
};
use cri_event_conformance::testing::pleg::{
    Features, Generic, InspectError, Kubelet, LifecycleKind, ListedItem, Moment, PodIdentity,
    PodList, PodStatus, Receipt, SharedId, State, StatusFault, Statuses, pod_status, receive,
};

pub(crate) const POD: &str = "pod";
const SANDBOX: &str = "s";
const CONTAINER: &str = "c";

/// The pod's life: the existing objects after each event, and the event.
const LIFE: [(
    Option<SandboxState>,
    Option<ContainerState>,
    &str,
    EventKind,
); 6] = [
    (Some(SandboxState::Ready), None, SANDBOX, EventKind::Started),
    (
        Some(SandboxState::Ready),
        Some(ContainerState::Created),
        CONTAINER,
        EventKind::Created,
    ),
    (
        Some(SandboxState::Ready),
        Some(ContainerState::Running),
        CONTAINER,
        EventKind::Started,
    ),
    (
        Some(SandboxState::Ready),
        Some(ContainerState::Exited),
        CONTAINER,
        EventKind::Stopped,
    ),
    (
        Some(SandboxState::NotReady),
        None,
        CONTAINER,
        EventKind::Deleted,
    ),
    (None, None, SANDBOX, EventKind::Deleted),
];

/// The state of the runtime, and its events that have not been received.
#[derive(Clone, Default)]
pub(crate) struct Truth {
    sandbox: Option<SandboxReport>,
    container: Option<ContainerStatus>,
    lived: usize,
    now_ns: i64,
    pending: Vec<Event>,
}

impl Truth {
    pub(crate) fn is_over(&self) -> bool {
        self.lived == LIFE.len()
    }

    /// The next step of the pod's life.
    pub(crate) fn advance(&mut self) {
        let Some(&(sandbox, container, subject, kind)) = LIFE.get(self.lived) else {
            return;
        };
        self.lived += 1;
        self.now_ns += 10;
        self.container = container.map(container_status);
        // The deletion of a sandbox still reports the deleted objects.
        let reported = sandbox_status(sandbox.unwrap_or(SandboxState::NotReady));
        self.sandbox = sandbox.map(|_| SandboxReport {
            containers: self.container.iter().cloned().map(Into::into).collect(),
            ..reported.clone().into()
        });
        self.pass(0);
        self.pending.push(Event {
            container: ContainerId::from(subject),
            kind,
            created_at: RuntimeNanos(self.now_ns),
            sandbox: Some(reported.into()),
            containers: self.container.iter().cloned().map(Into::into).collect(),
        });
    }

    /// The states that the kubelet should know.
    pub(crate) fn states(&self) -> BTreeMap<&'static str, State> {
        let sandbox = self
            .sandbox
            .as_ref()
            .map(|report| (SANDBOX, report.status.state.into()));
        let container = self
            .container
            .as_ref()
            .map(|status| (CONTAINER, status.state.into()));
        sandbox.into_iter().chain(container).collect()
    }

    /// Lets time pass without a change.
    fn pass(&mut self, ns: i64) {
        self.now_ns += ns;
        if let Some(report) = &mut self.sandbox {
            report.timestamp = RuntimeNanos(self.now_ns);
        }
    }

    fn list(&self) -> PodList<'static> {
        let states = self.states();
        let mut list = PodList::new(Moment::from_ns(self.now_ns));
        if !states.is_empty() {
            let seen = |id| {
                states
                    .get(id)
                    .map(|state| ListedItem::container(id, *state, SANDBOX))
            };
            let pod = PodIdentity {
                uid: POD,
                name: "web",
                namespace: "default",
            };
            list.push(pod, seen(CONTAINER), seen(SANDBOX));
        }
        list
    }
}

impl Statuses for Truth {
    fn sandbox(&self, _id: &str) -> Result<&SandboxReport, StatusFault> {
        self.sandbox.as_ref().ok_or(StatusFault::NotFound)
    }

    fn container(&self, _id: &str) -> Result<&ContainerStatus, StatusFault> {
        self.container.as_ref().ok_or(StatusFault::NotFound)
    }
}

/// A kubelet, and the events that its sync loop has received.
#[derive(Clone)]
pub(crate) struct Watcher {
    pub(crate) kubelet: Kubelet,
    pub(crate) generic: Generic,
    /// The last event of each container or sandbox.
    pub(crate) forwarded: BTreeMap<String, LifecycleKind>,
}

impl Watcher {
    pub(crate) fn new(features: Features) -> Self {
        Self {
            kubelet: Kubelet::new(features, 1000),
            generic: Generic::new(),
            forwarded: BTreeMap::new(),
        }
    }

    pub(crate) fn relist(&mut self, truth: &mut Truth) {
        truth.pass(1);
        let now = Moment::from_ns(truth.now_ns);
        let list = truth.list();
        self.generic.relist(&mut self.kubelet, now, &list);
        self.inspect(&list, truth);
    }

    pub(crate) fn relist_pod(&mut self, truth: &mut Truth) {
        truth.pass(1);
        let list = truth.list();
        self.generic.relist_pod(&mut self.kubelet, POD, &list);
        self.inspect(&list, truth);
    }

    /// Relists, with failing inspections.
    pub(crate) fn relist_in_vain(&mut self, truth: &mut Truth) {
        truth.pass(1);
        let now = Moment::from_ns(truth.now_ns);
        self.generic.relist(&mut self.kubelet, now, &truth.list());
        let error = InspectError::Empty {
            method: "PodSandboxStatus",
            id: SharedId::from(SANDBOX),
        };
        while self.generic.wanted().is_some() {
            self.generic
                .inspected(&mut self.kubelet, Err(error.clone()));
        }
        self.listen();
    }

    /// Removes the oldest event that it has not received yet.
    pub(crate) fn hear(&mut self, truth: &mut Truth) -> Option<Receipt> {
        if truth.pending.is_empty() {
            return None;
        }
        let event = truth.pending.remove(0);
        let receipt = receive(&mut self.kubelet, &event).ok();
        self.listen();
        receipt
    }

    /// Its status of the pod, without the time of the reading and the fields that only inspections
    /// show.
    pub(crate) fn belief(&self) -> Option<PodStatus> {
        let entry = self.kubelet.cache.get(POD)?;
        let status = entry.status().expect("the last inspection succeeded");
        Some(PodStatus {
            active_containers: Vec::new(),
            read_at: Moment::NEVER,
            ..(**status).clone()
        })
    }

    fn inspect(&mut self, list: &PodList<'_>, truth: &Truth) {
        while let Some(wanted) = self.generic.wanted() {
            let pod = list.pod(wanted.index).expect("it is wanted");
            let status = pod_status(&pod, self.kubelet.gate(), list.at(), truth).map(Arc::new);
            self.generic.inspected(&mut self.kubelet, status);
        }
        self.listen();
    }

    fn listen(&mut self) {
        for event in self.kubelet.channel.drain() {
            if let Some(container) = event.container {
                self.forwarded.insert(container.to_string(), event.kind);
            }
        }
    }
}

fn sandbox_status(state: SandboxState) -> SandboxStatus {
    SandboxStatus {
        id: SandboxId::from(SANDBOX),
        metadata: Some(SandboxMetadata {
            name: "web".into(),
            uid: PodUid::from(POD),
            namespace: "default".into(),
            attempt: 0,
        }),
        state,
        ..SandboxStatus::default()
    }
}

fn container_status(state: ContainerState) -> ContainerStatus {
    ContainerStatus {
        id: ContainerId::from(CONTAINER),
        state,
        image: Some("image".into()),
        ..ContainerStatus::default()
    }
}
