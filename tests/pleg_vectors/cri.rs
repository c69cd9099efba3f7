//! The lists and answers of a scripted runtime, in the CRI's types.

use std::collections::BTreeMap;

use cri_event_conformance::testing::history::{
    ContainerId, ContainerListing, ContainerMetadata, ContainerState, ContainerStatus, Event,
    EventKind, Labels, PodUid, RuntimeNanos, SandboxId, SandboxListing, SandboxMetadata,
    SandboxReport, SandboxState, SandboxStatus, Text,
};
use cri_event_conformance::testing::pleg::{POD_UID_LABEL, StatusFault, Statuses};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Snapshot {
    #[serde(default)]
    pub(crate) list_err: String,
    sandboxes: Vec<Sandbox>,
    containers: Vec<Container>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CriEvent {
    container_id: String,
    container_event_type: String,
    created_at: i64,
    #[serde(default)]
    no_pod_sandbox_status: bool,
    pod_sandbox_status: Option<Sandbox>,
    containers_statuses: Vec<Container>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sandbox {
    id: String,
    uid: String,
    name: String,
    namespace: String,
    attempt: u32,
    state: String,
    created_at: i64,
    ip: String,
    #[serde(default)]
    additional_ips: Vec<String>,
    response_timestamp: i64,
    response_containers_statuses: Option<Vec<Container>>,
    #[serde(default)]
    status_err: String,
    #[serde(default)]
    no_metadata: bool,
    #[serde(default)]
    no_network: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Container {
    id: String,
    pod_sandbox_id: String,
    pod_uid: String,
    pod_name: String,
    pod_namespace: String,
    name: String,
    state: String,
    created_at: i64,
    started_at: i64,
    finished_at: i64,
    exit_code: i32,
    image: String,
    image_ref: String,
    reason: String,
    message: String,
    restart_count_annotation: String,
    #[serde(default)]
    status_err: String,
    #[serde(default)]
    no_image: bool,
    #[serde(default)]
    no_metadata: bool,
}

/// A runtime with the content of a snapshot.
pub(crate) struct Runtime {
    pub(crate) sandboxes: Vec<SandboxListing>,
    pub(crate) containers: Vec<ContainerListing>,
    sandbox_answers: BTreeMap<String, Result<SandboxReport, StatusFault>>,
    container_answers: BTreeMap<String, Result<ContainerStatus, StatusFault>>,
}

impl Runtime {
    /// Lists all objects, or those with the label of one pod.
    pub(crate) fn new(snapshot: &Snapshot, pod: Option<&str>) -> Self {
        let sandboxes = snapshot.sandboxes.iter();
        let containers = snapshot.containers.iter();
        Self {
            sandboxes: sandboxes
                .clone()
                .filter(|sandbox| pod.is_none_or(|pod| pod == sandbox.uid))
                .map(Sandbox::listing)
                .collect(),
            containers: containers
                .clone()
                .filter(|container| pod.is_none_or(|pod| pod == container.pod_uid))
                .map(Container::listing)
                .collect(),
            sandbox_answers: sandboxes
                .map(|sandbox| {
                    (
                        sandbox.id.clone(),
                        fault(&sandbox.status_err, || sandbox.answer()),
                    )
                })
                .collect(),
            container_answers: containers
                .map(|container| {
                    let answer = fault(&container.status_err, || container.status());
                    (container.id.clone(), answer)
                })
                .collect(),
        }
    }
}

impl Statuses for Runtime {
    fn sandbox(&self, id: &str) -> Result<&SandboxReport, StatusFault> {
        let answer = self.sandbox_answers.get(id).ok_or(StatusFault::NotFound)?;
        answer.as_ref().map_err(Clone::clone)
    }

    fn container(&self, id: &str) -> Result<&ContainerStatus, StatusFault> {
        let answer = self
            .container_answers
            .get(id)
            .ok_or(StatusFault::NotFound)?;
        answer.as_ref().map_err(Clone::clone)
    }
}

fn fault<T>(scripted: &str, answer: impl FnOnce() -> T) -> Result<T, StatusFault> {
    match scripted {
        "" => Ok(answer()),
        "notfound" => Err(StatusFault::NotFound),
        "error" => Err(StatusFault::Failed("scripted".to_owned())),
        "nil" => Err(StatusFault::Empty),
        other => panic!("no fault {other}"),
    }
}

impl CriEvent {
    pub(crate) fn to_event(&self) -> Event {
        let sandbox = self.pod_sandbox_status.as_ref();
        Event {
            container: ContainerId::from(self.container_id.clone()),
            kind: match self.container_event_type.as_str() {
                "CONTAINER_CREATED_EVENT" => EventKind::Created,
                "CONTAINER_STARTED_EVENT" => EventKind::Started,
                "CONTAINER_STOPPED_EVENT" => EventKind::Stopped,
                "CONTAINER_DELETED_EVENT" => EventKind::Deleted,
                other => panic!("no type {other}"),
            },
            created_at: RuntimeNanos(self.created_at),
            sandbox: sandbox
                .filter(|_| !self.no_pod_sandbox_status)
                .map(|sandbox| sandbox.status().into()),
            containers: self
                .containers_statuses
                .iter()
                .map(|container| container.status().into())
                .collect(),
        }
    }
}

impl Sandbox {
    fn metadata(&self) -> Option<SandboxMetadata> {
        (!self.no_metadata).then(|| SandboxMetadata {
            name: self.name.as_str().into(),
            uid: PodUid::from(self.uid.clone()),
            namespace: self.namespace.as_str().into(),
            attempt: self.attempt,
        })
    }

    fn state(&self) -> SandboxState {
        match self.state.as_str() {
            "SANDBOX_READY" => SandboxState::Ready,
            "SANDBOX_NOTREADY" => SandboxState::NotReady,
            other => panic!("no state {other}"),
        }
    }

    fn listing(&self) -> SandboxListing {
        SandboxListing {
            id: SandboxId::from(self.id.clone()),
            metadata: self.metadata(),
            state: self.state(),
            created_at: RuntimeNanos(self.created_at),
            labels: [(POD_UID_LABEL.to_owned(), self.uid.clone())].into(),
            ..SandboxListing::default()
        }
    }

    fn status(&self) -> SandboxStatus {
        let primary = Some(&self.ip).filter(|ip| !ip.is_empty());
        let ips = primary.into_iter().chain(&self.additional_ips);
        SandboxStatus {
            id: SandboxId::from(self.id.clone()),
            metadata: self.metadata(),
            state: self.state(),
            created_at: RuntimeNanos(self.created_at),
            ips: ips.filter(|_| !self.no_network).cloned().collect(),
            ..SandboxStatus::default()
        }
    }

    fn answer(&self) -> SandboxReport {
        let containers = self.response_containers_statuses.iter().flatten();
        SandboxReport {
            status: self.status().into(),
            containers: containers
                .map(|container| container.status().into())
                .collect(),
            timestamp: RuntimeNanos(self.response_timestamp),
        }
    }
}

impl Container {
    fn metadata(&self) -> Option<ContainerMetadata> {
        (!self.no_metadata).then(|| ContainerMetadata {
            name: self.name.as_str().into(),
            attempt: 0,
        })
    }

    fn image(&self) -> Option<Text> {
        (!self.no_image).then(|| self.image.as_str().into())
    }

    fn state(&self) -> ContainerState {
        match self.state.as_str() {
            "CONTAINER_CREATED" => ContainerState::Created,
            "CONTAINER_RUNNING" => ContainerState::Running,
            "CONTAINER_EXITED" => ContainerState::Exited,
            "CONTAINER_UNKNOWN" => ContainerState::Unknown(3),
            other => panic!("no state {other}"),
        }
    }

    fn labels(&self) -> Labels {
        [
            (POD_UID_LABEL, &self.pod_uid),
            ("io.kubernetes.pod.name", &self.pod_name),
            ("io.kubernetes.pod.namespace", &self.pod_namespace),
            ("io.kubernetes.container.name", &self.name),
        ]
        .map(|(key, value)| (key.to_owned(), value.clone()))
        .into()
    }

    fn listing(&self) -> ContainerListing {
        ContainerListing {
            id: ContainerId::from(self.id.clone()),
            sandbox: SandboxId::from(self.pod_sandbox_id.clone()),
            metadata: self.metadata(),
            state: self.state(),
            created_at: RuntimeNanos(self.created_at),
            labels: self.labels(),
            image: self.image(),
            ..ContainerListing::default()
        }
    }

    fn status(&self) -> ContainerStatus {
        let annotations = [
            ("io.kubernetes.container.hash", "1a2b"),
            (
                "io.kubernetes.container.restartCount",
                self.restart_count_annotation.as_str(),
            ),
        ];
        ContainerStatus {
            id: ContainerId::from(self.id.clone()),
            metadata: self.metadata(),
            state: self.state(),
            created_at: RuntimeNanos(self.created_at),
            started_at: RuntimeNanos(self.started_at),
            finished_at: RuntimeNanos(self.finished_at),
            exit_code: self.exit_code,
            image: self.image(),
            image_ref: self.image_ref.as_str().into(),
            reason: self.reason.as_str().into(),
            message: self.message.clone(),
            labels: self.labels(),
            annotations: annotations
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
            ..ContainerStatus::default()
        }
    }
}
