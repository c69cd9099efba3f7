//! `subscription`: the events that a subscription of the case delivers, and whether and how it
//! ends. One module for each claim, with its assessment and its tests.

mod ends_with;
mod headers_within;
mod no_replay;
mod same_events;
mod same_replay;
mod stays_open;

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::duration::Span;
use super::scope::{Scope, Wanted};
use super::word::{Finding, Word};
use crate::history::{CaseHistory, Observed};
use crate::oracle::Index;
use crate::outcome::{Kind, Latency};

use ends_with::Code;

/// The events that a subscription delivers, and whether and how it ends. At least one claim is
/// required.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a subscription and a claim such as `{of: b, stays: open}`"
)]
pub struct SubscriptionCheck {
    /// The subscription.
    pub of: String,
    /// The events that it delivers once it is live.
    #[serde(
        default,
        deserialize_with = "given",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "SubscriptionEvents")]
    pub events: Option<SubscriptionEvents>,
    /// The events that it delivers although they are older than its request.
    #[serde(
        default,
        deserialize_with = "given",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "SubscriptionReplay")]
    pub replay: Option<SubscriptionReplay>,
    /// Its state once the steps are over.
    #[serde(
        default,
        deserialize_with = "given",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "SubscriptionState")]
    pub stays: Option<SubscriptionState>,
    /// The headers of the response arrive within this time of the request.
    #[serde(default, with = "Span", skip_serializing_if = "Option::is_none")]
    pub headers_within: Option<Duration>,
    /// The runtime ends it with one of these gRPC codes.
    #[serde(
        default,
        deserialize_with = "given",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Vec<Code>")]
    pub ends_with: Option<Vec<Code>>,
    /// The runtime ends it no earlier than this after the request.
    #[serde(default, with = "Span", skip_serializing_if = "Option::is_none")]
    pub ends_after: Option<Duration>,
}

/// Reads the value of an optional key, and rejects a key without a value.
fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// The events of a live subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "kebab-case",
    expecting = "the events `same-as-main-stream`"
)]
pub enum SubscriptionEvents {
    /// The events of the main stream, which all cases read, and no others; or the runtime ends the
    /// subscription with an error.
    SameAsMainStream,
}

/// The events of a subscription that are older than its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "kebab-case",
    expecting = "a replay: `none` or `same-as-main-stream`"
)]
pub enum SubscriptionReplay {
    /// No such event.
    None,
    /// The same events as the main stream delivers when it is opened next; or none on either.
    SameAsMainStream,
}

/// The state of a subscription once the steps are over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", expecting = "the state `open`")]
pub enum SubscriptionState {
    /// The runtime has not ended it.
    Open,
}

impl SubscriptionCheck {
    fn claims_nothing(&self) -> bool {
        let of_events = self.events.is_some() || self.replay.is_some();
        let of_end = self.stays.is_some() || self.ends_with.is_some() || self.ends_after.is_some();
        !of_events && !of_end && self.headers_within.is_none()
    }

    fn validate_end(&self, scope: &mut dyn Scope<'_>) {
        match &self.ends_with {
            Some(codes) if codes.is_empty() => {
                scope
                    .error_at("ends-with", "without a code this always fails")
                    .help("name the codes that are allowed: `ends-with: [UNAVAILABLE]`");
            }
            Some(_) if self.stays.is_some() => {
                scope
                    .error_at("ends-with", "a subscription that stays open does not end")
                    .help("remove `stays` or `ends-with`");
            }
            None if self.ends_after.is_some() => {
                scope
                    .error_at("ends-after", "this bounds the end that `ends-with` claims")
                    .help("add `ends-with: [UNAVAILABLE]`, the codes that are allowed");
            }
            _ => {}
        }
        if self.ends_after.is_some_and(|least| least.is_zero()) {
            scope.error_at("ends-after", "this cannot fail");
        }
    }
}

impl Word for SubscriptionCheck {
    fn of(&self) -> &str {
        &self.of
    }

    fn validate(&self, scope: &mut dyn Scope<'_>) {
        scope.resolve("of", &self.of, Wanted::Subscription);
        if self.claims_nothing() {
            scope
                .error("this claims nothing about the subscription")
                .help("add `events`, `replay`, `stays`, `headers-within` or `ends-with`");
        }
        self.validate_end(scope);
    }

    fn kinds(&self) -> Vec<Kind> {
        let claims = [
            self.events.map(|_| same_events::KINDS),
            self.replay.map(|replay| match replay {
                SubscriptionReplay::None => no_replay::KINDS,
                SubscriptionReplay::SameAsMainStream => same_replay::KINDS,
            }),
            self.stays.map(|_| stays_open::KINDS),
            self.headers_within.map(|_| headers_within::KINDS),
            self.ends_with.as_ref().map(|_| ends_with::KINDS),
        ];
        claims.into_iter().flatten().flatten().copied().collect()
    }

    fn assess_subscription(&self, history: &CaseHistory, observed: &Observed) -> Vec<Finding> {
        let events = self
            .events
            .map(|SubscriptionEvents::SameAsMainStream| same_events::assess(history, observed));
        let replay = self.replay.map(|replay| match replay {
            SubscriptionReplay::None => no_replay::assess(history, observed),
            SubscriptionReplay::SameAsMainStream => same_replay::assess(history, observed),
        });
        let stays = self
            .stays
            .map(|SubscriptionState::Open| stays_open::assess(history, observed));
        let headers = self
            .headers_within
            .map(|bound| headers_within::assess(history, observed, bound));
        let ends = self.ends_with.as_ref().map(|codes| {
            ends_with::assess(
                history,
                observed,
                codes,
                self.ends_after.unwrap_or_default(),
            )
        });
        let claims = [events, replay, stays, headers, ends];
        claims.into_iter().flatten().collect()
    }

    fn latencies(&self, index: &Index<'_>) -> Vec<Latency> {
        let history = index.history;
        let headers = self.headers_within.into_iter();
        let times = headers.flat_map(|bound| headers_within::times(history, &self.of, bound));
        times.collect()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::checks::testing::check;

    #[test]
    fn each_claim_is_assessed() {
        let both = "subscription: {of: b, events: same-as-main-stream, stays: open}";
        let begins = "pod run; observe 7 as=b proven; c create; c CREATED at=last";
        let delivered = format!("{begins}; c CREATED on=7 at=last");
        check(both, &format!("{delivered}; end"), expect!["holds"]);
        check(
            both,
            &format!("{delivered}; observe 7 ends=8; end"),
            expect![[r#"
                ORD-01 at #3 #9: b, stream 7: expected a stream that stays open: it ended with RESOURCE_EXHAUSTED
            "#]],
        );
        check(
            both,
            &format!("{begins}; observe 7 ends=0; end"),
            expect![[r#"
            ORD-01 at #3 #8: b, stream 7: expected an end that reports what has not come: the runtime ended the stream with OK
            ORD-01 at #3 #8: b, stream 7: expected a stream that stays open: the runtime ended it with OK
        "#]],
        );
    }
}
