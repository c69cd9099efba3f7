//! RPCs as data: requests, replies and failures. A `Request` is one unary call of the CRI.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

#[cfg(test)]
use super::any;
use super::container::Limits;
use super::ids::cut;
use super::protobuf::{message, messages, written_as};
use super::status::ImageSpec;
use super::{
    ContainerId, ContainerListing, ContainerReport, ContainerSpec, ContainerState, ImageListing,
    Labels, NamespaceMode, Namespaces, NoEventCall, PodUid, SandboxId, SandboxListing,
    SandboxReport, SandboxState,
};
use crate::escape::printable;

messages! {
    /// One unary CRI call, by the CRI's name of the method.
    pub enum Request {
        Version,
        RunSandbox(Arc<SandboxSpec>),
        StopSandbox(SandboxId = 1): "StopPodSandbox",
        RemoveSandbox(SandboxId = 1): "RemovePodSandbox",
        SandboxStatus(SandboxId = 1): "PodSandboxStatus",
        /// `ListPodSandbox` or `StreamPodSandboxes` with these labels as filter.
        ListSandboxes {
            labels: Labels,
            streamed: bool,
        },
        CreateContainer(Arc<ContainerSpec>),
        StartContainer(ContainerId = 1): "StartContainer",
        /// `StopContainer`; the runtime counts the grace period in whole seconds.
        StopContainer {
            container: ContainerId = 1,
            /// Time between the stop signal and the kill.
            #[cfg_attr(test, arbitrary(with = any::seconds))]
            grace: Duration as Seconds = 2,
        }: "StopContainer",
        RemoveContainer(ContainerId = 1): "RemoveContainer",
        ContainerStatus(ContainerId = 1): "ContainerStatus",
        ListContainers {
            /// Only those of this sandbox.
            sandbox: Option<SandboxId>,
            /// Only those that carry all these labels.
            labels: Labels,
            /// Asked for as a stream: `StreamContainers`.
            streamed: bool,
        },
        RuntimeStatus: "Status",
        /// `ListPodSandbox` or `StreamPodSandboxes` with any filter.
        FindSandboxes(SandboxFilter),
        /// `ListContainers` or `StreamContainers` with any filter.
        FindContainers(ContainerFilter),
        /// `ImageStatus` of a reference.
        ImageStatus(String as ImageReference = 1): "ImageStatus",
        /// `PullImage` of a reference.
        PullImage(String as ImageReference = 1): "PullImage",
        /// `RemoveImage` of a reference.
        RemoveImage(String as ImageReference = 1): "RemoveImage",
        ListImages: "ListImages",
        /// `ExecSync`; the runtime counts the time-out in whole seconds.
        ExecSync {
            container: ContainerId = 1,
            /// The whole command line.
            command: Vec<String> = 2,
            /// How long the command may run.
            #[cfg_attr(test, arbitrary(with = any::seconds))]
            timeout: Duration as Seconds = 3,
        }: "ExecSync",
        /// `CheckpointContainer`: the container keeps running.
        CheckpointContainer {
            container: ContainerId = 1,
            /// The file that the runtime writes, as it sees it.
            location: String = 2,
        }: "CheckpointContainer",
        UpdateContainerResources {
            container: ContainerId = 1,
            /// The resources to set, by the CRI's names; the others keep their values.
            #[cfg_attr(test, arbitrary(with = any::limits))]
            resources: Labels as Limits = 2,
        }: "UpdateContainerResources",
        /// A call that changes no state, with the id of its subject; empty if that has none.
        #[cfg_attr(test, arbitrary(skip))]
        NoEventCall(NoEventCall, String),
    }
}

/// A time in whole seconds.
#[derive(Clone)]
struct Seconds(Duration);

/// A reference of an image, as `runtime.v1.ImageSpec`.
struct ImageReference(String);

written_as! {
    Seconds as i64 {
        |span| i64::try_from(span.0.as_secs()).unwrap_or(i64::MAX),
        |seconds| Ok(Seconds(Duration::from_secs(u64::try_from(seconds).unwrap_or(0))))
    }
    ImageReference as ImageSpec {
        |reference| ImageSpec::named(&reference.0),
        |spec| Ok(ImageReference(spec.image.to_string()))
    }
}

