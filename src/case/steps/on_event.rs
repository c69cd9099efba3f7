//! `on-event`: take steps, and ask the runtime the moment an event arrives.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Query, Step, StepRules};
use crate::case::validate::{Surroundings, Walk};
use crate::case::{Span, kind_words};
use crate::history::EventKind;

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
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, around: Surroundings) {
        walk.span("read-again-after", self.read_again_after);
        walk.queries(&self.of, &self.read);
        if !self.steps.is_empty() {
            walk.steps(&self.steps, around);
        }
    }

    fn inner(&self) -> Vec<&[Step]> {
        vec![&self.steps]
    }
}
