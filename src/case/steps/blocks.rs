//! Blocks: steps that say how those inside them are taken.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Step, keys};
use crate::case::validate::{Context, Walk};
use crate::case::{Need, Span, limits};

keys! {
    /// One of several lists of steps that are taken concurrently.
    Branch: "steps such as `{steps: […]}`" {
        /// The steps.
        steps: Vec<Step>,
    }

    /// Take steps several times. Names bound inside are bound again in each round. Later steps
    /// cannot use them; in a check they mean the containers of all rounds.
    RepeatStep: "a mapping with `times` or `items`, and `steps`" {
        /// The number of rounds. Either this or `items`.
        times: Option<u32>,
        /// One round for each of these numbers; where a step takes a number, `item` is that of the
        /// innermost `repeat` with items.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        items: Vec<u8>,
        /// How many rounds may run concurrently.
        #[serde(default = "one")]
        workers: u32,
        /// The steps of a round.
        steps: Vec<Step>,
    }

    /// Take steps once for each runtime handler that `Status` reports. Their sandboxes have that
    /// handler.
    ForEachHandlerStep: "steps such as `{steps: […]}`" {
        /// The steps for each handler.
        steps: Vec<Step>,
    }

    /// Take steps as another client of the runtime, whose calls have a connection of their own.
    /// Relists use the run's own connection.
    AnotherClientStep: "steps such as `{steps: […]}`" {
        /// The steps.
        steps: Vec<Step>,
    }

    /// Take steps each call of which must return within a time. If one does not, the case fails.
    CallsReturnWithinStep: "a bound and steps such as `{time: 5s, steps: […]}`" {
        /// The longest time that a call of a conformant runtime may take.
        time: Duration,
        /// The steps.
        steps: Vec<Step>,
    }
}

/// Lists of steps that are taken concurrently. Names bound in one are local to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct ParallelStep {
    /// The lists.
    pub branches: Vec<Branch>,
}

impl ParallelStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        if self.branches.len() < 2 {
            walk.error("a block of one list has nothing to run in parallel");
        }
        for (index, branch) in self.branches.iter().enumerate() {
            walk.in_element(index, |walk| walk.nested_scope("steps", &branch.steps));
        }
    }
}

fn one() -> u32 {
    1
}

impl RepeatStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        let times = match (self.times, self.items.len()) {
            (Some(times), 0) => times,
            (None, items @ 1..) => u32::try_from(items).unwrap_or(u32::MAX),
            (Some(_), 1..) | (None, 0) => {
                walk.error("a `repeat` has either `times` or `items`");
                1
            }
        };
        let most = limits::ROUNDS;
        if !(1..=most).contains(&times) {
            let key = if self.times.is_some() {
                "times"
            } else {
                "items"
            };
            walk.error_at(key, format!("a `repeat` has from 1 to {most} rounds"));
        }
        let most = limits::WORKERS;
        if !(1..=most).contains(&self.workers) {
            walk.error_at("workers", format!("there are from 1 to {most} workers"));
        }
        walk.limit_nesting();
        let inner = Context {
            times: walk.around.times.saturating_mul(u64::from(times)),
            has_item: walk.around.has_item || !self.items.is_empty(),
            parallel: walk.around.parallel || self.workers > 1,
        };
        walk.within(inner, |walk| walk.nested_scope("steps", &self.steps));
    }
}

impl ForEachHandlerStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.needs([Need::Handlers]);
        walk.nested_scope("steps", &self.steps);
    }
}

impl AnotherClientStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.steps(&self.steps);
    }
}

impl CallsReturnWithinStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.span("time", Some(self.time));
        walk.steps(&self.steps);
    }
}
