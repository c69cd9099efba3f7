//! A pod's status in the kubelet's cache.
//!
//! Source: kubernetes `pkg/kubelet/container/runtime.go` (`PodStatus`, `Status`).

use std::sync::Arc;

use super::moment::Moment;
use super::shared_id::{SharedId, SharedUid};
use super::state::State;
use crate::history::{SandboxState, Text};

/// A pod as in the kubelet's cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodStatus {
    pub uid: SharedUid,
    pub name: Text,
    pub namespace: Text,
    /// The pod's addresses, the primary one first.
    pub ips: Vec<String>,
    pub sandboxes: Vec<PodSandbox>,
    pub containers: Vec<PodContainer>,
    /// The containers in its newest, ready sandbox.
    pub active_containers: Vec<SharedId>,
    /// The time at which the runtime read it; [`Moment::NEVER`] if it is from an event.
    pub read_at: Moment,
}

impl PodStatus {
    /// Whether any of its sandboxes is ready.
    pub fn has_ready_sandbox(&self) -> bool {
        let mut sandboxes = self.sandboxes.iter();
        sandboxes.any(|sandbox| sandbox.state == SandboxState::Ready)
    }
}

/// A sandbox of a [`PodStatus`], as far as the kubelet's PLEGs read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodSandbox {
    pub id: SharedId,
    pub state: SandboxState,
    pub created_at: Moment,
    /// The number of sandboxes created for this pod before.
    pub attempt: u32,
}

/// A container of a [`PodStatus`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodContainer {
    pub id: SharedId,
    /// Its name, from a label; empty without it.
    pub name: Text,
    pub state: State,
    pub created_at: Moment,
    /// [`Moment::NEVER`] while it is only created.
    pub started_at: Moment,
    /// [`Moment::NEVER`] before its exit.
    pub finished_at: Moment,
    /// 0 before its exit.
    pub exit_code: i32,
    /// The image as the user named it.
    pub image: Text,
    /// The image as the runtime resolved it.
    pub image_id: Text,
    /// The number of restarts, from an annotation; 0 without it.
    pub restart_count: i32,
    /// The hash of its specification, from an annotation; 0 without it.
    pub hash: u64,
    /// The reason for its exit.
    pub reason: Text,
    /// The message on its exit. The kubelet may append a termination message that it reads
    /// from a file; this engine reads no files.
    pub message: String,
}

pub type Inspection = Result<Arc<PodStatus>, InspectError>;

/// The reason why a pod could not be inspected. `NotFound` is no error: deleted objects are left
/// out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InspectError {
    #[error("{method} of {id}: {fault}")]
    Failed {
        /// The RPC's name in the CRI.
        method: &'static str,
        id: SharedId,
        fault: String,
    },
    /// A status call returned OK and no status.
    #[error("{method} of {id}: the runtime answered with OK and without a status")]
    Empty {
        /// The RPC's name in the CRI.
        method: &'static str,
        id: SharedId,
    },
    /// The real kubelet would panic.
    #[error(transparent)]
    Panic(#[from] KubeletPanic),
}

/// A message that makes the real kubelet panic. Here it is an error and changes no state.
///
/// A null entry in a list of statuses would be a third one, but protobuf cannot express it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KubeletPanic {
    /// `kuberuntime_container.go` (`toKubeContainerStatus`) dereferences the image without a check.
    #[error("the status of container {container} has no image, and the kubelet dereferences it")]
    NoImage { container: SharedId },
    /// `evented.go` (`updateRunningPodMetric`) dereferences the cached status without a check, but
    /// a failed inspection leaves none.
    #[error(
        "an event came for pod {pod}, whose last inspection failed, and the kubelet dereferences \
         the status that is not there"
    )]
    EventAfterFailedInspection { pod: SharedUid },
}
