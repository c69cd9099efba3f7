//! `process-exited`: a container's process has exited, as the host shows.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::StepRules;
use crate::case::validate::{Surroundings, Walk};
use crate::case::{Need, Span};

/// Wait until the host shows no process of a container. If one lives on, the case fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a container such as `{container: c}`"
)]
pub struct ProcessExitedStep {
    /// The container.
    pub container: String,
    /// The longest time that a conformant runtime may take; none if absent.
    #[serde(default, with = "Span", skip_serializing_if = "Option::is_none")]
    pub within: Option<Duration>,
}

impl StepRules for ProcessExitedStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, _: Surroundings) {
        walk.container("container", &self.container);
        walk.span("within", self.within);
    }

    fn makes_calls(&self) -> bool {
        false
    }

    fn needs(&self) -> Vec<Need> {
        vec![Need::ContainerPid]
    }
}
