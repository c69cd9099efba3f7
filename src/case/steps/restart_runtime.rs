//! `restart-runtime`: stop the runtime and start it again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::StepRules;
use crate::case::Need;
use crate::case::validate::{Surroundings, Walk};

/// Stop the runtime and start it again, by the user's commands. The event stream is closed before,
/// and a new one is opened and proven live after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "nothing, as in `restart-runtime: {}`"
)]
pub struct RestartRuntimeStep {}

impl StepRules for RestartRuntimeStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, around: Surroundings) {
        walk.without_listeners(around);
    }

    fn needs(&self) -> Vec<Need> {
        vec![Need::RuntimeRestart]
    }
}
