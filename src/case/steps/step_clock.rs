//! `step-clock`: take steps while the host's wall clock is wrong.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Step, StepRules};
use crate::case::validate::{Surroundings, Walk};
use crate::case::{Need, Span, limits};

/// Take steps while the host's wall clock is wrong. It is set right when they are over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a step of the clock such as `{back: 10s, steps: […]}`"
)]
pub struct StepClockStep {
    /// How far it is set back.
    #[serde(default, with = "Span", skip_serializing_if = "Option::is_none")]
    pub back: Option<Duration>,
    /// How far it is set forward.
    #[serde(default, with = "Span", skip_serializing_if = "Option::is_none")]
    pub forward: Option<Duration>,
    /// The steps.
    pub steps: Vec<Step>,
}

impl StepClockStep {
    /// The change of the clock in nanoseconds; negative for back.
    pub fn by_ns(&self) -> i64 {
        let ns = |span: Option<Duration>| {
            let ns = span.unwrap_or_default().as_nanos();
            i64::try_from(ns).unwrap_or(i64::MAX)
        };
        ns(self.forward).saturating_sub(ns(self.back))
    }
}

impl StepRules for StepClockStep {
    fn is_block(&self) -> bool {
        true
    }

    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, around: Surroundings) {
        walk.alone("the clock would be wrong for other cases, too");
        if self.back.is_some() == self.forward.is_some() {
            walk.object("the clock is set either `back` or `forward`");
        }
        let most = limits::CLOCK_STEP;
        for (key, span) in [("back", self.back), ("forward", self.forward)] {
            if span.is_some_and(|span| span > most) {
                let message = format!("the clock can be wrong by {most:?} at most");
                walk.object_to(key, message);
            }
        }
        walk.steps(&self.steps, around);
    }

    fn needs(&self) -> Vec<Need> {
        vec![Need::ClockSteps]
    }

    fn inner(&self) -> Vec<&[Step]> {
        vec![&self.steps]
    }
}
