//! What the kubelet believes of a pod once it has asked, or was told: the value of its cache.
//!
//! Source: kubernetes `pkg/kubelet/container/runtime.go` (`PodStatus`, `Status`).

use std::sync::Arc;

use super::moment::Moment;
use super::shared_id::{SharedId, SharedUid};
use super::state::State;
use crate::history::{SandboxState, Text};

/// A pod as the kubelet's cache holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodStatus {
    /// The pod's UID.
    pub uid: SharedUid,
    /// The pod's name.
    pub name: Text,
    /// The pod's namespace.
    pub namespace: Text,
    /// The pod's addresses, the primary one first.
    pub ips: Vec<String>,
    /// Its sandboxes.
    pub sandboxes: Vec<PodSandbox>,
    /// Its containers.
    pub containers: Vec<PodContainer>,
    /// Those of its containers that live in its newest, ready sandbox.
    pub active_containers: Vec<SharedId>,
    /// When the runtime read it; [`Moment::NEVER`] if an event told it.
    pub read_at: Moment,
}

impl PodStatus {
    /// Whether any of its sandboxes is ready.
    #[must_use]
    pub fn has_ready_sandbox(&self) -> bool {
        let mut sandboxes = self.sandboxes.iter();
        sandboxes.any(|sandbox| sandbox.state == SandboxState::Ready)
    }
}

/// A sandbox of a [`PodStatus`], as far as the kubelet's PLEGs read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodSandbox {
    /// Its id.
    pub id: SharedId,
    /// Ready or not.
    pub state: SandboxState,
    /// When it was made.
    pub created_at: Moment,
    /// How often the sandbox has been made anew for this pod.
    pub attempt: u32,
}

/// A container of a [`PodStatus`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodContainer {
    /// Its id.
    pub id: SharedId,
    /// Its name, from a label; empty without it.
    pub name: Text,
    /// Its state.
    pub state: State,
    /// When it was created.
    pub created_at: Moment,
    /// When it was started; [`Moment::NEVER`] while it is only created.
    pub started_at: Moment,
    /// When it exited; [`Moment::NEVER`] before.
    pub finished_at: Moment,
    /// How it exited; 0 before.
    pub exit_code: i32,
    /// The image as the user named it.
    pub image: Text,
    /// The image as the runtime resolved it.
    pub image_id: Text,
    /// How often it was restarted, from an annotation; 0 without it.
    pub restart_count: i32,
    /// The hash of its specification, from an annotation; 0 without it.
    pub hash: u64,
    /// A word for why it exited.
    pub reason: Text,
    /// A sentence for why it exited. The kubelet may append a termination message that it reads
    /// from a file; this engine reads no files.
    pub message: String,
}

/// What asking the runtime for one pod's status gave.
pub type Inspection = Result<Arc<PodStatus>, InspectError>;

/// Why a pod could not be inspected. `NotFound` is no reason: what is gone is left out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InspectError {
    /// A status call failed.
    #[error("{method} of {id}: {fault}")]
    Failed {
        /// The RPC's name in the CRI.
        method: &'static str,
        /// Whose status.
        id: SharedId,
        /// What the runtime said.
        fault: String,
    },
    /// A status call returned OK and no status.
    #[error("{method} of {id}: the runtime answered with OK and without a status")]
    Empty {
        /// The RPC's name in the CRI.
        method: &'static str,
        /// Whose status.
        id: SharedId,
    },
    /// The real kubelet is no more.
    #[error(transparent)]
    Panic(#[from] KubeletPanic),
}

/// A message that makes the real kubelet panic. Here it is a finding, and changes nothing.
///
/// An absent entry in a list of statuses would be a third one, but protobuf cannot express it: it
/// is for in-process callers alone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KubeletPanic {
    /// `kuberuntime_container.go` (`toKubeContainerStatus`) takes the image for granted.
    #[error("the status of container {container} has no image, and the kubelet dereferences it")]
    NoImage {
        /// The container.
        container: SharedId,
    },
    /// `evented.go` (`updateRunningPodMetric`) takes a cached status for granted, but a failed
    /// inspection has left none.
    #[error(
        "an event came for pod {pod}, whose last inspection failed, and the kubelet dereferences \
         the status that is not there"
    )]
    EventAfterFailedInspection {
        /// The pod.
        pod: SharedUid,
    },
}
