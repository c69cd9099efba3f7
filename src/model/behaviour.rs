//! All differences between runtimes, as data.
//!
//! The default is a fully conformant runtime. Permitted differences, and every defect that the
//! suite must notice, are other values here: a field that the machine consults, or a hook on events
//! and replies. Nothing else in the model may branch on which runtime it imitates.

use std::time::Duration;

use super::announce::{Leftover, NonTransition, Transition};
use super::event_bus::HookContext;
use super::process::ProcessExit;
use crate::history::{CallFault, Event, Reply, Request, Resource, StreamEnd};
use crate::limits;

/// Transforms one event on its way to one subscriber.
#[derive(Clone, Copy, Debug)]
pub enum EventHook {
    /// Changes it in place.
    Change(fn(&mut HookContext<'_>, &mut Event)),
    /// Drops it where this is true.
    Drop(fn(&mut HookContext<'_>, &Event) -> bool),
    Delay(fn(&mut HookContext<'_>, &Event) -> Duration),
    /// Delivers these items in its place.
    Deliver(fn(&mut HookContext<'_>, Event) -> Vec<Delivery>),
}

/// Changes the answer to a call before the caller gets it.
pub type ReplyHook = fn(&Request, &mut Answer);

impl EventHook {
    pub(super) fn apply(self, context: &mut HookContext<'_>, mut event: Event) -> Vec<Delivery> {
        match self {
            Self::Change(change) => {
                change(context, &mut event);
                Delivery::now(event)
            }
            Self::Drop(is_lost) if is_lost(context, &event) => Vec::new(),
            Self::Drop(_) => Delivery::now(event),
            Self::Delay(delay) => vec![Delivery::after(delay(context, &event), event)],
            Self::Deliver(deliver) => deliver(context, event),
        }
    }
}

/// One item to deliver on a stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Delivery {
    /// An event, delayed by this much.
    Event(Duration, Box<Event>),
    /// The end of the stream, delayed by this much.
    End(Duration, StreamEnd),
}

/// The answer to a call, and its delay.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Delay after the requested operation has completed; `None` for no answer at all.
    pub after: Option<Duration>,
    pub result: Result<Reply, CallFault>,
}

/// How `GetContainerEvents` responds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamSupport {
    #[default]
    Supported,
    /// With `UNIMPLEMENTED`.
    Unimplemented,
    /// By closing the stream at once with OK, as CRI-O does when events are disabled.
    ClosedAtOnce,
    /// With an open stream that never carries an event.
    Silent,
}

/// The subscribers that receive an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FanOutPolicy {
    /// Every subscriber.
    #[default]
    Broadcast,
    /// One subscriber in turn, as containerd 1.7 does.
    RoundRobin,
    /// Only the subscriber that connected first.
    OldestOnly,
    /// Only the subscriber that connected last.
    NewestOnly,
}

/// The fate of events while no subscriber is connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replay {
    /// They are lost.
    #[default]
    None,
    /// The next subscriber receives all of them, as with containerd 2.1 and CRI-O.
    ToFirst,
    /// The next subscriber receives the last few of them.
    TailToFirst,
    /// Every later subscriber receives all of them again.
    ToEach,
    /// Every new subscriber receives the most recent events, even if they were delivered before.
    Latest,
}

/// The reaction to a full queue of a subscriber that does not read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FullQueue {
    /// Its stream fails; other subscribers are not affected.
    #[default]
    Fail,
    /// Further events are dropped silently for this subscriber.
    Drop,
    /// No subscriber receives events until this one reads, as with containerd 2.1.
    Wedge,
}

/// The response of `CreateContainer` if the sandbox has a container of the same name and attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Twin {
    /// With `ALREADY_EXISTS`.
    #[default]
    Refused,
    /// With the existing container, as CRI-O does.
    First,
    /// With a second container.
    Second,
}

/// The time at which the runtime detects that a process has exited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExitDetection {
    /// At once.
    #[default]
    Immediate,
    /// After this delay.
    Delayed(Duration),
    /// When the next call arrives.
    OnQuery,
    /// When no process holds the container's output open any more.
    AtEndOfOutput,
    Never,
}

/// The effect of a child process's OOM kill on its container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChildKill {
    #[default]
    Ignored,
    /// The container's exit reason becomes `OOMKilled`, as with containerd.
    MarksContainer,
    EndsContainer,
}

/// The containers affected by an OOM kill that the pod's memory limit caused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PodKill {
    /// The container of the killed process is marked as OOM killed.
    #[default]
    MarksOwner,
    /// No container is marked: the kill is reported like any SIGKILL.
    MarksNone,
    /// Every container of the pod is marked as OOM killed when it exits.
    MarksAll,
    EndsAll,
}

/// The handling of the stop signal in a container's configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StopSignals {
    /// `StopContainer` sends it and `ContainerStatus` reports it.
    #[default]
    Supported,
    /// `StopContainer` sends it; `ContainerStatus` does not report it, as with CRI-O.
    Unreported,
    /// `ContainerStatus` reports it, but `StopContainer` sends SIGTERM.
    ReportedOnly,
    /// The field is ignored.
    Unknown,
}

