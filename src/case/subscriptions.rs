//! What a case's own subscriptions must have seen.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{duration, event};
use crate::history::{EventKind, StatusCode};

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
