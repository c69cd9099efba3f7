//! `meanwhile`: take steps, and ask the runtime repeatedly until they are over.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Query, Step, StepRules};
use crate::case::validate::{Surroundings, Walk};

/// Take steps, and read all the while, and once more when they are over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "what to read during which steps, such as `{of: pod, read: [sandbox-status], steps: […]}`"
)]
pub struct PollDuringStep {
    /// The sandbox or container to ask about, which exists already.
    pub of: String,
    /// What to ask, one after the other.
    pub read: Vec<Query>,
    /// What to do meanwhile.
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
