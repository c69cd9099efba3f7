//! Events, statuses and listings of sandboxes and containers, as a runtime reports them. Names and
//! units of fields are the CRI's; an unknown enum value is kept as its number.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

#[cfg(test)]
use super::any;
use super::protobuf::{message, numbers, written_as};
use super::{ContainerId, ContainerSetup, PodUid, RuntimeNanos, SandboxId, Shared, Text};
use crate::limits::WATCHED_NAME;

/// Labels or annotations.
pub type Labels = Shared<BTreeMap<Text, Text>>;

/// The label with the UID of a container's or sandbox's pod.
pub const POD_UID_LABEL: &str = "io.kubernetes.pod.uid";

numbers! {
    /// `runtime.v1.ContainerEventType`.
    #[derive(PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum EventKind {
        Created = 0 "CREATED",
        Started = 1 "STARTED",
        Stopped = 2 "STOPPED",
        Deleted = 3 "DELETED",
    }
}

numbers! {
    /// `runtime.v1.PodSandboxState`.
    #[derive(Default)]
    pub enum SandboxState {
        #[default]
        Ready = 0 "READY",
        /// `SANDBOX_NOTREADY`.
        NotReady = 1 "NOTREADY",
    }
}

numbers! {
    /// `runtime.v1.ContainerState`, of which `CONTAINER_UNKNOWN` is `Unknown`.
    #[derive(Default)]
    pub enum ContainerState {
        #[default]
        Created = 0 "CREATED",
        Running = 1 "RUNNING",
        Exited = 2 "EXITED",
    }
}

message! {
    /// `runtime.v1.ContainerEventResponse`: one message of the event stream.
    pub struct Event {
        /// The container that the event is about; for a sandbox's own event, the sandbox's id.
        container: ContainerId = 1,
        kind: EventKind = 2,
        created_at: RuntimeNanos = 3,
        /// The sandbox at that time. Absent is a defect that kubelets stumble over.
        sandbox: Option<Shared<SandboxStatus>> = 4,
        /// All containers of the sandbox at that time.
        containers: Vec<Shared<ContainerStatus>> = 5,
    }
}

impl Event {
    /// The event's own container in its snapshot.
    pub fn own_status(&self) -> Option<&Shared<ContainerStatus>> {
        self.containers
            .iter()
            .find(|status| status.id == self.container)
    }

    /// Whether its subject is the sandbox that it shows.
    pub fn is_of_sandbox(&self) -> bool {
        let sandbox = self.sandbox.as_ref();
        sandbox.is_some_and(|own| own.id.as_str() == self.container.as_str())
    }

    /// Whether its snapshot has the status of its subject.
    pub fn shows_its_subject(&self) -> bool {
        self.is_of_sandbox() || self.own_status().is_some()
    }

