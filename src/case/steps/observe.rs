//! Steps that read what the runtime reports or holds.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Step, StepRules};
use crate::case::validate::Walk;
use crate::case::{Need, Span, kind_words};
use crate::history::{EventKind, Holder};

/// List a sandbox's containers and read the status of each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a sandbox such as `{sandbox: pod}`")]
pub struct RelistStep {
    /// The sandbox.
    pub sandbox: String,
}

impl StepRules for RelistStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.sandbox("sandbox", &self.sandbox);
        walk.names.relisted(&self.sandbox);
    }
}

/// List a pod's sandboxes and containers by each filter that the CRI has: by id, state, sandbox and
/// labels, one at a time and some together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a sandbox such as `{sandbox: pod}`")]
pub struct ListWithFiltersStep {
    /// The sandbox.
    pub sandbox: String,
    /// Use the calls that stream lists (KEP-5825).
    #[serde(default)]
    pub streamed: bool,
}

impl StepRules for ListWithFiltersStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.needs(self.streamed.then_some(Need::StreamedLists));
        walk.sandbox("sandbox", &self.sandbox);
    }
}

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

/// Take steps, and ask the runtime the moment an event arrives. The step ends when both are done.
/// If the event does not arrive within the event timeout after the steps, the case fails.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "an event and what to read then, such as `{of: c, event: stopped, read: [containers]}`"
)]
pub struct OnEventStep {
    /// The sandbox or container that the event is about. It must exist already.
    pub of: String,
    /// The event.
    #[serde(deserialize_with = "kind_words::one")]
    #[schemars(with = "kind_words::Word")]
    pub event: EventKind,
    /// The calls to make then, one after the other.
    pub read: Vec<Query>,
    /// How much later to make the same calls once more.
    #[serde(default, with = "Span", skip_serializing_if = "Option::is_none")]
    pub read_again_after: Option<Duration>,
    /// The steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
}

impl StepRules for OnEventStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.span("read-again-after", self.read_again_after);
        walk.queries(&self.of, &self.read);
        walk.optional("steps", &self.steps);
    }
}

/// Take steps, and make calls repeatedly until the steps are over, and once more then.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "what to read during which steps, such as `{of: pod, read: [sandbox-status], steps: […]}`"
)]
pub struct PollDuringStep {
    /// The sandbox or container that the calls are about. It must exist already.
    pub of: String,
    /// The calls to make, one after the other.
    pub read: Vec<Query>,
    /// The steps.
    pub steps: Vec<Step>,
}

impl StepRules for PollDuringStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.queries(&self.of, &self.read);
        walk.steps(&self.steps);
    }
}

/// Count what the process of the runtime or the pods of the case hold, for a `no-growth` check.
/// Where pods of others are, the numbers of the runtime prove nothing: the case is inconclusive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a holder such as `{of: runtime}`")]
pub struct MeasureStep {
    /// Whose resources. The case is inconclusive if none is seen of those that its pods use now:
    /// of `pods` if it has containers, and of network namespaces if a sandbox has its own network.
    pub of: Holder,
    /// How long the runtime may take to release what it held more of than at the first such step;
    /// memory is not waited for. At once if absent.
    #[serde(default, with = "Span", skip_serializing_if = "Option::is_none")]
    pub within: Option<Duration>,
    /// Of the `log`: the steps during which lines are counted. Nothing else is counted over steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
}

impl StepRules for MeasureStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.needs([match self.of {
            Holder::Log => Need::RuntimeLog,
            Holder::Runtime | Holder::Pods => Need::RuntimeProcess,
        }]);
        walk.span("within", self.within);
        if self.of != Holder::Pods {
            walk.alone("other cases would use the runtime, too");
        }
        match (self.of, self.steps.is_empty()) {
            (Holder::Log, true) => walk
                .object("lines are counted that are logged during steps, and there are none")
                .advise("add `steps`"),
            (Holder::Runtime | Holder::Pods, false) => walk
                .object_to("steps", "what is held is counted at a moment")
                .advise("take the steps before or after"),
            _ => {}
        }
        if self.of == Holder::Log && self.within.is_some() {
            walk.object_to("within", "no line of a log is released");
        }
        if walk.around.parallel {
            walk.object("other steps would change the numbers meanwhile")
                .advise("let it stand between the others");
        }
        walk.names.measured(self.of, walk.around.times);
        walk.optional("steps", &self.steps);
    }
}
