//! All that may differ from one runtime to another, as data.
//!
//! The default is the model at its best. Whatever a runtime is permitted to do otherwise, and
//! whatever it may get wrong, is another value here: a field that the machine consults, or a hook
//! on what leaves the machine. Nothing else in the model may branch on who is imitated.

use std::time::Duration;

use super::process::End;
use super::stage::Passage;
use crate::history::{CallFault, Event, Reply, Request, StreamEnd};
use crate::limits;

/// What becomes of one event on its way to one subscriber: it comes out as it is, changed, later,
/// several times or not at all.
pub type EventHook = fn(&mut Passage<'_>, Event) -> Vec<Delivery>;

/// What becomes of an answer on its way to its caller.
pub type ReplyHook = fn(&Request, Answer) -> Answer;

/// One thing that a stream is to bring.
#[derive(Clone, Debug, PartialEq)]
pub enum Delivery {
    /// An event, so long after it was made.
    Event(Duration, Box<Event>),
    /// The stream's end.
    End(Duration, StreamEnd),
}

/// One answer, and when it is given.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// So long after what was asked has been done; none for never.
    pub after: Option<Duration>,
    /// The answer itself.
    pub result: Result<Reply, CallFault>,
}

/// What `GetContainerEvents` answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offer {
    /// A stream.
    #[default]
    Stream,
    /// `UNIMPLEMENTED`.
    Unimplemented,
    /// The end of the stream at once, with OK, as CRI-O where events are switched off.
    Closed,
    /// A stream without an event.
    Silence,
}

/// Who gets an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Audience {
    /// Every subscriber.
    #[default]
    All,
    /// One subscriber, in turns, as with containerd 1.7.
    InTurns,
    /// The one that came first.
    Oldest,
    /// The one that came last.
    Newest,
}

/// What becomes of events that nobody listens to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replay {
    /// They are gone.
    #[default]
    None,
    /// Whoever comes first gets them, as with containerd 2.1 and CRI-O.
    ToFirst,
    /// Whoever comes first gets the last of them.
    TailToFirst,
    /// Whoever comes gets all of them, also those that others have had.
    ToEach,
    /// Whoever comes gets the latest events, also those that others have had.
    Latest,
}

/// What happens when a subscriber does not read and its queue is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FullQueue {
    /// Its stream fails; nobody else notices.
    #[default]
    Fail,
    /// It misses events and is not told.
    Drop,
    /// Nobody gets any more events until it reads, as with containerd 2.1.
    Wedge,
}

/// When the exit of a process is noticed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExitNotice {
    /// At once.
    #[default]
    AtOnce,
    /// So much later.
    Late(Duration),
    /// When a call looks at the container.
    WhenAsked,
    /// When nobody holds its output open any more.
    AtEndOfOutput,
    /// Never.
    Never,
}

/// What the kill of a child for its memory does to its container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChildKill {
    /// Nothing.
    #[default]
    Nothing,
    /// It is told as the container's reason, as with containerd.
    Marks,
    /// It ends it.
    Ends,
}

/// Whom an OOM kill by the limit of a pod is put down to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PodKill {
    /// The container whose process it was.
    #[default]
    ItsContainer,
    /// Nobody: it is any SIGKILL.
    Nobody,
    /// Every container of the pod, by its reason, when it ends.
    Everybody,
    /// Every container of the pod: all of them end.
    EndsAll,
}

/// What becomes of the stop signal that a container was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StopSignals {
    /// It is told, and a stop sends it.
    #[default]
    Sent,
    /// A stop sends it, and `ContainerStatus` does not report it, as CRI-O.
    Unreported,
    /// It is told, and a stop sends SIGTERM.
    Told,
    /// Nothing: the runtime does not know of such things.
    Unknown,
}

/// What a runtime knows after a restart of exits that happened meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Restart {
    /// All, and it tells of them.
    #[default]
    Finds,
    /// All, but it does not tell, as CRI-O.
    FindsSilently,
    /// That they happened: code 255, reason `Unknown`, and not told, as containerd.
    Guesses,
    /// Nothing: they run for ever.
    Forgets,
}

/// In what order things come that have none of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// As they were made.
    #[default]
    Made,
    /// In any order.
    Any,
}

