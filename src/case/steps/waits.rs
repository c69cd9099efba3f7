//! Steps on event streams, the run's own and the case's subscriptions, and steps that wait: for an
//! event, an end, an exit, or silence.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Step, keys};
use crate::case::validate::Walk;
use crate::case::{Need, Span, kind_words};
use crate::checks::Kind;
use crate::history::EventKind;

keys! {
    /// Close the event stream and open a new one.
    #[derive(Default)]
    ResubscribeStep: "nothing, as in `resubscribe: {}`" {
        /// Steps between the two, while the run does not listen.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        meanwhile: Vec<Step>,
    }

    /// Open a subscription in addition to the stream that all cases read. Unless an earlier step
    /// closes it, it is closed when the steps are over.
    SubscribeStep: "a subscription such as `{as: b}`" {
        /// The name by which later steps and checks refer to it.
        #[serde(rename = "as")]
        binding: String,
        /// The connection that it uses.
        #[serde(default)]
        connection: ConnectionSpec,
        /// It stops reading once it is live.
        stalls: bool,
        /// It is a process of its own: SIGSTOP stops it where it `stalls`, `resume` continues it,
        /// and `hang-up` kills it. Stopped, it neither reads nor answers nor closes, like a
        /// consumer that hangs or whose machine is frozen. On the model it is a task of the suite,
        /// like any other.
        own_process: bool,
        /// The deadline of the call.
        deadline: Option<Duration>,
        /// The time after which it counts as live without an event that proves it. If absent, the
        /// step waits for such an event.
        effective: Option<Duration>,
        /// Its request has fields that the CRI does not define.
        unknown_fields: bool,
        /// The value of the HTTP/2 header `:authority`.
        authority: Option<String>,
    }

    /// Close a subscription.
    UnsubscribeStep: "a subscription such as `{subscription: b}`" {
        /// The subscription.
        subscription: String,
        /// Close its connection without cancelling the call, as when the subscriber is killed.
        hang_up: bool,
    }

    /// Let a subscriber that has stopped reading read on.
    ResumeStep: "a subscription such as `{subscription: b}`" {
        /// The subscription.
        subscription: String,
    }

    /// Wait until an event has arrived. If it does not, the case fails; but if it is STOPPED and
    /// the container still runs, the case is inconclusive.
    AwaitStep: "an event such as `{of: c, event: started}`" {
        /// The sandbox or container that the event is about.
        of: String,
        /// The event.
        event: EventKind,
        /// The longest time that a conformant runtime may take; the event timeout of the run if
        /// absent.
        within: Option<Duration>,
    }

    /// Wait until the runtime has ended a subscription. If it does not, the case fails.
    AwaitEndStep: "a subscription such as `{of: b, within: 5s}`" {
        /// The subscription.
        of: String,
        /// The longest time that a conformant runtime may take.
        within: Duration,
    }

    /// Wait until the host shows no process of a container. If one lives on, the case fails.
    ProcessExitedStep: "a container such as `{container: c}`" {
        /// The container.
        container: String,
        /// The longest time that a conformant runtime may take; none if absent.
        within: Option<Duration>,
    }

    /// Wait for a time in which no event may arrive on any stream, and no stream may end.
    StaysSilentStep: "a time such as `{for: 5s}`" {
        /// The time, from the end of the steps.
        #[serde(rename = "for")]
        time: Duration,
        /// Steps that come first, and cause no event.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        steps: Vec<Step>,
    }
}

impl ResubscribeStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.forbid_listeners();
        walk.optional("meanwhile", &self.meanwhile);
    }
}

/// The connection that a subscription uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[serde(expecting = "a connection: `own` or `calls`")]
pub enum ConnectionSpec {
    /// A new one.
    #[default]
    Own,
    /// The connection of the calls, which it shares with other such subscriptions.
    Calls,
}

impl SubscribeStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        if self.effective.is_none() && !walk.has_events() {
            walk.error("no event can prove it live where there are none")
                .help("add `effective: 250ms`");
        }
        walk.implied.stalls_a_subscriber |= self.stalls;
        walk.forbid_other_cases("the subscription would see other cases, too");
        for (key, span) in [("deadline", self.deadline), ("effective", self.effective)] {
            walk.span(key, span);
        }
        let own = self.connection == ConnectionSpec::Own;
        if self.stalls && !own {
            let message = "the calls on the same connection would be held up";
            walk.error_at("stalls", message)
                .help("let it have a connection of its own");
        }
        if self.own_process && !own {
            let message = "the calls are made by the suite's own process";
            walk.error_at("own-process", message)
                .help("let it have a connection of its own");
        }
        walk.bind(&self.binding, Kind::Subscription { own });
    }
}

impl UnsubscribeStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        let shared = walk.subscription("subscription", &self.subscription) == Some(false);
        if self.hang_up && shared {
            walk.error_at("hang-up", "the connection is that of the calls")
                .help("let the subscription have a connection of its own");
        }
    }
}

impl ResumeStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.subscription("subscription", &self.subscription);
    }
}

impl AwaitStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.sandbox_or_container("of", &self.of);
        walk.span("within", self.within);
        if self.within.is_some_and(|within| within.is_zero()) {
            walk.error_at("within", "`within` must be greater than zero");
        }
    }
}

impl AwaitEndStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.subscription("of", &self.of);
        walk.span("within", Some(self.within));
    }
}

impl ProcessExitedStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.needs([Need::ContainerPid]);
        walk.container("container", &self.container);
        walk.span("within", self.within);
    }
}

impl StaysSilentStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.forbid_other_cases("other cases would not be quiet meanwhile");
        walk.span("for", Some(self.time));
        if walk.around.parallel {
            walk.error("other steps would not be quiet meanwhile")
                .help("let it stand between the others");
        }
        walk.optional("steps", &self.steps);
    }
}