impl SandboxSpec {
    /// The host's network by default, so that no CNI plugin is needed, and a PID namespace for each
    /// container unless they share one.
    pub fn namespaces(&self) -> Namespaces {
        let mode = |is_own, other| if is_own { NamespaceMode::Pod } else { other };
        Namespaces {
            network: mode(self.own_network, NamespaceMode::Node),
            pid: mode(self.shared_pid, NamespaceMode::Container),
            ipc: NamespaceMode::Pod,
        }
    }
}

impl Request {
    /// The list of sandboxes with these labels, in one answer.
    pub fn sandboxes(labels: Labels) -> Self {
        Self::ListSandboxes {
            labels,
            streamed: false,
        }
    }

    /// The list of containers with these labels, of one sandbox or of all, in one answer.
    pub fn containers(sandbox: Option<SandboxId>, labels: Labels) -> Self {
        Self::ListContainers {
            sandbox,
            labels,
            streamed: false,
        }
    }

    /// The same list as a stream; absent for a list that is one, and for any other call.
    pub fn as_stream(&self) -> Option<Self> {
        let mut list = self.clone();
        let (Self::ListSandboxes { streamed, .. }
        | Self::ListContainers { streamed, .. }
        | Self::FindSandboxes(SandboxFilter { streamed, .. })
        | Self::FindContainers(ContainerFilter { streamed, .. })) = &mut list
        else {
            return None;
        };
        (!std::mem::replace(streamed, true)).then_some(list)
    }

    /// Whether the answer comes as a stream of messages.
    pub fn is_streamed(&self) -> bool {
        matches!(self.method(), "StreamPodSandboxes" | "StreamContainers")
    }

    /// The CRI's name of the method.
    pub fn method(&self) -> &'static str {
        match self {
            Self::Version => "Version",
            Self::RunSandbox(_) => "RunPodSandbox",
            Self::CreateContainer(_) => "CreateContainer",
            Self::ListSandboxes { streamed: true, .. }
            | Self::FindSandboxes(SandboxFilter { streamed: true, .. }) => "StreamPodSandboxes",
            Self::ListSandboxes { .. } | Self::FindSandboxes(_) => "ListPodSandbox",
            Self::ListContainers { streamed: true, .. }
            | Self::FindContainers(ContainerFilter { streamed: true, .. }) => "StreamContainers",
            Self::ListContainers { .. } | Self::FindContainers(_) => "ListContainers",
            Self::NoEventCall(call, _) => call.method(),
            _ => self.name().unwrap_or_default(),
        }
    }

    /// The CRI's name of the response message; empty if the suite reads none of its fields. The
    /// messages of a streamed list have the fields of the unary one.
    pub fn response(&self) -> &'static str {
        match self {
            Self::Version => "VersionResponse",
            Self::RunSandbox(_) => "RunPodSandboxResponse",
            Self::CreateContainer(_) => "CreateContainerResponse",
            Self::SandboxStatus(_) => "PodSandboxStatusResponse",
            Self::ContainerStatus(_) => "ContainerStatusResponse",
            Self::ListSandboxes { .. } | Self::FindSandboxes(_) => "ListPodSandboxResponse",
            Self::ListContainers { .. } | Self::FindContainers(_) => "ListContainersResponse",
            Self::RuntimeStatus => "StatusResponse",
            Self::ImageStatus(_) => "ImageStatusResponse",
            Self::PullImage(_) => "PullImageResponse",
            Self::ListImages => "ListImagesResponse",
            Self::ExecSync { .. } => "ExecSyncResponse",
            Self::StopSandbox(_)
            | Self::RemoveSandbox(_)
            | Self::StartContainer(_)
            | Self::StopContainer { .. }
            | Self::RemoveContainer(_)
            | Self::RemoveImage(_)
            | Self::CheckpointContainer { .. }
            | Self::UpdateContainerResources { .. }
            | Self::NoEventCall(..) => "",
        }
    }
}

/// The filter of a list of sandboxes. An absent field matches everything.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxFilter {
    pub id: Option<SandboxId>,
    /// Those in this state.
    pub state: Option<SandboxState>,
    /// Those that carry all these labels.
    pub labels: Labels,
    /// Asked for as a stream: `StreamPodSandboxes`.
    pub streamed: bool,
}

