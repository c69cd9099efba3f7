//! `on-event`: take steps, and ask the runtime the moment an event arrives.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Query, Step, StepRules};
use crate::case::validate::{Surroundings, Walk};
use crate::case::{duration, event};
use crate::history::EventKind;

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
    pub read: Vec<Query>,
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

impl StepRules for OnEventStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, around: Surroundings) {
        walk.span("again", self.again);
        walk.queries(&self.of, &self.read);
        if !self.steps.is_empty() {
            walk.steps(&self.steps, around);
        }
    }

    fn inner(&self) -> Vec<&[Step]> {
        vec![&self.steps]
    }
}
