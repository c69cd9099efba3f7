//! Steps that ask the runtime what there is, at the moment of an event or while other steps go on.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Step, duration, event};
use crate::history::EventKind;

/// Something to ask about a sandbox or container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "kebab-case",
    expecting = "what to ask: `containers`, `container-status`, `sandboxes` or `sandbox-status`"
)]
pub enum Read {
    /// `ListContainers` of its sandbox.
    Containers,
    /// `ContainerStatus` of the container.
    ContainerStatus,
    /// `ListPodSandbox` of its pod.
    Sandboxes,
    /// `PodSandboxStatus` of its sandbox.
    SandboxStatus,
}

/// Take steps, and read the moment an event arrives. The step is over when both are; that the
/// event comes, by its time-out after the steps, is a requirement of the case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "an event and what to read then, such as `{of: c, event: stopped, read: [containers]}`"
)]
pub struct OnEventStep {
    /// The sandbox or container that the event is about, which exists already.
    pub of: String,
    /// Which event.
    #[serde(deserialize_with = "event::one")]
    #[schemars(with = "event::Word")]
    pub event: EventKind,
    /// What to ask then, one after the other.
    pub read: Vec<Read>,
    /// To ask the same again so much later.
    #[serde(
        default,
        with = "duration::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "duration::Text")]
    pub again: Option<Duration>,
    /// What to do meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
}

/// Take steps, and read all the while, and once more when they are over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "what to read during which steps, such as `{of: pod, read: [sandbox-status], steps: […]}`"
)]
pub struct MeanwhileStep {
    /// The sandbox or container to ask about, which exists already.
    pub of: String,
    /// What to ask, one after the other.
    pub read: Vec<Read>,
    /// What to do meanwhile.
    pub steps: Vec<Step>,
}

/// List a pod's sandboxes and containers by each filter that the CRI has: by id, state, sandbox and
/// labels, one at a time and some together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a sandbox such as `{sandbox: pod}`")]
pub struct FiltersStep {
    /// The sandbox.
    pub sandbox: String,
    /// By the calls that stream lists.
    #[serde(default)]
    pub streamed: bool,
}
