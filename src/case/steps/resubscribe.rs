//! `resubscribe`: give up the event stream and open a new one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Step, StepRules};
use crate::case::validate::{Surroundings, Walk};

/// Close the event stream and open a new one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "nothing, as in `resubscribe: {}`")]
pub struct ResubscribeStep {
    /// Steps between the two, while the run does not listen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub meanwhile: Vec<Step>,
}

impl StepRules for ResubscribeStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, around: Surroundings) {
        walk.without_listeners(around);
        if !self.meanwhile.is_empty() {
            walk.list("meanwhile", &self.meanwhile, around);
        }
    }

    fn inner(&self) -> Vec<&[Step]> {
        vec![&self.meanwhile]
    }
}
