//! Checks of what events tell, against what was asked for and what the runtime answers.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{duration, event};
use crate::history::{EventKind, SandboxState};

/// From an event on, every list and status shows as much as it tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "an event such as `{of: c, event: stopped}`"
)]
pub struct ShownCheck {
    /// The sandbox or container.
    pub of: String,
    /// The event.
    #[serde(deserialize_with = "event::one")]
    #[schemars(with = "event::Word")]
    pub event: EventKind,
    /// What is asked sooner than this after the event's arrival does not count.
    #[serde(
        default,
        with = "duration::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "duration::Text")]
    pub within: Option<Duration>,
}

/// The state of its sandbox that an event shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a state such as `{of: pod, event: stopped, is: notready}`"
)]
pub struct SandboxStateCheck {
    /// The sandbox or container.
    pub of: String,
    /// The event.
    #[serde(deserialize_with = "event::one")]
    #[schemars(with = "event::Word")]
    pub event: EventKind,
    /// The state of the sandbox.
    pub is: SandboxWord,
}

/// A state of a sandbox, in the CRI's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "lowercase",
    expecting = "a state of a sandbox: `ready` or `notready`"
)]
pub enum SandboxWord {
    /// `SANDBOX_READY`.
    Ready,
    /// `SANDBOX_NOTREADY`.
    NotReady,
}

impl From<SandboxWord> for SandboxState {
    fn from(word: SandboxWord) -> Self {
        match word {
            SandboxWord::Ready => Self::Ready,
            SandboxWord::NotReady => Self::NotReady,
        }
    }
}

/// How long after its making an event arrives, over all sandboxes or containers of the name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a latency such as `{of: c, event: stopped, median: 100ms, p99: 1s}`"
)]
pub struct LatencyCheck {
    /// The sandboxes or containers.
    pub of: String,
    /// The event.
    #[serde(deserialize_with = "event::one")]
    #[schemars(with = "event::Word")]
    pub event: EventKind,
    /// What half of them may take at most.
    #[serde(with = "duration")]
    #[schemars(with = "duration::Text")]
    pub median: Duration,
    /// What 99 of 100 may take at most; of fewer than 100, all.
    #[serde(with = "duration")]
    #[schemars(with = "duration::Text")]
    pub p99: Duration,
}

/// How large the messages of events may be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a size such as `{of: c, at-most-kib: 4096}`"
)]
pub struct MessageSizeCheck {
    /// The sandboxes or containers.
    pub of: String,
    /// How many KiB the message of an event may have.
    pub at_most_kib: u32,
}

/// A rule that the sandbox or container keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a rule by its id, as in `{of: c, rule: …}`"
)]
pub struct KeepsCheck {
    /// The sandbox or container.
    pub of: String,
    /// The id of an invariant, of which the case provokes the situation.
    pub rule: String,
}
