//! `pause`: take steps while a container is paused from the host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Step, StepRules};
use crate::case::Need;
use crate::case::validate::{Surroundings, Walk};

/// Take steps while a container is paused, which the CRI has no call for: the freezer of its cgroup
/// holds its processes, as `runc pause` has it do. With cgroup v1 not even SIGKILL ends them. They
/// run on when the steps are over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a container and steps such as `{container: c, steps: […]}`"
)]
pub struct PauseStep {
    /// The container.
    pub container: String,
    /// The steps.
    pub steps: Vec<Step>,
}

impl StepRules for PauseStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, around: Surroundings) {
        walk.container("container", &self.container);
        walk.steps(&self.steps, around);
    }

    fn needs(&self) -> Vec<Need> {
        vec![Need::ContainerPid]
    }

    fn makes_calls(&self) -> bool {
        false
    }

    fn inner(&self) -> Vec<&[Step]> {
        vec![&self.steps]
    }
}
