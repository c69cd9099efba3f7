//! What must be seen once the steps of a case are over.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::subscriptions::{EndedCheck, HeadersCheck, ReplayCheck, SubscriptionRef};
use super::{
    KeepsCheck, LatencyCheck, MessageSizeCheck, SandboxStateCheck, ShownCheck, duration, event,
};
use crate::history::EventKind;
use crate::outcome::Level;

/// Something that must be seen once the steps are over, and how binding that is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Expectation {
    /// How binding it is.
    pub level: Level,
    /// What must be seen.
    pub check: Check,
}

/// What must be seen. Where a name stands for several containers, each of them is checked; a name
/// that stands for none breaks the expectation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "kebab-case",
    expecting = "a check such as `never: {of: c, event: deleted}`"
)]
pub enum Check {
    /// Exactly these events, in this order.
    Events(EventsCheck),
    /// These events, in this order; others may stand before, between and after them.
    Includes(IncludesCheck),
    /// No such event.
    Never(EventRef),
    /// No event comes twice.
    NoRepeats(NameRef),
    /// What an event's snapshot says of its own container.
    Status(StatusCheck),
    /// Every event carries the status of its sandbox, with the UID that the case gave to the pod.
    SandboxStatus(NameRef),
    /// Every event's snapshot shows the event's own container exactly once, and DELETED's does not.
    OwnStatus(NameRef),
    /// When an event arrives, measured from a call.
    Timing(TimingCheck),
    /// One event arrives before another.
    Order(OrderCheck),
    /// Whatever the relists show has been announced by an event: EXITED by STOPPED, absence by
    /// DELETED.
    Announced(NameRef),
    /// From when it is live, each subscription gets what the stream that all cases read brings, and
    /// nothing else; or its end says that it does not.
    SameEvents(SubscriptionRef),
    /// What happened before the subscription was asked for is told on it as on the next stream of
    /// all cases: all of it on both, or nothing on either.
    SameReplay(SubscriptionRef),
    /// The runtime has not ended the subscription.
    StaysOpen(SubscriptionRef),
    /// No event on the subscription was made before it was asked for.
    NothingOlder(SubscriptionRef),
    /// The headers of the response come in time.
    Headers(HeadersCheck),
    /// The runtime ends the subscription so.
    Ended(EndedCheck),
    /// An event tells it, or a relist on a new stream shows it.
    Learnt(EventRef),
    /// A new stream brings all that has happened while nobody listened, or nothing of it.
    Replay(ReplayCheck),
    /// All relists of the sandbox show the same.
    Unchanged(NameRef),
    /// From an event on, every list and status shows as much as it tells.
    Shown(ShownCheck),
    /// Lists by a filter show it if it passes, and only then.
    Filtered(NameRef),
    /// From the sandbox's STARTED until its STOPPED, events tell the addresses that
    /// `PodSandboxStatus` tells, and there are some.
    Addresses(NameRef),
    /// No call that asks about it fails, unless with `NOT_FOUND`.
    Answered(NameRef),
    /// How a container ended is told the same by STOPPED and by every status after it.
    Final(NameRef),
    /// Each status that shows the container EXITED has a message, and there is one, unless the
    /// container is gone.
    Explained(NameRef),
    /// What an event shows of its own container is what `ContainerStatus` says next.
    SameStatus(NameRef),
    /// An event shows the containers that lists before and after it show.
    AllContainers(NameRef),
    /// Every event shows the sandbox, and the container, as they were asked for.
    AsAskedFor(NameRef),
    /// The state of the sandbox that an event shows.
    SandboxState(SandboxStateCheck),
    /// An event is made after the call that caused it, or after the exit, and before it arrives.
    Stamped(NameRef),
    /// The times of each status lie within the calls that set them, and are 0 before.
    Times(NameRef),
    /// How long after its making an event arrives.
    Latency(LatencyCheck),
    /// How large the messages of events are.
    MessageSize(MessageSizeCheck),
    /// A rule is kept, of which the case provokes the situation.
    Keeps(KeepsCheck),
    /// What became of what calls of the name were to make, whether they failed or not.
    Aftermath(AftermathCheck),
}