/// Something that happens on the way of a call, and that an event has to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    /// A container that cannot be started is over: STOPPED.
    FailedStart,
    /// A container is killed to be removed: STOPPED.
    ForcedRemoval,
    /// A container is killed when its sandbox is stopped: STOPPED.
    EndWithSandbox,
    /// A container is removed with its sandbox: DELETED.
    RemovalWithSandbox,
    /// A container ends with the one whose PID namespace it has joined: STOPPED.
    EndWithTarget,
    /// A container has ended and the low-level runtime dies when it is to delete it: STOPPED.
    EndInCrash,
}

/// Something that does not happen, and that an event may tell all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NonTransition {
    /// What has stopped is stopped again: STOPPED.
    RepeatedStop,
    /// A container that never ran is removed, and told to have stopped, as with CRI-O: STOPPED.
    EndOfNeverRun,
    /// What runs or has exited cannot be started: STARTED.
    RefusedStart,
    /// A command in a container ends: STOPPED of the container.
    ExecEnd,
    /// A call that changes no state: STARTED of the container that it is about.
    Aside,
    /// A call to the image service: CREATED of all containers.
    ImageCall,
    /// What has never been, or is gone, is stopped or removed: STOPPED or DELETED of it.
    UnknownId,
    /// A container lives that was not made through the CRI: all events of it.
    OutsideCri,
    /// A stop of a container fails, which runs on: STOPPED.
    FailedKill,
}

/// What is left of a sandbox or a container that could not be made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Leftover {
    /// Nothing.
    #[default]
    None,
    /// A CREATED, and for a sandbox STARTED, of what is not there.
    Told,
    /// It is there, and was not told.
    Listed,
}

