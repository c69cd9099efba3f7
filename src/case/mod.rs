//! A conformance case as data: what to do, in the words of the CRI, and what must then be seen.
//!
//! A case names intent, never polling, sleeping or retrying. [`load`] reads cases, [`Case`] is what
//! they mean. Pure, apart from `load`, which reads files.

mod diagnose;
mod duration;
mod event;
#[cfg(test)]
mod golden;
mod limits;
pub mod load;
mod locate;
mod number;
mod parse;
mod validate;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::history::EventKind;
use crate::outcome::Level;

pub use diagnose::{Diagnostic, Diagnostics};
pub use parse::parse;

/// One conformance case, from one file `cases/<area>/<name>.yaml`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Case {
    /// `<area>::<name>`, from the file's path.
    pub name: String,
    /// The catalogue's id, such as `ORD-01`. Never reused.
    pub id: String,
    /// The claim, as one sentence.
    pub title: String,
    /// Why it matters to a consumer of events.
    pub why: String,
    /// Where the requirement comes from.
    pub sources: Vec<String>,
    /// How binding it is, for whom.
    pub levels: Levels,
    /// What the case needs beyond the socket.
    pub needs: Vec<Need>,
    /// Whether no other case may run meanwhile.
    pub exclusive: bool,
    /// The situation without which the case proves nothing.
    pub provokes: Option<Situation>,
    /// What to do.
    pub steps: Vec<Step>,
    /// What must then be seen.
    pub expect: Vec<Expectation>,
    /// The file's text.
    #[serde(skip)]
    pub definition: String,
}

/// How binding a case is for each kind of consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Levels {
    /// For a consumer that keeps the payload: kubelet 1.26 to 1.36.
    pub cache: Level,
    /// For a consumer that takes STOPPED as a hint to relist: kubelet 1.37 and later.
    pub hint: Level,
}

/// What a case needs beyond the CRI socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    /// Memory limits are enforced, and the host's count of OOM kills can be read.
    MemoryLimit,
}

/// A situation that a case provokes. Without it the case is inconclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Situation {
    /// The kernel's OOM killer killed a process.
    OomKill,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Run a sandbox.
    Sandbox(SandboxStep),
    /// Create a container.
    Create(CreateStep),
    /// Start a container.
    Start(StartStep),
    /// Stop a container: the stop signal, and after the grace period the kill.
    Stop(StopStep),
    /// Remove a container.
    Remove(ContainerStep),
    /// Stop a sandbox.
    StopSandbox(SandboxRef),
    /// Remove a sandbox.
    RemoveSandbox(SandboxRef),
    /// Wait until an event has arrived.
    Await(AwaitStep),
    /// List a sandbox's containers and read the status of each.
    Relist(SandboxRef),
    /// Give up the event stream and open a new one, proven live before the next step.
    Resubscribe(Resubscribe),
    /// Do some steps several times.
    Repeat(RepeatStep),
}

/// Run a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxStep {
    /// The name for it.
    #[serde(rename = "as")]
    pub binding: String,
}

/// Create a container.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CreateStep {
    /// The name for it.
    #[serde(rename = "as")]
    pub binding: String,
    /// The sandbox to create it in.
    #[serde(rename = "in")]
    pub sandbox: String,
    /// What it shall do.
    pub workload: WorkloadSpec,
    /// Memory limit in MiB, without swap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u32>,
    /// A runtime may refuse this already here. The case is then inconclusive.
    #[serde(default)]
    pub may_fail: bool,
}

/// What a container does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadSpec {
    /// Exit by itself.
    Exit(ExitSpec),
    /// Run until SIGTERM, then exit 0 at once.
    Obey,
    /// Ignore SIGTERM and run until killed.
    Ignore,
    /// Use memory beyond any limit.
    Eat(EatSpec),
    /// A program that the image does not have.
    Missing,
}

/// Exit by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ExitSpec {
    /// With which code.
    pub code: Number,
    /// How long after the start.
    #[serde(default, with = "duration")]
    pub after: Duration,
}

