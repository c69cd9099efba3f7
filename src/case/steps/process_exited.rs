//! `gone`: a container's process has exited, as the host shows.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::StepRules;
use crate::case::validate::{Surroundings, Walk};
use crate::case::{Need, duration};

/// Look on the host whether a container's process is gone, which is a requirement of the case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a container such as `{container: c}`"
)]
pub struct ProcessExitedStep {
    /// Which container.
    pub container: String,
    /// How long a conformant runtime may take until it is; no time at all if absent.
    #[serde(
        default,
        with = "duration::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<duration::Text>")]
    pub within: Option<Duration>,
}

impl StepRules for ProcessExitedStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, _: Surroundings) {
        walk.container("container", &self.container);
        walk.span("within", self.within);
    }

    fn needs(&self) -> Vec<Need> {
        vec![Need::ContainerPid]
    }
}
