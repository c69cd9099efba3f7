//! `await`: wait until an event has arrived.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::StepRules;
use crate::case::validate::{Surroundings, Walk};
use crate::case::{Span, kind_words};
use crate::history::EventKind;

/// Wait until an event has arrived. If it does not, the case fails; but if it is STOPPED and the
/// container still runs, the case is inconclusive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "an event such as `{of: c, event: started}`"
)]
pub struct AwaitStep {
    /// The sandbox or container that the event is about.
    pub of: String,
    /// The event.
    #[serde(deserialize_with = "kind_words::one")]
    #[schemars(with = "kind_words::Word")]
    pub event: EventKind,
    /// The longest time that a conformant runtime may take; the event timeout of the run if absent.
    #[serde(default, with = "Span", skip_serializing_if = "Option::is_none")]
    pub within: Option<Duration>,
}

impl StepRules for AwaitStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, _: Surroundings) {
        walk.sandbox_or_container("of", &self.of);
        walk.span("within", self.within);
        if self.within.is_some_and(|within| within.is_zero()) {
            walk.object_to("within", "no event arrives within no time");
        }
    }
}
