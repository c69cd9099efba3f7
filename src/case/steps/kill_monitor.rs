//! `kill-monitor`: kill the runtime's monitor of a container from the host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::StepRules;
use crate::case::Need;
use crate::case::validate::{Surroundings, Walk};

/// Kill the runtime's monitor of a container from the host: the parent of the container's process,
/// such as containerd-shim, which all containers of the sandbox share, or conmon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a container such as `{container: c}`"
)]
pub struct KillMonitorStep {
    /// The container.
    pub container: String,
    /// The container's process is killed as well, while the monitor is frozen: it does not notice.
    #[serde(default)]
    pub with_container: bool,
}

impl StepRules for KillMonitorStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, _: Surroundings) {
        walk.container("container", &self.container);
    }

    fn needs(&self) -> Vec<Need> {
        vec![Need::Monitor]
    }
}
