//! `stop-sandbox`: stop a sandbox.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::StepRules;
use crate::case::CallEdge;
use crate::case::validate::{Surroundings, Walk};

/// Stop a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a sandbox such as `{sandbox: pod}`")]
pub struct StopSandboxStep {
    /// The sandbox.
    pub sandbox: String,
}

impl StepRules for StopSandboxStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, _: Surroundings) {
        walk.sandbox("sandbox", &self.sandbox);
        walk.called(&self.sandbox, &[CallEdge::StopSandboxCalled]);
    }
}
