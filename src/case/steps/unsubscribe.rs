//! `unsubscribe`: give up a subscription of the case.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::StepRules;
use crate::case::validate::{Surroundings, Walk};

/// Close a subscription.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a subscription such as `{subscription: b}`"
)]
pub struct UnsubscribeStep {
    /// The subscription.
    pub subscription: String,
    /// Close its connection without cancelling the call, as when the subscriber is killed.
    #[serde(default)]
    pub hang_up: bool,
}

impl StepRules for UnsubscribeStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, _: Surroundings) {
        let shared = walk.subscription("subscription", &self.subscription) == Some(false);
        if self.hang_up && shared {
            walk.object_to("hang-up", "the connection is that of the calls")
                .advise("let the subscription have a connection of its own");
        }
    }

    fn check_without_events(&self, _: &mut Walk<'_, '_>) {}
}
