//! `signal`: send a signal to a container's process from the host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::StepRules;
use crate::case::Need;
use crate::case::validate::{Surroundings, Walk};
use crate::history::Signal;

/// Send a signal to a container's process from the host, without waiting for what it does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a container and a signal such as `{container: c, signal: SIGTERM}`"
)]
pub struct SignalStep {
    /// The container.
    pub container: String,
    /// The signal.
    pub signal: ProcessSignal,
}

/// A signal that the host sends to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(expecting = "a signal such as `SIGTERM`")]
pub enum ProcessSignal {
    /// `SIGHUP`.
    #[serde(rename = "SIGHUP")]
    Hangup,
    /// `SIGQUIT`.
    #[serde(rename = "SIGQUIT")]
    Quit,
    /// `SIGKILL`, which ends every process.
    #[serde(rename = "SIGKILL")]
    Kill,
    /// `SIGUSR1`.
    #[serde(rename = "SIGUSR1")]
    User1,
    /// `SIGUSR2`.
    #[serde(rename = "SIGUSR2")]
    User2,
    /// `SIGTERM`.
    #[serde(rename = "SIGTERM")]
    Terminate,
    /// `SIGCONT`, which lets a frozen process run on.
    #[serde(rename = "SIGCONT")]
    Continue,
    /// `SIGSTOP`, which freezes every process.
    #[serde(rename = "SIGSTOP")]
    Stop,
}

impl From<ProcessSignal> for Signal {
    fn from(signal: ProcessSignal) -> Self {
        match signal {
            ProcessSignal::Hangup => Self::HANGUP,
            ProcessSignal::Quit => Self::QUIT,
            ProcessSignal::Kill => Self::KILL,
            ProcessSignal::User1 => Self::USER_1,
            ProcessSignal::User2 => Self::USER_2,
            ProcessSignal::Terminate => Self::TERMINATE,
            ProcessSignal::Continue => Self::CONTINUE,
            ProcessSignal::Stop => Self::STOP,
        }
    }
}

impl StepRules for SignalStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, _: Surroundings) {
        walk.container("container", &self.container);
    }

    fn needs(&self) -> Vec<Need> {
        vec![Need::ContainerPid]
    }
}