/// What became of what calls were to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "an aftermath such as `{of: c, is: untold}`"
)]
pub struct AftermathCheck {
    /// What the calls were to make.
    pub of: String,
    /// What must have become of it.
    pub is: Outlook,
}

/// What may become of what a call did not make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "kebab-case",
    expecting = "an aftermath: `untold`, `undone` or `told`"
)]
pub enum Outlook {
    /// No event tells of it, and no later list shows it.
    Untold,
    /// It was never STARTED; if it was CREATED, it was DELETED; no later list shows it, or of a
    /// sandbox, shows it READY.
    Undone,
    /// It may be there: what lists show of it, events have told, and what they told is there.
    Told,
}

/// Exactly these events, in this order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "events such as `{of: c, exactly: [created, started]}`"
)]
pub struct EventsCheck {
    /// The sandbox or container.
    pub of: String,
    /// The events.
    #[serde(deserialize_with = "event::list")]
    #[schemars(with = "Vec<event::Word>")]
    pub exactly: Vec<EventKind>,
}

/// These events, in this order; others may stand before, between and after them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "events such as `{of: c, in-order: [started, stopped]}`"
)]
pub struct IncludesCheck {
    /// The sandbox or container.
    pub of: String,
    /// The events.
    #[serde(deserialize_with = "event::list")]
    #[schemars(with = "Vec<event::Word>")]
    pub in_order: Vec<EventKind>,
}

/// A sandbox's or container's event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "an event such as `{of: c, event: started}`"
)]
pub struct EventRef {
    /// The sandbox or container.
    pub of: String,
    /// The event.
    #[serde(deserialize_with = "event::one")]
    #[schemars(with = "event::Word")]
    pub event: EventKind,
}

/// A sandbox or container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a sandbox or container such as `{of: c}`"
)]
pub struct NameRef {
    /// Its name.
    pub of: String,
}

/// What an event's snapshot says of its own container. At least one thing must be asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a status such as `{of: c, event: stopped, exit-code: {is: 0}}`"
)]
pub struct StatusCheck {
    /// The container.
    pub of: String,
    /// The event whose snapshot is read.
    #[serde(deserialize_with = "event::one")]
    #[schemars(with = "event::Word")]
    pub event: EventKind,
    /// The exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<ExitCode>,
    /// The reason, one of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reason: Vec<String>,
    /// The reason, none of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_reason: Vec<String>,
}

/// An exit code to expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "kebab-case",
    expecting = "an exit code: `{is: 0}`, `{not: 137}` or `declared`"
)]
pub enum ExitCode {
    /// This one.
    Is(i32),
    /// Any but this one.
    Not(i32),
    /// The one that the container's workload declares.
    Declared,
}

/// When an event arrives, measured from the latest such call on the same sandbox or container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a time such as `{of: c, event: stopped, after: stop-called, at-most: 2s}`"
)]
pub struct TimingCheck {
    /// The sandbox or container.
    pub of: String,
    /// The event.
    #[serde(deserialize_with = "event::one")]
    #[schemars(with = "event::Word")]
    pub event: EventKind,
    /// From which end of which call.
    pub after: CallEdge,
    /// Not earlier than this.
    #[serde(
        default,
        with = "duration::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "duration::Text")]
    pub at_least: Option<Duration>,
    /// Not later than this; a negative span, earlier than the edge, always passes.
    #[serde(
        default,
        with = "duration::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "duration::Text")]
    pub at_most: Option<Duration>,
}

/// One end of a call.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(
    rename_all = "kebab-case",
    expecting = "an end of a call such as `stop-returned`"
)]
pub enum CallEdge {
    /// `RunPodSandbox` returned.
    SandboxReturned,
    /// `StartContainer` returned.
    StartReturned,
    /// `StopContainer` was called.
    StopCalled,
    /// `StopContainer` returned.
    StopReturned,
    /// `StopPodSandbox` was called.
    StopSandboxCalled,
}

/// One event arrives before another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "two events such as `{first: {of: c, event: stopped}, then: {of: pod, event: stopped}}`"
)]
pub struct OrderCheck {
    /// This one, of every sandbox or container of the name, comes first.
    pub first: EventRef,
    /// This one comes later.
    pub then: EventRef,
}
