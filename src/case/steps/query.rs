//! What `on-event` and `poll-during` ask the runtime.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A call about a sandbox or container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "kebab-case",
    expecting = "what to ask: `containers`, `container-status`, `sandboxes` or `sandbox-status`"
)]
pub enum Query {
    /// `ListContainers` of its sandbox.
    Containers,
    /// `ContainerStatus` of the container.
    ContainerStatus,
    /// `ListPodSandbox` of its pod.
    Sandboxes,
    /// `PodSandboxStatus` of its sandbox.
    SandboxStatus,
}
