//! `kill`: kill a container's process from the host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::StepRules;
use crate::case::Need;
use crate::case::validate::{Surroundings, Walk};

/// Kill a container's process from the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a container such as `{container: c}`"
)]
pub struct KillStep {
    /// The container.
    pub container: String,
}

impl StepRules for KillStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, _: Surroundings) {
        walk.container("container", &self.container);
    }

    fn makes_calls(&self) -> bool {
        false
    }

    fn needs(&self) -> Vec<Need> {
        vec![Need::ContainerPid]
    }
}
