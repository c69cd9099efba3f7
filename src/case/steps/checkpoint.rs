//! `checkpoint`: make a checkpoint of a container.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::StepRules;
use crate::case::Need;
use crate::case::validate::{Surroundings, Walk};

/// Make a checkpoint of a container, which runs on: `CheckpointContainer`. The runtime writes it
/// into the run's folder of logs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a container such as `{container: c}`"
)]
pub struct CheckpointStep {
    /// The container.
    pub container: String,
}

impl StepRules for CheckpointStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, _: Surroundings) {
        walk.container("container", &self.container);
        walk.makes_checkpoint(&self.container);
    }

    fn needs(&self) -> Vec<Need> {
        vec![Need::Checkpoint]
    }
}
