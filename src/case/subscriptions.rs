//! What a case does with subscriptions of its own, and what they must have seen.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Step, duration, event};
use crate::history::{EventKind, StatusCode};

/// Subscribe beside the stream that all cases read. What has not been given up when the steps are
/// over is given up then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a subscription such as `{as: b}`"
)]
pub struct SubscribeStep {
    /// The name for it.
    #[serde(rename = "as")]
    pub binding: String,
    /// The connection that it uses.
    #[serde(default)]
    pub connection: ConnectionSpec,
    /// It stops reading once it is live.
    #[serde(default)]
    pub stalls: bool,
    /// The deadline of the call.
    #[serde(
        default,
        with = "duration::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "duration::Text")]
    pub deadline: Option<Duration>,
    /// How soon it must be effective, when no event proves it. If absent, one does.
    #[serde(
        default,
        with = "duration::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "duration::Text")]
    pub effective: Option<Duration>,
    /// Its request has fields that the CRI does not define.
    #[serde(default)]
    pub unknown_fields: bool,
    /// The host by which it calls the runtime, as gRPC's header `:authority` tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<String>,
}

/// The connection that a subscription uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "kebab-case",
    expecting = "a connection: `own` or `calls`"
)]
pub enum ConnectionSpec {
    /// One of its own.
    #[default]
    Own,
    /// That of the calls, which it shares with other such subscriptions.
    Calls,
}

/// Give a subscription up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a subscription such as `{subscription: b}`"
)]
pub struct UnsubscribeStep {
    /// Which one.
    pub subscription: String,
    /// Without cancelling it: its connection is closed, as when the subscriber is killed.
    #[serde(default)]
    pub hang_up: bool,
}

/// A subscription by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a subscription such as `{subscription: b}`"
)]
pub struct SubscriptionStep {
    /// Which one.
    pub subscription: String,
}

/// Wait until the runtime has ended a subscription. That it does is a requirement of the case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a subscription such as `{of: b, within: 5s}`"
)]
pub struct AwaitEndStep {
    /// Which subscription.
    pub of: String,
    /// The longest time that a conformant runtime may take.
    #[serde(with = "duration")]
    #[schemars(with = "duration::Text")]
    pub within: Duration,
}

/// Do nothing for a time, in which nothing may come on any stream, and none may end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a time such as `{for: 5s}`")]
pub struct QuietStep {
    /// How long, from the end of the steps.
    #[serde(rename = "for", with = "duration")]
    #[schemars(with = "duration::Text")]
    pub time: Duration,
    /// What is done before, and makes no event either.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
}

/// Do some steps, each call of which must return soon. That it does is a requirement of the case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a bound and steps such as `{within: 5s, steps: […]}`"
)]
pub struct PromptStep {
    /// The longest time that a call of a conformant runtime may take.
    #[serde(with = "duration")]
    #[schemars(with = "duration::Text")]
    pub within: Duration,
    /// What to do.
    pub steps: Vec<Step>,
}

/// Steps that are taken beside others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "steps such as `{steps: […]}`")]
pub struct Branch {
    /// What to do.
    pub steps: Vec<Step>,
}

/// Subscriptions by their name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a subscription such as `{of: b}`")]
pub struct SubscriptionRef {
    /// The name.
    pub of: String,
}

/// When the headers of a subscription's response came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a subscription and a time such as `{of: b, at-most: 1s}`"
)]
pub struct HeadersCheck {
    /// The subscription.
    pub of: String,
    /// How long after it was asked for.
    #[serde(with = "duration")]
    #[schemars(with = "duration::Text")]
    pub at_most: Duration,
}

/// How and when the runtime ended a subscription.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "an end such as `{of: b, with: [DEADLINE_EXCEEDED], at-least: 3s}`"
)]
pub struct EndedCheck {
    /// The subscription.
    pub of: String,
    /// With one of these gRPC codes.
    pub with: Vec<Code>,
    /// Not sooner after it was asked for.
    #[serde(default, with = "duration", skip_serializing_if = "Duration::is_zero")]
    #[schemars(with = "duration::Text", default)]
    pub at_least: Duration,
}

/// A gRPC code by its name, such as `UNAVAILABLE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Code(pub StatusCode);

impl TryFrom<String> for Code {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let code = StatusCode::named(&name).map(Self);
        code.ok_or_else(|| format!("`{name}` is no gRPC code such as `UNAVAILABLE`"))
    }
}

impl From<Code> for String {
    fn from(Code(code): Code) -> Self {
        code.to_string()
    }
}

/// What a new subscriber is told of what has happened while nobody listened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "all that has happened, such as `{of: c, all: [started, stopped]}`"
)]
pub struct ReplayCheck {
    /// The container.
    pub of: String,
    /// All that has happened to it.
    #[serde(deserialize_with = "event::list")]
    #[schemars(with = "Vec<event::Word>")]
    pub all: Vec<EventKind>,
}
