//! `await-end`: wait until the runtime has ended a subscription.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::StepRules;
use crate::case::Span;
use crate::case::validate::{Surroundings, Walk};

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
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, _: Surroundings) {
        walk.subscription("of", &self.of);
        walk.span("within", Some(self.within));
    }

    fn check_without_events(&self, _: &mut Walk<'_, '_>) {}
}
