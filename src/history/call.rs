//! RPCs as data: requests, replies and failures. A `Request` is one unary call of the CRI.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

#[cfg(test)]
use super::any;
use super::protobuf::{message, written_as};
use super::{
    ContainerId, ContainerListing, ContainerReport, ContainerSpec, ContainerState, ImageListing,
    Labels, NoEventCall, PodUid, SandboxId, SandboxListing, SandboxReport, SandboxState,
};
use crate::escape::printable;

/// One unary CRI call.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    Version,
    RunSandbox(Arc<SandboxSpec>),
    StopSandbox(SandboxId),
    RemoveSandbox(SandboxId),
    SandboxStatus(SandboxId),
    /// `ListPodSandbox` with these labels as filter.
    ListSandboxes(Labels),
    CreateContainer(Arc<ContainerSpec>),
    StartContainer(ContainerId),
    /// `StopContainer`; the runtime counts the grace period in whole seconds.
    StopContainer {
        container: ContainerId,
        /// Time between the stop signal and the kill.
        #[cfg_attr(test, arbitrary(with = any::seconds))]
        grace: Duration,
    },
    RemoveContainer(ContainerId),
    ContainerStatus(ContainerId),
    ListContainers {
        /// Only those of this sandbox.
        sandbox: Option<SandboxId>,
        /// Only those that carry all these labels.
        labels: Labels,
    },
    RuntimeStatus,
    /// `ListPodSandbox` or `StreamPodSandboxes` with any filter.
    FindSandboxes(SandboxFilter),
    /// `ListContainers` or `StreamContainers` with any filter.
    FindContainers(ContainerFilter),
    /// `ImageStatus` of a reference.
    ImageStatus(String),
    /// `PullImage` of a reference.
    PullImage(String),
    /// `RemoveImage` of a reference.
    RemoveImage(String),
    ListImages,
    /// `ExecSync`; the runtime counts the time-out in whole seconds.
    ExecSync {
        container: ContainerId,
        /// The whole command line.
        command: Vec<String>,
        /// How long the command may run.
        #[cfg_attr(test, arbitrary(with = any::seconds))]
        timeout: Duration,
    },
    /// `CheckpointContainer`: the container goes on.
    CheckpointContainer {
        container: ContainerId,
        /// The file that the runtime writes, as it sees it.
        location: String,
    },
    /// A call that changes no state, with the id of its subject; empty if that has none.
    #[cfg_attr(test, arbitrary(skip))]
    NoEventCall(NoEventCall, String),
}

impl Request {
    /// The CRI's name of the method.
    pub fn method(&self) -> &'static str {
        match self {
            Self::Version => "Version",
            Self::RunSandbox(_) => "RunPodSandbox",
            Self::StopSandbox(_) => "StopPodSandbox",
            Self::RemoveSandbox(_) => "RemovePodSandbox",
            Self::SandboxStatus(_) => "PodSandboxStatus",
            Self::FindSandboxes(filter) if filter.streamed => "StreamPodSandboxes",
            Self::ListSandboxes(_) | Self::FindSandboxes(_) => "ListPodSandbox",
            Self::CreateContainer(_) => "CreateContainer",
            Self::StartContainer(_) => "StartContainer",
            Self::StopContainer { .. } => "StopContainer",
            Self::RemoveContainer(_) => "RemoveContainer",
            Self::ContainerStatus(_) => "ContainerStatus",
            Self::FindContainers(filter) if filter.streamed => "StreamContainers",
            Self::ListContainers { .. } | Self::FindContainers(_) => "ListContainers",
            Self::RuntimeStatus => "Status",
            Self::ImageStatus(_) => "ImageStatus",
            Self::PullImage(_) => "PullImage",
            Self::RemoveImage(_) => "RemoveImage",
            Self::ListImages => "ListImages",
            Self::ExecSync { .. } => "ExecSync",
            Self::CheckpointContainer { .. } => "CheckpointContainer",
            Self::NoEventCall(call, _) => call.method(),
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
            Self::ListSandboxes(_) | Self::FindSandboxes(_) => "ListPodSandboxResponse",
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

/// What a call returned.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// The call returns nothing.
    Done,
    /// Of `Version`.
    Version(RuntimeVersion),
    /// Of `RunPodSandbox`.
    Sandbox(SandboxId),
    /// Of `CreateContainer`.
    Container(ContainerId),
    /// Of `PodSandboxStatus`.
    SandboxStatus(SandboxReport),
    /// Of `ContainerStatus`.
    ContainerStatus(ContainerReport),
    /// Of `ListPodSandbox`.
    Sandboxes(Vec<SandboxListing>),
    /// Of `ListContainers`.
    Containers(Vec<ContainerListing>),
    /// Of `ImageStatus`: absent if the runtime does not have the image.
    Image(Option<ImageListing>),
    /// Of `PullImage`: the reference by which containers name the image.
    Pulled(String),
    /// Of `ListImages`.
    Images(Vec<ImageListing>),
    /// Of `ExecSync`: the command's exit code.
    Exec(i32),
    /// Of `Status`.
    RuntimeStatus(RuntimeStatus),
}

impl Reply {
    /// The CRI's name of the response message; see [`Request::response`].
    pub fn response(&self) -> &'static str {
        match self {
            Self::Done => "",
            Self::Version(_) => "VersionResponse",
            Self::Sandbox(_) => "RunPodSandboxResponse",
            Self::Container(_) => "CreateContainerResponse",
            Self::SandboxStatus(_) => "PodSandboxStatusResponse",
            Self::ContainerStatus(_) => "ContainerStatusResponse",
            Self::Sandboxes(_) => "ListPodSandboxResponse",
            Self::Containers(_) => "ListContainersResponse",
            Self::Image(_) => "ImageStatusResponse",
            Self::Pulled(_) => "PullImageResponse",
            Self::Images(_) => "ListImagesResponse",
            Self::Exec(_) => "ExecSyncResponse",
            Self::RuntimeStatus(_) => "StatusResponse",
        }
    }
}

/// `runtime.v1.StatusResponse`, as far as the suite reads it.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuntimeStatus {
    /// The conditions that hold, such as `NetworkReady`.
    pub conditions: Vec<String>,
    /// The names of the handlers that sandboxes may ask for; the default one has none.
    pub handlers: Vec<String>,
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
