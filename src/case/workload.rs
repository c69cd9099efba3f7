//! What the containers of a case run.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Need, Span};
use crate::history::Signal;

/// What a container does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "kebab-case",
    expecting = "a workload such as `until-term`, `{exit: …}` or `{allocate: …}`"
)]
pub enum WorkloadSpec {
    /// Exit by itself.
    Exit(ExitSpec),
    /// Exit by itself at a time counted from the case's first step.
    ExitAt(ExitAtSpec),
    /// Exit by itself, and leave an orphan behind that never exits.
    OrphanChild(ExitSpec),
    /// Die by the signal of a CPU fault.
    Die(DieSpec),
    /// Die by the signal of a CPU fault, and dump a core of 1 MiB.
    DumpCore(DieSpec),
    /// Run until SIGTERM, then exit 0 at once.
    UntilTerm,
    /// Ignore SIGTERM and run until SIGKILL.
    IgnoreTerm,
    /// Run until a signal arrives, then exit.
    UntilSignal(UntilSignalSpec),
    /// Allocate more memory than the limit allows.
    Allocate(AllocateSpec),
    /// Allocate more memory than the limit allows when SIGTERM arrives.
    AllocateOnTerm(AllocateOnTermSpec),
    /// Have a child process allocate more memory than the limit allows, and outlive it.
    AllocateInChild(AllocateInChildSpec),
    /// A program that the image does not have.
    MissingProgram,
    /// A file that is not executable.
    NotExecutable,
    /// Leave this number of zombies to the container's init, then do as `until-term`.
    Zombies(u32),
}

impl WorkloadSpec {
    /// What it needs beyond the socket.
    pub(super) fn needs(&self) -> Vec<Need> {
        match self {
            Self::DumpCore(_) => vec![Need::CorePipe],
            _ => Vec::new(),
        }
    }
}

/// Exit by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "an exit such as `{code: 42, after: 300ms}`"
)]
pub struct ExitSpec {
    /// The exit code.
    pub code: Number,
    /// The time after the start.
    #[serde(default)]
    pub after: Delay,
}

/// Exit by itself at a time counted from the case's first step, however late it was started:
/// containers with the same time exit together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "an exit such as `{code: 0, time: 8s}`"
)]
pub struct ExitAtSpec {
    /// The exit code.
    pub code: Number,
    /// The time after the case's first step.
    #[serde(with = "Span")]
    pub time: Duration,
}

/// Die by a signal, as the init of a container by that of a fault: the init of a container does not
/// die of other signals that it sends to itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a death such as `{signal: 11, after: 300ms}`"
)]
pub struct DieSpec {
    /// The signal: 4, 5, 7 or 11, for which every architecture has a fault; for a command in a
    /// container, any.
    pub signal: Number,
    /// The time after the start.
    #[serde(default)]
    pub after: Delay,
}

/// Run until a signal arrives, then exit with a code; SIGTERM and SIGINT end it with 143 and 130.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a signal and a code such as `{signal: SIGUSR1, code: 42}`"
)]
pub struct UntilSignalSpec {
    /// The signal.
    pub signal: StopSignal,
    /// The exit code.
    pub code: Number,
}

/// A signal by which a container can be stopped instead of SIGTERM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(expecting = "a signal such as `SIGUSR1`")]
pub enum StopSignal {
    /// `SIGHUP`.
    #[serde(rename = "SIGHUP")]
    Hangup,
    /// `SIGQUIT`.
    #[serde(rename = "SIGQUIT")]
    Quit,
    /// `SIGUSR1`.
    #[serde(rename = "SIGUSR1")]
    User1,
    /// `SIGUSR2`.
    #[serde(rename = "SIGUSR2")]
    User2,
}

impl StopSignal {
    /// Its number in Linux.
    pub fn number(self) -> u8 {
        match self {
            Self::Hangup => 1,
            Self::Quit => 3,
            Self::User1 => 10,
            Self::User2 => 12,
        }
    }
}

impl From<StopSignal> for Signal {
    fn from(signal: StopSignal) -> Self {
        match signal {
            StopSignal::Hangup => Self::HANGUP,
            StopSignal::Quit => Self::QUIT,
            StopSignal::User1 => Self::USER_1,
            StopSignal::User2 => Self::USER_2,
        }
    }
}

/// Allocate more memory than the limit allows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "an amount of memory such as `{mib: 64, after: 500ms}`"
)]
pub struct AllocateSpec {
    /// The amount of memory in MiB.
    pub mib: u32,
    /// The time after the start. A runtime watches for OOM kills only a little after it has started
    /// the container, so that an instant one tests something else.
    #[serde(with = "Span")]
    pub after: Duration,
}

/// Allocate more memory than the limit allows when SIGTERM arrives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "an amount of memory such as `{mib: 64}`"
)]
pub struct AllocateOnTermSpec {
    /// The amount of memory in MiB.
    pub mib: u32,
}

/// Have a child process allocate more memory than the limit allows, and outlive it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "an amount of memory such as `{mib: 64, after: 500ms, then: 1s, code: 0}`"
)]
pub struct AllocateInChildSpec {
    /// The amount of memory in MiB.
    pub mib: u32,
    /// The time after the start.
    #[serde(with = "Span")]
    pub after: Duration,
    /// The time that the container runs after the child's death.
    #[serde(with = "Span")]
    pub then: Duration,
    /// The exit code.
    pub code: Number,
}

/// A number, or the current item of the `repeat` around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    Given(u8),
    /// The item whose turn it is.
    Item,
}

/// A span of time, or as many milliseconds as the current item of the `repeat` around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delay {
    Given(Duration),
    /// The item whose turn it is, in milliseconds.
    Item,
}

impl Default for Delay {
    fn default() -> Self {
        Self::Given(Duration::ZERO)
    }
}
