//! `exec`: run a command in a container.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CallOutcome, StepRules};
use crate::case::validate::{Surroundings, Walk};
use crate::case::{Need, Span, WorkloadSpec};

/// Run a command in a container, and wait for its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a command such as `{container: c, runs: {exit: {code: 1}}, timeout: 5s}`"
)]
pub struct ExecStep {
    /// The container.
    pub container: String,
    /// The command, as a workload. If it ends with another exit code than it declares, the case is
    /// inconclusive.
    pub runs: WorkloadSpec,
    /// The timeout of the call, in whole seconds.
    #[serde(with = "Span")]
    pub timeout: Duration,
    /// How the call ends: `success`, `failure` or `either`, where something else may make it fail.
    /// If a call succeeds that must fail, the case is skipped.
    #[serde(default)]
    pub expect: CallOutcome,
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
        walk.expectation(self.expect, None);
    }

    fn needs(&self) -> Vec<Need> {
        self.runs.needs()
    }
}
