//! `subscribe`: open a subscription in addition to the stream that all cases read.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::StepRules;
use crate::case::Span;
use crate::case::validate::{Surroundings, Walk};

/// Open a subscription in addition to the stream that all cases read. Unless an earlier step closes
/// it, it is closed when the steps are over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a subscription such as `{as: b}`"
)]
pub struct SubscribeStep {
    /// The name by which later steps and checks refer to it.
    #[serde(rename = "as")]
    pub binding: String,
    /// The connection that it uses.
    #[serde(default)]
    pub connection: ConnectionSpec,
    /// It stops reading once it is live.
    #[serde(default)]
    pub stalls: bool,
    /// It is a process of its own: SIGSTOP stops it where it `stalls`, `resume` continues it, and
    /// `hang-up` kills it. Stopped, it neither reads nor answers nor closes, like a consumer that
    /// hangs or whose machine is frozen. On the model it is a task of the suite, like any other.
    #[serde(default)]
    pub own_process: bool,
    /// The deadline of the call.
    #[serde(default, with = "Span", skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Duration>,
    /// The time after which it counts as live without an event that proves it. If absent, the step
    /// waits for such an event.
    #[serde(default, with = "Span", skip_serializing_if = "Option::is_none")]
    pub effective: Option<Duration>,
    /// Its request has fields that the CRI does not define.
    #[serde(default)]
    pub unknown_fields: bool,
    /// The value of the HTTP/2 header `:authority`.
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
    /// A new one.
    #[default]
    Own,
    /// The connection of the calls, which it shares with other such subscriptions.
    Calls,
}

impl StepRules for SubscribeStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, _: Surroundings) {
        walk.alone("the subscription would see other cases, too");
        for (key, span) in [("deadline", self.deadline), ("effective", self.effective)] {
            walk.span(key, span);
        }
        let own = self.connection == ConnectionSpec::Own;
        if self.stalls && !own {
            let message = "the calls on the same connection would be held up";
            walk.object_to("stalls", message)
                .advise("let it have a connection of its own");
        }
        if self.own_process && !own {
            let message = "the calls are made by the suite's own process";
            walk.object_to("own-process", message)
                .advise("let it have a connection of its own");
        }
        walk.bind_subscription(&self.binding, own);
    }

    fn check_without_events(&self, walk: &mut Walk<'_, '_>) {
        if self.effective.is_none() {
            walk.object("no event can prove it live where there are none")
                .advise("add `effective: 250ms`");
        }
    }
}