/// The runtime's knowledge after a restart about exits that happened while it was down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Restart {
    /// It recovers them with exit code and reason, and sends their events.
    #[default]
    Recovers,
    /// It recovers them with exit code and reason, but sends no events, as CRI-O.
    RecoversSilently,
    /// It reports this exit code and reason, and sends no events: 255 and `Unknown`, as containerd.
    Reports(i32, &'static str),
    /// It recovers them with exit code and reason, and dates them to its start.
    RecoversAsOfNow,
    /// It recovers them, but does not detect those within this time after its start.
    MissesExitsFor(Duration),
    /// It does not detect them: the containers are reported as running forever.
    Forgets,
}

/// The effect of killing a container's monitor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MonitorDeath {
    /// Its process is killed, and its exit detected at once.
    #[default]
    EndsContainer,
    /// Its process is killed, and its exit detected twice.
    EndsContainerTwice,
    /// Its exit is detected, but its process keeps running, as with containerd 2.x.
    LeavesProcess,
    /// Its process is killed, and its exit is never detected.
    Unnoticed,
    /// It keeps running, and its exit is never detected.
    Unwatched,
}

/// The behaviour of streams that are opened in the first seconds of a restarted daemon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EarlyStreams {
    /// They deliver events like any other.
    #[default]
    Work,
    /// They are refused, although lists are answered.
    Refused,
    /// They stay open without events.
    Silent,
}

/// The effect of freezing a container's monitor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MonitorFreeze {
    /// The container's exit is detected when the monitor continues.
    #[default]
    DelaysExit,
    /// No container's exit is detected until the monitor continues.
    DelaysAllExits,
    /// The container's exit is never detected.
    LosesExit,
}

/// The order of items for which the CRI defines none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    #[default]
    Creation,
    /// Shuffled.
    Random,
}

