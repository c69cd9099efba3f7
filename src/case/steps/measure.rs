//! `measure`: count what the runtime or the case's pods hold.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Step, StepRules};
use crate::case::validate::{Surroundings, Walk};
use crate::case::{Need, Span};
use crate::history::Holder;

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
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, around: Surroundings) {
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
        if around.parallel {
            walk.object("other steps would change the numbers meanwhile")
                .advise("let it stand between the others");
        }
        walk.measured(self.of, around.times);
        if !self.steps.is_empty() {
            walk.steps(&self.steps, around);
        }
    }

    fn needs(&self) -> Vec<Need> {
        match self.of {
            Holder::Log => vec![Need::RuntimeLog],
            Holder::Runtime | Holder::Pods => vec![Need::RuntimeProcess],
        }
    }

    fn inner(&self) -> Vec<&[Step]> {
        vec![&self.steps]
    }
}
