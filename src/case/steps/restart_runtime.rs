//! `restart-runtime`: end the runtime and start it again.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Step, StepRules};
use crate::case::validate::{Surroundings, Walk};
use crate::case::{Need, Span};

/// End the runtime and start it again, by the user's commands. The event stream is closed before,
/// and a new one is opened and proven live after.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    default,
    rename_all = "kebab-case",
    expecting = "how it ends, as in `restart-runtime: {by: kill}`"
)]
pub struct RestartRuntimeStep {
    /// How it ends.
    #[serde(skip_serializing_if = "RuntimeEndSpec::is_stop")]
    pub by: RuntimeEndSpec,
    /// The longest time that a conformant runtime may take to stop.
    #[serde(with = "Span", skip_serializing_if = "Option::is_none")]
    pub within: Option<Duration>,
    /// How long it stays down, at least.
    #[serde(with = "Span", skip_serializing_if = "Option::is_none")]
    pub down: Option<Duration>,
    /// The event stream is opened again as KEP-3386 plans it for a kubelet: at once when the
    /// runtime has ended, and then after pauses of 1 s, 2 s, 4 s and so on. The first attempt must
    /// succeed before which the runtime has answered a list.
    pub back_off: bool,
    /// Steps that begin before it ends, and whose calls are under way then.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub during: Vec<Step>,
    /// Steps between its end and its start, which make no calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub meanwhile: Vec<Step>,
}

/// How the runtime ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "kebab-case",
    expecting = "how the runtime ends: `stop` or `kill`"
)]
pub enum RuntimeEndSpec {
    /// It is stopped, as by `systemctl stop`.
    #[default]
    Stop,
    /// It is killed by SIGKILL.
    Kill,
}

impl RuntimeEndSpec {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde passes a reference"
    )]
    fn is_stop(&self) -> bool {
        *self == Self::Stop
    }
}

impl StepRules for RestartRuntimeStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, around: Surroundings) {
        walk.without_listeners(around);
        walk.span("within", self.within);
        walk.span("down", self.down);
        if self.within.is_some() && self.by == RuntimeEndSpec::Kill {
            walk.object_to("within", "a runtime that is killed ends at once");
        }
        if !self.during.is_empty() {
            let at_once = Surroundings {
                parallel: true,
                ..around
            };
            walk.apart("during", &self.during, at_once);
        }
        if self.meanwhile.iter().any(|step| step.rules().makes_calls()) {
            walk.object_to("meanwhile", "no call can be made while the runtime is down")
                .advise("take such steps before or after");
        }
        if !self.meanwhile.is_empty() {
            walk.list("meanwhile", &self.meanwhile, around);
        }
    }

    fn needs(&self) -> Vec<Need> {
        match self.by {
            RuntimeEndSpec::Stop => vec![Need::RuntimeRestart],
            RuntimeEndSpec::Kill => vec![Need::RuntimeRestart, Need::RuntimeKill],
        }
    }

    fn inner(&self) -> Vec<&[Step]> {
        vec![&self.during, &self.meanwhile]
    }
}
