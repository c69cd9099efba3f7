//! `fill-disk`: take steps while a monitor of the runtime cannot write.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Step, StepRules};
use crate::case::Need;
use crate::case::validate::{Surroundings, Walk};

/// Take steps while the file system is full on which the runtime's monitor of a container writes:
/// conmon the exit code, containerd-shim what it keeps of the sandbox. It has room again when they
/// are over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a container and steps such as `{container: c, steps: […]}`"
)]
pub struct FillDiskStep {
    /// The container.
    pub container: String,
    /// The steps.
    pub steps: Vec<Step>,
}

impl StepRules for FillDiskStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, around: Surroundings) {
        walk.alone("other cases would have no room, either");
        walk.container("container", &self.container);
        walk.steps(&self.steps, around);
    }

    fn needs(&self) -> Vec<Need> {
        vec![Need::SmallDisk]
    }

    fn inner(&self) -> Vec<&[Step]> {
        vec![&self.steps]
    }
}