/// A struct whose fields have the given defaults.
macro_rules! with_defaults {
    ($(#[$meta:meta])* pub struct $name:ident {
        $($(#[$doc:meta])* pub $field:ident: $type:ty = $default:expr,)+
    }) => {
        $(#[$meta])*
        pub struct $name {
            $($(#[$doc])* pub $field: $type,)+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }
    };
}

with_defaults! {
    #[derive(Clone, Debug)]
    pub struct Behaviour {
        /// Factor, in percent, by which all deliberate delays are multiplied.
        pub lateness_percent: u32 = 100,
        /// Hooks that each event passes, in this order, on its way to each subscriber.
        pub events: Vec<EventHook> = Vec::new(),
        /// Hooks that each answer passes, in this order, on its way to its caller.
        pub replies: Vec<ReplyHook> = Vec::new(),
        pub stream_support: StreamSupport = StreamSupport::default(),
        pub fan_out: FanOutPolicy = FanOutPolicy::default(),
        pub replay: Replay = Replay::default(),
        /// The maximum number of queued events of a subscriber that does not read.
        pub queue: usize = limits::MODEL_QUEUE,
        pub full_queue: FullQueue = FullQueue::default(),
        /// Whether `ListContainers` blocks while a full queue blocks the event stream.
        pub lists_wait_for_events: bool = false,
        /// The delay after which a subscription becomes effective.
        pub effective_after: Duration = Duration::ZERO,
        /// Whether response headers are sent before the first event.
        pub sends_headers_at_once: bool = true,
        /// Whether a stream ends at the client's deadline.
        pub honours_deadlines: bool = true,
        /// The age at which the server closes a stream with OK; never if absent.
        pub max_stream_age: Option<Duration> = None,
        /// Whether a disconnected subscriber consumes one more event, as with containerd 1.7.
        pub zombie_subscribers: bool = false,
        /// The order of containers in snapshots, in lists, and when their sandbox is stopped.
        pub siblings: Order = Order::default(),
        /// Whether `PodSandboxStatus` includes the sandbox's container statuses and their
        /// timestamp, as CRI-O does; containerd 2.1 does not.
        pub reports_containers: bool = true,
        pub exit_detection: ExitDetection = ExitDetection::default(),
        pub restart: Restart = Restart::default(),
        /// Whether, after a restart, exits of containers that were started before it go undetected.
        pub loses_monitors: bool = false,
        /// Whether an exit goes undetected if a stop of its container was in progress when the
        /// runtime ended.
        pub loses_interrupted_stops: bool = false,
        /// Whether containers that were never started are lost when the runtime is killed.
        pub loses_created_containers: bool = false,
        /// Whether a restart shows containers whose start failed as created.
        pub forgets_failed_starts: bool = false,
        /// Whether sandboxes lose their addresses in a restart.
        pub forgets_addresses: bool = false,
        /// Whether the stop of a sandbox removes its containers that have exited before.
        pub stop_removes_exited: bool = false,
        /// Whether a runtime waits for its subscribers to leave before it stops.
        pub stops_after_streams: bool = false,
        /// Whether streams stay open, and silent, when the runtime ends: another process keeps
        /// their connections.
        pub streams_outlive_daemon: bool = false,
        pub early_streams: EarlyStreams = EarlyStreams::default(),
        /// Whether the exit of a container is lost while its monitor has no room on the disk.
        pub loses_exits_on_full_disk: bool = false,
        pub monitor_death: MonitorDeath = MonitorDeath::default(),
        pub monitor_freeze: MonitorFreeze = MonitorFreeze::default(),
        /// Whether no `StartContainer` is answered, or done.
        pub leaves_starts_unanswered: bool = false,
        /// The number of calls after which none that creates anything is answered, or done.
        pub creates_until: u64 = u64::MAX,
        /// The exit code of a container that could not be started.
        pub failed_start: i32 = 128,
        /// Whether `StartContainer` succeeds, and does nothing.
        pub ignores_starts: bool = false,
        /// How much of a grace period the runtime waits.
        pub grace: fn(Duration) -> Duration = |asked| asked,
        /// The time for which a removed container is still listed.
        pub listed_after_removal: Duration = Duration::ZERO,
        /// Whether the death of a sandbox's own process is detected.
        pub detects_sandbox_deaths: bool = true,
        /// Whether stopping a sandbox whose own process is dead ends its containers.
        pub stops_dead_sandboxes: bool = true,
        /// Whether a second stop only waits for the stop that is already in progress.
        pub stops_wait_for_stops: bool = false,
        /// Whether a stop signal is sent at all.
        pub sends_stop_signal: bool = true,
        pub stop_signals: StopSignals = StopSignals::default(),
        pub child_kill: ChildKill = ChildKill::default(),
        pub pod_kill: PodKill = PodKill::default(),
        /// Whether calls succeed that cannot: without the image, the program, the handler.
        pub accepts_invalid_calls: bool = false,
        /// Whether an OOM kill ends all processes of a container with `memory.oom.group` set.
        pub honours_oom_groups: bool = true,
        /// Whether the streaming variants of the list calls are implemented.
        pub streams_lists: bool = true,
        /// Transitions without their required event.
        pub suppressed: &'static [Transition] = &[],
        /// Occurrences with an event although nothing changed.
        pub spurious: &'static [NonTransition] = &[],
        pub leftover: Leftover = Leftover::default(),
        pub twin: Twin = Twin::default(),
        /// Whether containers stay listed when their sandbox is removed.
        pub keeps_containers_of_removed_sandboxes: bool = false,
        /// Whether a container that was ever started cannot be removed.
        pub refuses_removal_of_started: bool = false,
        /// Whether the first removal of a sandbox of an attempt above 0 is refused.
        pub refuses_removal_of_later_attempts: bool = false,
        /// Whether a container's process keeps running after the container has been removed.
        pub leaks_processes: bool = false,
        /// The resource that is never released.
        pub leaks: Option<Resource> = None,
        /// Whether each event without a receiver is logged.
        pub logs_discards: bool = false,
        /// Whether a container is removed again, without DELETED, when its `CreateContainer` call
        /// was abandoned.
        pub cleans_up_silently: bool = false,
        /// Whether calls accept a unique prefix of a container id.
        pub accepts_id_prefixes: bool = true,
        /// Whether DELETED carries the id as given in the request, which may be a prefix.
        pub reports_requested_id: bool = false,
        /// Whether events show the pod's most recent sandbox instead of the one they concern.
        pub resolves_sandbox_by_pod_uid: bool = false,
        /// Whether the exit of a container is reported under the id of the container whose PID
        /// namespace it shares.
        pub reports_pid_target: bool = false,
        /// Whether an exit is reported when the fatal signal arrives, before the core dump is
        /// written.
        pub reports_exit_at_signal: bool = false,
        pub sandbox_stop_exit_code: i32 = 137,
        pub exit_code: fn(ProcessExit) -> i32 = |end| end.code,
        pub exit_reason: fn(ProcessExit) -> &'static str = reason,
    }
}

/// The exit reason in the spelling of the common runtimes.
fn reason(end: ProcessExit) -> &'static str {
    match end {
        ProcessExit { oom: true, .. } => "OOMKilled",
        ProcessExit { code: 0, .. } => "Completed",
        ProcessExit { .. } => "Error",
    }
}

impl Delivery {
    /// Delivers the event without delay.
    pub fn now(event: Event) -> Vec<Self> {
        vec![Self::after(Duration::ZERO, event)]
    }

    pub fn after(delay: Duration, event: Event) -> Self {
        Self::Event(delay, Box::new(event))
    }
}

impl Behaviour {
    /// Scales a deliberate delay: a slow machine needs a longer one.
    pub(super) fn scaled(&self, delay: Duration) -> Duration {
        delay * self.lateness_percent / 100
    }

    /// The scaled delay after which a subscription becomes effective.
    pub(super) fn effective_in(&self) -> Duration {
        self.scaled(self.effective_after)
    }

    pub(super) fn reports(&self, transition: Transition) -> bool {
        !self.suppressed.contains(&transition)
    }

    pub(super) fn reports_spuriously(&self, nothing: NonTransition) -> bool {
        self.spurious.contains(&nothing)
    }
}