/// The filter of a list of containers. An absent field matches everything.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerFilter {
    pub id: Option<ContainerId>,
    /// Those in this state.
    pub state: Option<ContainerState>,
    /// Those of this sandbox.
    pub sandbox: Option<SandboxId>,
    /// Those that carry all these labels.
    pub labels: Labels,
    /// Asked for as a stream: `StreamContainers`.
    pub streamed: bool,
}

#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SandboxSpec {
    /// Its name in the case; part of the pod's name.
    pub binding: String,
    pub name: String,
    pub namespace: String,
    pub uid: PodUid,
    /// The attempt: how often a sandbox was created for this pod before.
    pub attempt: u32,
    pub labels: Labels,
    pub annotations: Labels,
    /// The runtime handler; empty for the default one.
    pub runtime_handler: String,
    /// Kernel parameters to set.
    pub sysctls: Labels,
    /// Whether it has its own network namespace instead of the host's.
    pub own_network: bool,
    /// Whether its containers share a PID namespace instead of having one each.
    pub shared_pid: bool,
    /// The parent of the pod's cgroup; empty for the runtime's default.
    pub cgroup_parent: String,
    /// The memory limit of that cgroup in bytes, without swap; none if absent.
    #[cfg_attr(test, arbitrary(with = any::limit))]
    pub memory_bytes: Option<u64>,
    /// The host directory of its containers' logs. The suite always sets it: a kubelet deletes
    /// files by the log path of every container that it finds.
    pub log_directory: String,
}

messages! {
    /// The result of a call, by the CRI's name of the response message; see [`Request::response`].
    pub enum Reply {
        /// The call returns nothing, or nothing that the suite reads.
        Done: "",
        Version(RuntimeVersion as VersionResponse): "VersionResponse",
        Sandbox(SandboxId = 1): "RunPodSandboxResponse",
        Container(ContainerId = 1): "CreateContainerResponse",
        SandboxStatus(SandboxReport): "PodSandboxStatusResponse",
        ContainerStatus(ContainerReport): "ContainerStatusResponse",
        Sandboxes(Vec<SandboxListing> = 1): "ListPodSandboxResponse",
        Containers(Vec<ContainerListing> = 1): "ListContainersResponse",
        /// Absent if the runtime does not have the image.
        Image(Option<ImageListing> = 1): "ImageStatusResponse",
        /// The reference by which containers name the image.
        Pulled(String = 1): "PullImageResponse",
        Images(Vec<ImageListing> = 1): "ListImagesResponse",
        /// The command's exit code.
        Exec(i32 = 3): "ExecSyncResponse",
        RuntimeStatus(RuntimeStatus): "StatusResponse",
    }
}

impl Reply {
    /// The CRI's name of the response message; see [`Request::response`].
    pub fn response(&self) -> &'static str {
        self.name().unwrap_or_default()
    }
}

message! {
    /// `runtime.v1.StatusResponse`, as far as the suite reads it.
    #[derive(Default, Eq)]
    pub part RuntimeStatus {
        /// The conditions that hold, such as `NetworkReady`.
        conditions: Vec<String> as Conditions = 1,
        /// The names of the handlers that sandboxes may ask for; the default one has none.
        handlers: Vec<String> as Handlers = 3,
    }
}

#[derive(Clone)]
struct Conditions(Vec<String>);

message! {
    #[derive(Default)]
    struct ConditionsOfRuntime {
        conditions: Vec<Condition> = 1,
    }
}

message! {
    struct Condition {
        kind: String = 1,
        holds: bool = 2,
    }
}

#[derive(Clone)]
struct Handlers(Vec<String>);

message! {
    struct Handler {
        name: String = 1,
    }
}

struct VersionResponse(RuntimeVersion);

message! {
    part VersionFields {
        version: String = 1,
        runtime_name: String = 2,
        runtime_version: String = 3,
        api_version: String = 4,
    }
}

