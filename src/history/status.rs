//! What a runtime says of its sandboxes and containers: events, statuses and listings, in our own
//! types. Field names and units are the CRI's; an unknown enum value is kept as its number.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

#[cfg(test)]
use super::any;
use super::{ContainerId, ContainerSetup, PodUid, RuntimeNanos, SandboxId, Shared, Signal, Text};

/// Labels or annotations.
pub type Labels = Shared<BTreeMap<Text, Text>>;

/// The label with the UID of a container's or sandbox's pod.
pub const POD_UID_LABEL: &str = "io.kubernetes.pod.uid";

/// `runtime.v1.ContainerEventType`.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    Created,
    Started,
    Stopped,
    Deleted,
    /// A number that the CRI does not define.
    Unknown(#[cfg_attr(test, arbitrary(with = any::undefined))] i32),
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Created => f.write_str("CREATED"),
            Self::Started => f.write_str("STARTED"),
            Self::Stopped => f.write_str("STOPPED"),
            Self::Deleted => f.write_str("DELETED"),
            Self::Unknown(number) => write!(f, "UNKNOWN({number})"),
        }
    }
}

/// `runtime.v1.PodSandboxState`.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SandboxState {
    #[default]
    Ready,
    /// `SANDBOX_NOTREADY`.
    NotReady,
    /// A number that the CRI does not define.
    Unknown(#[cfg_attr(test, arbitrary(with = any::undefined))] i32),
}

impl fmt::Display for SandboxState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready => f.write_str("READY"),
            Self::NotReady => f.write_str("NOTREADY"),
            Self::Unknown(number) => write!(f, "UNKNOWN({number})"),
        }
    }
}

/// `runtime.v1.ContainerState`.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ContainerState {
    #[default]
    Created,
    Running,
    Exited,
    /// `CONTAINER_UNKNOWN`, or a number that the CRI does not define.
    Unknown(#[cfg_attr(test, arbitrary(with = any::undefined))] i32),
}

impl fmt::Display for ContainerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Created => f.write_str("CREATED"),
            Self::Running => f.write_str("RUNNING"),
            Self::Exited => f.write_str("EXITED"),
            Self::Unknown(number) => write!(f, "UNKNOWN({number})"),
        }
    }
}

/// `runtime.v1.ContainerEventResponse`: one message of the event stream.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The container that the event is about; for a sandbox's own event, the sandbox's id.
    pub container: ContainerId,
    pub kind: EventKind,
    pub created_at: RuntimeNanos,
    /// The sandbox at that time. Absent is a defect that kubelets stumble over.
    pub sandbox: Option<Shared<SandboxStatus>>,
    /// All containers of the sandbox at that time.
    pub containers: Vec<Shared<ContainerStatus>>,
}

impl Event {
    /// The event's own container in its snapshot.
    pub fn own_status(&self) -> Option<&Shared<ContainerStatus>> {
        self.containers
            .iter()
            .find(|status| status.id == self.container)
    }

    /// Whether its snapshot has the status of what it is about.
    pub fn shows_its_subject(&self) -> bool {
        let sandbox = self.sandbox.as_ref();
        let is_sandbox = sandbox.is_some_and(|own| own.id.as_str() == self.container.as_str());
        is_sandbox || self.own_status().is_some()
    }

    /// The pod's UID, if the event has it.
    pub fn pod_uid(&self) -> Option<&PodUid> {
        self.sandbox
            .as_ref()?
            .metadata
            .as_ref()
            .map(|metadata| &metadata.uid)
    }
}

/// `runtime.v1.PodSandboxMetadata`.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxMetadata {
    pub name: Text,
    pub uid: PodUid,
    pub namespace: Text,
    /// How often the sandbox has been made anew for this pod.
    pub attempt: u32,
}

/// `runtime.v1.PodSandboxStatusResponse`: the status of one sandbox.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SandboxReport {
    pub status: Shared<SandboxStatus>,
    /// The statuses of its containers, if the runtime includes them.
    pub containers: Vec<Shared<ContainerStatus>>,
    /// When all this was read; 0 if the runtime does not say.
    pub timestamp: RuntimeNanos,
}

impl From<SandboxStatus> for SandboxReport {
    /// A report without the statuses of containers.
    fn from(status: SandboxStatus) -> Self {
        Self {
            status: status.into(),
            containers: Vec::new(),
            timestamp: RuntimeNanos(0),
        }
    }
}

/// `runtime.v1.PodSandboxStatus`, as far as rules read it.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SandboxStatus {
    pub id: SandboxId,
    pub metadata: Option<SandboxMetadata>,
    pub state: SandboxState,
    pub created_at: RuntimeNanos,
    /// The pod's addresses, the primary one first; empty on the host network.
    #[cfg_attr(test, arbitrary(with = any::texts))]
    pub ips: Vec<String>,
    pub labels: Labels,
    pub annotations: Labels,
    /// The runtime handler that runs it; empty for the default one.
    pub runtime_handler: String,
}

/// `runtime.v1.ContainerMetadata`.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerMetadata {
    pub name: Text,
    /// How often the container has been made anew.
    pub attempt: u32,
}

/// `runtime.v1.ContainerStatus`, as far as rules read it.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ContainerStatus {
    pub id: ContainerId,
    /// Its name and attempt.
    pub metadata: Option<ContainerMetadata>,
    pub state: ContainerState,
    pub created_at: RuntimeNanos,
    /// When it was started; 0 before.
    pub started_at: RuntimeNanos,
    /// When it exited; 0 before.
    pub finished_at: RuntimeNanos,
    /// How it exited; meaningful once `finished_at` is set.
    pub exit_code: i32,
    /// The image as the user named it; absent where the runtime sent none.
    pub image: Option<Text>,
    /// The image as the runtime resolved it.
    pub image_ref: Text,
    /// A word for why it is in this state, such as `OOMKilled`.
    pub reason: Text,
    /// A sentence for why it is in this state.
    pub message: String,
    pub labels: Labels,
    pub annotations: Labels,
    pub setup: Shared<ContainerSetup>,
}

/// `runtime.v1.ContainerStatusResponse`: the status of one container.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContainerReport {
    pub status: Shared<ContainerStatus>,
    /// Its stop signal; [`Signal::DEFAULT`] if the runtime reports none.
    pub stop_signal: Signal,
}

impl From<ContainerStatus> for ContainerReport {
    /// A report without a stop signal.
    fn from(status: ContainerStatus) -> Self {
        Self {
            status: status.into(),
            stop_signal: Signal::DEFAULT,
        }
    }
}

/// `runtime.v1.PodSandbox`: one line of `ListPodSandbox`.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SandboxListing {
    pub id: SandboxId,
    pub metadata: Option<SandboxMetadata>,
    pub state: SandboxState,
    pub created_at: RuntimeNanos,
    pub labels: Labels,
}

/// `runtime.v1.Container`: one line of `ListContainers`.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContainerListing {
    pub id: ContainerId,
    /// The sandbox it lives in.
    pub sandbox: SandboxId,
    /// Its name and attempt.
    pub metadata: Option<ContainerMetadata>,
    pub state: ContainerState,
    pub created_at: RuntimeNanos,
    pub labels: Labels,
    /// The image as the user named it; absent where the runtime sent none.
    pub image: Option<Text>,
}

/// `runtime.v1.Image`: an image that the runtime has.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageListing {
    pub id: String,
    /// Every `name:tag` by which it is known.
    pub tags: Vec<String>,
}
