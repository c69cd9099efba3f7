//! `freeze-monitor`: take steps while the runtime's monitor of a container is frozen.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Step, StepRules};
use crate::case::Need;
use crate::case::validate::{Surroundings, Walk};

/// Take steps while the runtime's monitor of a container is frozen by SIGSTOP: the parent of the
/// container's process, such as containerd-shim, which all containers of the sandbox share, or
/// conmon. It is continued when they are over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a container and steps such as `{container: c, steps: […]}`"
)]
pub struct FreezeMonitorStep {
    /// The container.
    pub container: String,
    /// The steps.
    pub steps: Vec<Step>,
}

impl StepRules for FreezeMonitorStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, around: Surroundings) {
        walk.alone("the runtime may be slow for other cases, too");
        walk.container("container", &self.container);
        walk.steps(&self.steps, around);
    }

    fn needs(&self) -> Vec<Need> {
        vec![Need::Monitor]
    }

    fn inner(&self) -> Vec<&[Step]> {
        vec![&self.steps]
    }
}