/// Use memory beyond any limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct EatSpec {
    /// How many MiB to touch.
    pub mib: u32,
    /// How long after the start. A runtime watches for OOM kills only a little after it has started
    /// the container, so that an instant one tests something else.
    #[serde(with = "duration")]
    pub after: Duration,
}

/// A number, or the current item of the `repeat` around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// This number.
    Given(u8),
    /// The item whose turn it is.
    Item,
}

/// Start a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartStep {
    /// Which container.
    pub container: String,
    /// The start must fail. If it succeeds, the case is inconclusive.
    #[serde(default)]
    pub fails: bool,
}

/// Stop a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StopStep {
    /// Which container.
    pub container: String,
    /// Time between the stop signal and the kill; whole seconds.
    #[serde(with = "duration")]
    pub grace: Duration,
}

/// A container by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContainerStep {
    /// Which container.
    pub container: String,
}

/// A sandbox by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxRef {
    /// Which sandbox.
    pub sandbox: String,
}

/// Wait until an event has arrived. That it does is a requirement of the case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AwaitStep {
    /// The sandbox or container that the event is about.
    pub of: String,
    /// Which event.
    #[serde(deserialize_with = "event::one")]
    pub event: EventKind,
    /// The longest time that a conformant runtime may take; the run's event time-out if absent.
    #[serde(
        default,
        with = "duration::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub within: Option<Duration>,
}

/// Give up the event stream and open a new one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resubscribe {}

/// Do some steps several times. Names bound inside are bound anew each time; no later step can use
/// them, and in an expectation they stand for those of all rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RepeatStep {
    /// How often. Either this or `items`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// Once for each of these; `item` stands for it where a step takes a number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<u8>,
    /// How many rounds may be under way at once.
    #[serde(default = "one")]
    pub workers: u32,
    /// What to do in each round.
    pub steps: Vec<Step>,
}

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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
    /// Whatever the last relist shows has been announced by an event: EXITED by STOPPED, absence by
    /// DELETED.
    Announced(NameRef),
}

/// Exactly these events, in this order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventsCheck {
    /// The sandbox or container.
    pub of: String,
    /// The events.
    #[serde(deserialize_with = "event::list")]
    pub exactly: Vec<EventKind>,
}

/// These events, in this order; others may stand before, between and after them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct IncludesCheck {
    /// The sandbox or container.
    pub of: String,
    /// The events.
    #[serde(deserialize_with = "event::list")]
    pub in_order: Vec<EventKind>,
}

/// A sandbox's or container's event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventRef {
    /// The sandbox or container.
    pub of: String,
    /// The event.
    #[serde(deserialize_with = "event::one")]
    pub event: EventKind,
}

/// A sandbox or container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NameRef {
    /// Its name.
    pub of: String,
}

/// What an event's snapshot says of its own container. At least one thing must be asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct StatusCheck {
    /// The container.
    pub of: String,
    /// The event whose snapshot is read.
    #[serde(deserialize_with = "event::one")]
    pub event: EventKind,
    /// The exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<ExitCode>,
    /// The reason, one of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reason: Vec<String>,
}

/// An exit code to expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExitCode {
    /// This one.
    Is(i32),
    /// Any but this one.
    Not(i32),
    /// The one that the container's workload declares.
    Declared,
}

/// When an event arrives, measured from the latest such call on the same sandbox or container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TimingCheck {
    /// The sandbox or container.
    pub of: String,
    /// The event.
    #[serde(deserialize_with = "event::one")]
    pub event: EventKind,
    /// From which end of which call.
    pub after: CallEdge,
    /// Not earlier than this.
    #[serde(
        default,
        with = "duration::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub at_least: Option<Duration>,
    /// Not later than this; a negative span, earlier than the edge, always passes.
    #[serde(
        default,
        with = "duration::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub at_most: Option<Duration>,
}

/// One end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderCheck {
    /// This one, of every sandbox or container of the name, comes first.
    pub first: EventRef,
    /// This one comes later.
    pub then: EventRef,
}

fn one() -> u32 {
    1
}
