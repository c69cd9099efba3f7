//! `poll-during`: take steps, and ask the runtime repeatedly until they are over.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Query, Step, StepRules};
use crate::case::validate::{Surroundings, Walk};

/// Take steps, and make calls repeatedly until the steps are over, and once more then.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "what to read during which steps, such as `{of: pod, read: [sandbox-status], steps: […]}`"
)]
pub struct PollDuringStep {
    /// The sandbox or container that the calls are about. It must exist already.
    pub of: String,
    /// The calls to make, one after the other.
    pub read: Vec<Query>,
    /// The steps.
    pub steps: Vec<Step>,
}

impl StepRules for PollDuringStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, around: Surroundings) {
        walk.queries(&self.of, &self.read);
        walk.steps(&self.steps, around);
    }

    fn inner(&self) -> Vec<&[Step]> {
        vec![&self.steps]
    }
}