    /// Whether an id or a name of its container or its pod is longer than any that `watch` tracks.
    pub fn has_long_names(&self) -> bool {
        let sandbox = self.sandbox.as_deref();
        let pod = sandbox.and_then(|sandbox| sandbox.metadata.as_ref());
        let of_pod = pod.map(|pod| [&*pod.name, &*pod.namespace, pod.uid.as_str()]);
        let own = self.own_status().and_then(|own| own.metadata.as_ref());
        let names = [self.container.as_str()]
            .into_iter()
            .chain(sandbox.map(|sandbox| sandbox.id.as_str()))
            .chain(of_pod.into_iter().flatten())
            .chain(own.map(|own| &*own.name));
        names.into_iter().any(|name| name.len() > WATCHED_NAME)
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

message! {
    /// `runtime.v1.PodSandboxMetadata`.
    #[derive(Default, Eq)]
    pub struct SandboxMetadata {
        name: Text = 1,
        uid: PodUid = 2,
        namespace: Text = 3,
        /// How often the sandbox has been made anew for this pod.
        attempt: u32 = 4,
    }
}

message! {
    /// `runtime.v1.PodSandboxStatusResponse`: the status of one sandbox.
    pub part SandboxReport {
        status: Shared<SandboxStatus> = 1,
        /// The statuses of its containers, if the runtime includes them.
        containers: Vec<Shared<ContainerStatus>> = 3,
        /// When all this was read; 0 if the runtime does not say.
        timestamp: RuntimeNanos = 4,
    }
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

numbers! {
    /// `runtime.v1.NamespaceMode`.
    #[derive(Default)]
    pub enum NamespaceMode {
        #[default]
        Pod = 0 "POD",
        Container = 1 "CONTAINER",
        Node = 2 "NODE",
        Target = 3 "TARGET",
    }
}

message! {
    /// `runtime.v1.NamespaceOption`, as far as pods set it.
    #[derive(Default, Eq)]
    pub struct Namespaces {
        network: NamespaceMode = 1,
        pid: NamespaceMode = 2,
        ipc: NamespaceMode = 3,
    }
}

message! {
    /// `runtime.v1.PodSandboxStatus`, as far as rules read it.
    #[derive(Default)]
    pub struct SandboxStatus {
        id: SandboxId = 1,
        metadata: Option<SandboxMetadata> = 2,
        state: SandboxState = 3,
        created_at: RuntimeNanos = 4,
        /// The pod's addresses, the primary one first; empty on the host network.
        #[cfg_attr(test, arbitrary(with = any::texts))]
        ips: Vec<String> as Addresses = 5,
        /// Absent if the runtime does not report them.
        namespaces: Option<Namespaces> as SandboxLinux = 6,
        labels: Labels = 7,
        annotations: Labels = 8,
        /// The runtime handler that runs it; empty for the default one.
        runtime_handler: String = 9,
    }
}

message! {
    /// `runtime.v1.ContainerMetadata`.
    #[derive(Default, Eq)]
    pub struct ContainerMetadata {
        name: Text = 1,
        /// How often the container has been made anew.
        attempt: u32 = 2,
    }
}

message! {
    /// `runtime.v1.ContainerStatus`, as far as rules read it.
    #[derive(Default)]
    pub struct ContainerStatus {
        id: ContainerId = 1,
        /// Its name and attempt.
        metadata: Option<ContainerMetadata> = 2,
        state: ContainerState = 3,
        created_at: RuntimeNanos = 4,
        /// When it was started; 0 before.
        started_at: RuntimeNanos = 5,
        /// When it exited; 0 before.
        finished_at: RuntimeNanos = 6,
        /// How it exited; meaningful once `finished_at` is set.
        exit_code: i32 = 7,
        /// The image as the user named it; absent where the runtime sent none.
        image: Option<Text> as ImageName = 8,
        /// The image as the runtime resolved it.
        image_ref: Text = 9,
        /// A word for why it is in this state, such as `OOMKilled`.
        reason: Text = 10,
        /// A sentence for why it is in this state.
        message: String = 11,
        labels: Labels = 12,
        annotations: Labels = 13,
        setup: Shared<ContainerSetup>,
    }
}

message! {
    /// `runtime.v1.ContainerStatusResponse`: the status of one container.
    pub part ContainerReport {
        status: Shared<ContainerStatus> = 1,
    }
}

impl From<ContainerStatus> for ContainerReport {
    fn from(status: ContainerStatus) -> Self {
        Self {
            status: status.into(),
        }
    }
}

message! {
    /// `runtime.v1.PodSandbox`: one line of `ListPodSandbox`.
    #[derive(Default)]
    pub struct SandboxListing {
        id: SandboxId = 1,
        metadata: Option<SandboxMetadata> = 2,
        state: SandboxState = 3,
        created_at: RuntimeNanos = 4,
        labels: Labels = 5,
        annotations: Labels = 6,
        /// As in its status.
        runtime_handler: String = 7,
    }
}

message! {
    /// `runtime.v1.Container`: one line of `ListContainers`.
    #[derive(Default)]
    pub struct ContainerListing {
        id: ContainerId = 1,
        /// The sandbox it lives in.
        sandbox: SandboxId = 2,
        /// Its name and attempt.
        metadata: Option<ContainerMetadata> = 3,
        /// The image as the user named it; absent where the runtime sent none.
        image: Option<Text> as ImageName = 4,
        image_ref: Text = 5,
        state: ContainerState = 6,
        created_at: RuntimeNanos = 7,
        labels: Labels = 8,
        annotations: Labels = 9,
        image_id: Text = 10,
    }
}

message! {
    /// `runtime.v1.Image`: an image that the runtime has.
    #[derive(Eq)]
    pub struct ImageListing {
        id: String = 1,
        /// Every `name:tag` by which it is known.
        tags: Vec<String> = 2,
    }
}

/// The addresses of a pod, as `runtime.v1.PodSandboxNetworkStatus`.
#[derive(Clone)]
struct Addresses(Vec<String>);

message! {
    struct Network {
        ip: String = 1,
        additional_ips: Vec<Address> = 2,
    }
}

message! {
    struct Address {
        ip: String = 1,
    }
}

/// The namespaces of a pod, as `runtime.v1.LinuxPodSandboxStatus`.
struct SandboxLinux(Option<Namespaces>);

message! {
    struct LinuxStatus {
        namespaces: Option<NamespaceStatus> = 1,
    }
}

message! {
    struct NamespaceStatus {
        options: Option<Namespaces> = 2,
    }
}

/// The name of an image, as `runtime.v1.ImageSpec`.
struct ImageName(Option<Text>);

message! {
    pub(super) struct ImageSpec {
        image: Text = 1,
        user_specified_image: Text = 18,
    }
}

impl ImageSpec {
    /// CRI-O needs the reference that the user wrote as well.
    pub(super) fn named(name: &str) -> Self {
        let image = Text::from(name);
        let user_specified_image = image.clone();
        Self {
            image,
            user_specified_image,
        }
    }
}

written_as! {
    Addresses as Option<Network> {
        |addresses| addresses.0.split_first().map(|(ip, others)| Network {
            ip: ip.clone(),
            additional_ips: others.iter().cloned().map(|ip| Address { ip }).collect(),
        }),
        |network| {
            let ips = network.into_iter().flat_map(|network: Network| {
                let others = network.additional_ips.into_iter().map(|address| address.ip);
                std::iter::once(network.ip).chain(others)
            });
            Ok(Addresses(ips.filter(|ip| !ip.is_empty()).collect()))
        }
    }
    SandboxLinux as Option<LinuxStatus> {
        |linux| linux.0.clone().map(|options| LinuxStatus {
            namespaces: Some(NamespaceStatus { options: Some(options) }),
        }),
        |linux| {
            let namespaces = linux.and_then(|linux: LinuxStatus| linux.namespaces);
            Ok(SandboxLinux(namespaces.and_then(|namespaces| namespaces.options)))
        }
    }
    ImageName as Option<ImageSpec> {
        |name| name.0.as_deref().map(ImageSpec::named),
        |spec| Ok(ImageName(spec.map(|spec: ImageSpec| spec.image)))
    }
}
