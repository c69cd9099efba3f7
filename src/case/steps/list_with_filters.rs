//! `list-with-filters`: list containers and sandboxes by each filter that the CRI has.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::StepRules;
use crate::case::Need;
use crate::case::validate::{Surroundings, Walk};

/// List a pod's sandboxes and containers by each filter that the CRI has: by id, state, sandbox and
/// labels, one at a time and some together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a sandbox such as `{sandbox: pod}`")]
pub struct ListWithFiltersStep {
    /// The sandbox.
    pub sandbox: String,
    /// Use the calls that stream lists (KEP-5825).
    #[serde(default)]
    pub streamed: bool,
}

impl StepRules for ListWithFiltersStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, _: Surroundings) {
        walk.sandbox("sandbox", &self.sandbox);
    }

    fn needs(&self) -> Vec<Need> {
        if self.streamed {
            vec![Need::StreamedLists]
        } else {
            Vec::new()
        }
    }
}