written_as! {
    Conditions as Option<ConditionsOfRuntime> {
        |held| {
            let held = held.0.iter().cloned();
            let conditions = held.map(|kind| Condition { kind, holds: true }).collect();
            Some(ConditionsOfRuntime { conditions })
        },
        |status| {
            let all: ConditionsOfRuntime = status.unwrap_or_default();
            let held = all.conditions.into_iter().filter(|condition| condition.holds);
            Ok(Conditions(held.map(|condition| condition.kind).collect()))
        }
    }
    Handlers as Vec<Handler> {
        |names| names.0.iter().cloned().map(|name| Handler { name }).collect(),
        |handlers| Ok(Handlers(handlers.into_iter().map(|handler| handler.name).collect()))
    }
    VersionResponse as VersionFields {
        |version| VersionFields {
            version: "0.1.0".to_owned(),
            runtime_name: version.0.runtime_name.clone(),
            runtime_version: version.0.runtime_version.clone(),
            api_version: version.0.api_version.clone(),
        },
        |fields| Ok(VersionResponse(RuntimeVersion {
            runtime_name: repeated(fields.runtime_name),
            runtime_version: repeated(fields.runtime_version),
            api_version: repeated(fields.api_version),
        }))
    }
}

/// A text that each output repeats, so that it must not be long.
fn repeated(mut text: String) -> String {
    cut(&mut text);
    text
}

message! {
    /// `runtime.v1.VersionResponse`, as a history has it.
    #[derive(Default, Eq)]
    pub struct RuntimeVersion {
        /// Such as `containerd` or `cri-o`.
        runtime_name: String = 1,
        /// Such as `2.1.9` or `v2.1.9`.
        runtime_version: String = 2,
        /// Such as `v1`.
        api_version: String = 3,
    }
}

message! {
    /// Why a call failed, as gRPC reports it. The entries around it give the method and the
    /// duration.
    #[derive(Eq)]
    pub struct CallFault {
        /// The gRPC status code.
        code: StatusCode = 1,
        message: String = 2,
        /// The deadline that the call had.
        #[cfg_attr(test, arbitrary(with = any::span))]
        deadline: Duration = 3,
    }
}

impl fmt::Display for CallFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The message is the runtime's and may hold anything.
        write!(f, "{}: {}", self.code, printable(&self.message))?;
        if self.code == StatusCode::DEADLINE_EXCEEDED {
            write!(f, " (deadline {:?})", self.deadline)?;
        }
        Ok(())
    }
}

impl std::error::Error for CallFault {}

impl CallFault {
    /// The failure of a call of this method, in words.
    pub fn of(&self, method: &str) -> String {
        format!("{method} failed: {self}")
    }
}

/// A gRPC status code, by its number on the wire.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusCode(pub i32);

written_as! {
    StatusCode as i32 { |code| code.0, |number| Ok(StatusCode(number)) }
}

impl StatusCode {
    /// Success.
    pub const OK: Self = Self(0);
    /// The caller cancelled the call.
    pub const CANCELLED: Self = Self(1);
    /// No other code applies.
    pub const UNKNOWN: Self = Self(2);
    /// The deadline passed.
    pub const DEADLINE_EXCEEDED: Self = Self(4);
    /// The request is malformed.
    pub const INVALID_ARGUMENT: Self = Self(3);
    /// The object does not exist.
    pub const NOT_FOUND: Self = Self(5);
    pub const ALREADY_EXISTS: Self = Self(6);
    /// A resource is exhausted, or a message too large.
    pub const RESOURCE_EXHAUSTED: Self = Self(8);
    /// The object is in the wrong state.
    pub const FAILED_PRECONDITION: Self = Self(9);
    /// The server does not implement the method.
    pub const UNIMPLEMENTED: Self = Self(12);
    /// The server cannot be reached.
    pub const UNAVAILABLE: Self = Self(14);
    /// The reply cannot be decoded.
    pub const DATA_LOSS: Self = Self(15);

    /// The code with this name, such as `UNAVAILABLE`.
    pub fn named(name: &str) -> Option<Self> {
        let place = Self::NAMES.iter().position(|known| *known == name)?;
        i32::try_from(place).ok().map(Self)
    }

    const NAMES: [&str; 17] = [
        "OK",
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
    ];
}

impl fmt::Display for StatusCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = usize::try_from(self.0)
            .ok()
            .and_then(|index| Self::NAMES.get(index));
        match name {
            Some(name) => f.write_str(name),
            None => write!(f, "CODE({})", self.0),
        }
    }
}
