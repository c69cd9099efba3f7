//! `exec`: run a command in a container.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CallExpectation, StepRules};
use crate::case::validate::{Surroundings, Walk};
use crate::case::{Need, WorkloadSpec, duration};

/// Run a command in a container, and wait for its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a command such as `{container: c, runs: {exit: {code: 1}}, timeout: 5s}`"
)]
pub struct ExecStep {
    /// In which container.
    pub container: String,
    /// What the command does. If it declares an exit code and the call tells another, the case is
    /// inconclusive.
    pub runs: WorkloadSpec,
    /// How long it may run; whole seconds.
    #[serde(with = "duration")]
    #[schemars(with = "duration::Text")]
    pub timeout: Duration,
    /// The call must fail, as it does when the time is over.
    #[serde(default)]
    pub fails: bool,
    /// Something else may end the command: whatever the call returns is right.
    #[serde(default)]
    pub races: bool,
}

impl ExecStep {
    /// How the call may end.
    #[must_use]
    pub fn expectation(&self) -> CallExpectation {
        CallExpectation::from_keys(self.fails, self.races, None)
    }
}

impl StepRules for ExecStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, around: Surroundings) {
        let limit = walk.container("container", &self.container);
        walk.command("runs", &self.runs, limit, around);
        if self.timeout.subsec_nanos() != 0 || self.timeout.is_zero() {
            let message = "a command's time is in whole seconds, one or more";
            walk.object_to("timeout", message)
                .advise("the CRI counts it in seconds");
        }
        walk.span("timeout", Some(self.timeout));
    }

    fn needs(&self) -> Vec<Need> {
        self.runs.needs()
    }
}