/// How a runtime behaves.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a way of being wrong, independent of the others"
)]
pub struct Behaviour {
    /// By how many percent all is stretched that comes late or goes late: 100 for not at all.
    pub lateness_percent: u32,
    /// What each event passes on its way to each subscriber, one hook after the other.
    pub events: Vec<EventHook>,
    /// What each answer passes on its way to its caller, one hook after the other.
    pub replies: Vec<ReplyHook>,
    /// What `GetContainerEvents` answers.
    pub offer: Offer,
    /// Who gets an event.
    pub audience: Audience,
    /// What becomes of events that nobody listens to.
    pub replay: Replay,
    /// How many events wait for a subscriber that does not read.
    pub queue: usize,
    /// What happens when there are more.
    pub full_queue: FullQueue,
    /// Whether lists of containers wait, too, while nobody gets an event for somebody who does not
    /// read.
    pub lists_wait_for_events: bool,
    /// How long a subscription takes to become effective.
    pub effective_after: Duration,
    /// Whether a stream's headers are sent before its first event.
    pub answers_at_once: bool,
    /// Whether a stream ends at its deadline.
    pub heeds_deadlines: bool,
    /// How long a stream lasts before it is ended with OK; for ever if absent.
    pub streams_last: Option<Duration>,
    /// Whether a subscriber that has gone takes the next event with it, as with containerd 1.7.
    pub zombies: bool,
    /// In what order the containers of a snapshot, of a list, and of a sandbox's end come.
    pub siblings: Order,
    /// Whether `PodSandboxStatus` tells of the sandbox's containers, and when it read all that, as
    /// with CRI-O. containerd 2.1 does not.
    pub reports_containers: bool,
    /// When the exit of a process is noticed.
    pub exit_notice: ExitNotice,
    /// What becomes of exits while the runtime was down.
    pub restart: Restart,
    /// Whether exits of what ran while the runtime was down are not noticed afterwards.
    pub loses_monitors: bool,
    /// The part of a grace period that is waited for, in percent.
    pub grace_percent: u32,
    /// How long what has been removed is still listed.
    pub forgets_after: Duration,
    /// Whether the death of a sandbox's own process is noticed.
    pub notices_sandbox_deaths: bool,
    /// Whether a sandbox whose own process is dead can be stopped, which ends its containers.
    pub stops_dead_sandboxes: bool,
    /// Whether a stop waits for the end of one that is under way, and does nothing itself.
    pub stops_wait_for_stops: bool,
    /// Whether the stop signal is sent at all.
    pub sends_stop_signal: bool,
    /// What becomes of the stop signal that a container was given.
    pub stop_signals: StopSignals,
    /// What the kill of a child for its memory does to its container.
    pub child_kill: ChildKill,
    /// Whom an OOM kill by the limit of a pod is put down to.
    pub pod_kill: PodKill,
    /// Whether an OOM kill takes all of a container that is to end as one.
    pub heeds_oom_groups: bool,
    /// Whether lists can be had as streams.
    pub streams_lists: bool,
    /// What has no event, though it should.
    pub untold: &'static [Transition],
    /// What has an event, though it need not.
    pub told_too: &'static [NonTransition],
    /// What is left of what could not be made.
    pub leftover: Leftover,
    /// Whether a container that was started cannot be removed.
    pub refuses_removal_of_started: bool,
    /// Whether a container's process lives on when the container has been removed.
    pub leaves_processes: bool,
    /// Whether a container whose maker has gone is removed again, untold.
    pub undoes_silently: bool,
    /// Whether a container may be called by the beginning of its id, if no other id begins so.
    pub takes_prefixes: bool,
    /// Whether DELETED has the id that the removal was asked with.
    pub tells_ids_as_asked: bool,
    /// Whether events tell the latest sandbox of the pod, whichever they are about.
    pub finds_sandboxes_by_uid: bool,
    /// Whether the exit of a container that has joined another's PID namespace is told of that one.
    pub mistakes_targets: bool,
    /// Whether the end of a process is told at the signal, before its core has been read.
    pub tells_deaths_at_the_signal: bool,
    /// What is taken for the exit code of a process that is killed with its sandbox.
    pub kill_with_sandbox: i32,
    /// The exit code that is told for a process that ended so.
    pub exit_code: fn(End) -> i32,
    /// The reason that is told for it.
    pub exit_reason: fn(End) -> &'static str,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            lateness_percent: 100,
            events: Vec::new(),
            replies: Vec::new(),
            offer: Offer::default(),
            audience: Audience::default(),
            replay: Replay::default(),
            queue: limits::MODEL_QUEUE,
            full_queue: FullQueue::default(),
            lists_wait_for_events: false,
            effective_after: Duration::ZERO,
            answers_at_once: true,
            heeds_deadlines: true,
            streams_last: None,
            zombies: false,
            siblings: Order::default(),
            reports_containers: true,
            exit_notice: ExitNotice::default(),
            restart: Restart::default(),
            loses_monitors: false,
            grace_percent: 100,
            forgets_after: Duration::ZERO,
            notices_sandbox_deaths: true,
            stops_dead_sandboxes: true,
            stops_wait_for_stops: false,
            sends_stop_signal: true,
            stop_signals: StopSignals::default(),
            child_kill: ChildKill::default(),
            pod_kill: PodKill::default(),
            heeds_oom_groups: true,
            streams_lists: true,
            untold: &[],
            told_too: &[],
            leftover: Leftover::default(),
            refuses_removal_of_started: false,
            leaves_processes: false,
            undoes_silently: false,
            takes_prefixes: true,
            tells_ids_as_asked: false,
            finds_sandboxes_by_uid: false,
            mistakes_targets: false,
            tells_deaths_at_the_signal: false,
            kill_with_sandbox: 137,
            exit_code: |end| end.code,
            exit_reason: reason,
        }
    }
}

/// The reason in the words that runtimes share.
fn reason(end: End) -> &'static str {
    match end {
        End { oom: true, .. } => "OOMKilled",
        End { code: 0, .. } => "Completed",
        End { .. } => "Error",
    }
}

impl Delivery {
    /// The event at once.
    #[must_use]
    pub fn now(event: Event) -> Vec<Self> {
        vec![Self::after(Duration::ZERO, event)]
    }

    /// The event after a time.
    #[must_use]
    pub fn after(delay: Duration, event: Event) -> Self {
        Self::Event(delay, Box::new(event))
    }
}

impl Behaviour {
    /// How late something is that is late by so much: on a slow machine it is later.
    pub(super) fn late_by(&self, time: Duration) -> Duration {
        time * self.lateness_percent / 100
    }

    /// How long a subscription takes to become effective there.
    pub(super) fn effective_in(&self) -> Duration {
        self.late_by(self.effective_after)
    }

    pub(super) fn tells(&self, transition: Transition) -> bool {
        !self.untold.contains(&transition)
    }

    pub(super) fn also_tells(&self, nothing: NonTransition) -> bool {
        self.told_too.contains(&nothing)
    }
}
