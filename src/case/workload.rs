//! What the containers of a case run.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Need, duration};
use crate::history::Signal;

/// What a container does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "kebab-case",
    expecting = "a workload such as `obey`, `{exit: …}` or `{eat: …}`"
)]
pub enum WorkloadSpec {
    /// Exit by itself.
    Exit(ExitSpec),
    /// Exit by itself at a time of the case.
    ExitAt(ExitAtSpec),
    /// Exit by itself and leave a child behind that would live for ever.
    Leave(ExitSpec),
    /// Die by the signal of a fault.
    Die(DieSpec),
    /// Die so and leave a core of a MiB, which whoever takes it has to read.
    Dump(DieSpec),
    /// Run until SIGTERM, then exit 0 at once.
    Obey,
    /// Ignore SIGTERM and run until killed.
    Ignore,
    /// Exit when a signal comes.
    Heed(HeedSpec),
    /// Use memory beyond any limit.
    Eat(EatSpec),
    /// Use memory beyond any limit once SIGTERM has come.
    EatOnTerm(EatOnTermSpec),
    /// Have a child use memory beyond any limit, and outlive it.
    ChildEat(ChildEatSpec),
    /// A program that the image does not have.
    Missing,
    /// A file that nobody may execute.
    NoProgram,
    /// Leave so many zombies to the container's init, then do as `obey`.
    Zombies(u32),
}

impl WorkloadSpec {
    /// What it needs beyond the socket.
    pub(super) fn needs(&self) -> Vec<Need> {
        match self {
            Self::Dump(_) => vec![Need::CorePipe],
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
    /// With which code.
    pub code: Number,
    /// How long after the start.
    #[serde(default)]
    pub after: Delay,
}

/// Exit by itself at a time of the case, however late it was started: what has the same time exits
/// at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "an exit such as `{code: 0, time: 8s}`"
)]
pub struct ExitAtSpec {
    /// With which code.
    pub code: Number,
    /// How long after the case's first step.
    #[serde(with = "duration")]
    #[schemars(with = "duration::Text")]
    pub time: Duration,
}

/// Die by a signal, in a container by that of a fault. No other signal can be told apart from an
/// exit: the init of a container dies of no signal that it sends to itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a death such as `{signal: 11, after: 300ms}`"
)]
pub struct DieSpec {
    /// By which signal: 4, 5, 7 or 11, which every architecture has a fault for; as a command in a
    /// container, any.
    pub signal: Number,
    /// How long after the start.
    #[serde(default)]
    pub after: Delay,
}

/// Exit when a signal comes, with a code of its own; SIGTERM and SIGINT end it with 143 and 130.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a signal and a code such as `{signal: SIGUSR1, code: 42}`"
)]
pub struct HeedSpec {
    /// Which signal.
    pub signal: StopSignal,
    /// With which code.
    pub code: Number,
}

/// A signal by which a container can be stopped, beside the usual SIGTERM.
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
    #[must_use]
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

/// Use memory beyond any limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "an appetite such as `{mib: 64, after: 500ms}`"
)]
pub struct EatSpec {
    /// How many MiB to touch.
    pub mib: u32,
    /// How long after the start. A runtime watches for OOM kills only a little after it has started
    /// the container, so that an instant one tests something else.
    #[serde(with = "duration")]
    #[schemars(with = "duration::Text")]
    pub after: Duration,
}

/// Use memory beyond any limit once SIGTERM has come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "an appetite such as `{mib: 64}`"
)]
pub struct EatOnTermSpec {
    /// How many MiB to touch.
    pub mib: u32,
}

/// Have a child use memory beyond any limit, and outlive it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "an appetite such as `{mib: 64, after: 500ms, then: 1s, code: 0}`"
)]
pub struct ChildEatSpec {
    /// How many MiB the child touches.
    pub mib: u32,
    /// How long after the start.
    #[serde(with = "duration")]
    #[schemars(with = "duration::Text")]
    pub after: Duration,
    /// How long the container runs after the child's death.
    #[serde(with = "duration")]
    #[schemars(with = "duration::Text")]
    pub then: Duration,
    /// With which code it then exits.
    pub code: Number,
}

/// A number, or the current item of the `repeat` around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// This number.
    Given(u8),
    /// The item whose turn it is.
    Item,
}

/// A span of time, or as many milliseconds as the current item of the `repeat` around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delay {
    /// So long.
    Given(Duration),
    /// The item whose turn it is, in milliseconds.
    Item,
}

impl Default for Delay {
    fn default() -> Self {
        Self::Given(Duration::ZERO)
    }
}
