//! `kill-sandbox`: kill a sandbox's own process from the host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::StepRules;
use crate::case::Need;
use crate::case::validate::{Surroundings, Walk};

/// Kill a sandbox's own process from the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a sandbox such as `{sandbox: pod}`")]
pub struct KillSandboxStep {
    /// The sandbox.
    pub sandbox: String,
}

impl StepRules for KillSandboxStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, _: Surroundings) {
        walk.sandbox("sandbox", &self.sandbox);
    }

    fn makes_calls(&self) -> bool {
        false
    }

    fn needs(&self) -> Vec<Need> {
        vec![Need::HostPid]
    }
}
