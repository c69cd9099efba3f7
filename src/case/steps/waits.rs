//! Steps that wait: for an event, for an end, for an exit, for silence.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Step, StepRules};
use crate::case::validate::Walk;
use crate::case::{Need, Span, kind_words};
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
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.sandbox_or_container("of", &self.of);
        walk.span("within", self.within);
        if self.within.is_some_and(|within| within.is_zero()) {
            walk.object_to("within", "no event arrives within no time");
        }
    }
}

/// Wait until the runtime has ended a subscription. If it does not, the case fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a subscription such as `{of: b, within: 5s}`"
)]
pub struct AwaitEndStep {
    /// The subscription.
    pub of: String,
    /// The longest time that a conformant runtime may take.
    #[serde(with = "Span")]
    pub within: Duration,
}

impl StepRules for AwaitEndStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.subscription("of", &self.of);
        walk.span("within", Some(self.within));
    }

    fn works_without_events(&self) -> bool {
        true
    }
}

/// Wait until the host shows no process of a container. If one lives on, the case fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a container such as `{container: c}`"
)]
pub struct ProcessExitedStep {
    /// The container.
    pub container: String,
    /// The longest time that a conformant runtime may take; none if absent.
    #[serde(default, with = "Span", skip_serializing_if = "Option::is_none")]
    pub within: Option<Duration>,
}

impl StepRules for ProcessExitedStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.needs([Need::ContainerPid]);
        walk.container("container", &self.container);
        walk.span("within", self.within);
    }

    fn makes_calls(&self) -> bool {
        false
    }
}

/// Wait for a time in which no event may arrive on any stream, and no stream may end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a time such as `{for: 5s}`")]
pub struct StaysSilentStep {
    /// The time, from the end of the steps.
    #[serde(rename = "for", with = "Span")]
    pub time: Duration,
    /// Steps that come first, and cause no event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
}

impl StepRules for StaysSilentStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.alone("other cases would not be quiet meanwhile");
        walk.span("for", Some(self.time));
        if walk.around.parallel {
            walk.object("other steps would not be quiet meanwhile")
                .advise("let it stand between the others");
        }
        walk.optional("steps", &self.steps);
    }
}
