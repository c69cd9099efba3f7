//! `parallel`: take lists of steps concurrently.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Step, StepRules};
use crate::case::validate::{Surroundings, Walk};

/// Lists of steps that are taken concurrently. Names bound in one stand for nothing outside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct ParallelStep {
    /// The lists.
    pub branches: Vec<Branch>,
}

/// One of several lists of steps that are taken concurrently.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "steps such as `{steps: […]}`")]
pub struct Branch {
    /// The steps.
    pub steps: Vec<Step>,
}

impl StepRules for ParallelStep {
    fn is_block(&self) -> bool {
        true
    }

    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, around: Surroundings) {
        if self.branches.len() < 2 {
            walk.object("a block of one list has nothing to run in parallel");
        }
        for (index, branch) in self.branches.iter().enumerate() {
            walk.in_element(index, |walk| walk.apart("steps", &branch.steps, around));
        }
    }

    fn inner(&self) -> Vec<&[Step]> {
        let branches = self.branches.iter();
        branches.map(|branch| branch.steps.as_slice()).collect()
    }
}
