//! A plan: what a walk does, as data. Names stand for pods, containers and subscriptions.
//!
//! A plan says what is called and not how a call must end: that follows from what came before it,
//! which [`World`](super::world::World) knows.

mod label;

/// What a walk does, in order.
pub(super) type Plan = Vec<Op>;

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Op {
    Sandbox {
        name: String,
        /// The sandbox that it is the next attempt of.
        attempt_of: Option<String>,
        kind: PodKind,
    },
    Create {
        name: String,
        pod: String,
        work: Work,
        kind: ContainerKind,
        /// The container that it refers to: the earlier attempt, the target or the twin.
        other: Option<String>,
    },
    /// Start a container; the client may give up on the call after so many milliseconds.
    Start(String, Option<u16>),
    /// Stop a container with a grace period in seconds; the client may give up on the call.
    Stop(String, u8, Option<u16>),
    Remove(String),
    /// Remove a container by a prefix of its id.
    RemoveByPrefix(String),
    /// Kill a container's process from the host.
    Kill(String),
    /// Freeze a container's process, and let it run on.
    Freeze(String),
    /// Wait for an event of a sandbox or container.
    Await(String, Moment),
    Exec(String, Command),
    /// List a sandbox's containers and read their statuses.
    Relist(String),
    /// List by all filters, perhaps with the calls that stream lists.
    ListWithFilters(String, bool),
    /// Make a call about a container, a sandbox or neither that causes no event.
    Call(&'static str, Option<String>),
    /// Make a call on an id that does not exist.
    CallUnknown(&'static str),
    StopSandbox(String),
    RemoveSandbox(String),
    /// Take the event stream down and up again, with operations between the two.
    Resubscribe(Plan),
    /// Open a second subscription.
    Subscribe(String, Reader),
    /// Open one that ends at its deadline, and wait for that.
    Deadline(String),
    /// Close a subscription, or hang up.
    Unsubscribe(String, bool),
    /// Let a stalled subscriber read on.
    Resume(String),
    /// Ask the runtime the moment an event of a container arrives.
    OnEvent(String, Moment, Plan),
    /// Ask the runtime repeatedly about a container or sandbox.
    Poll(String, Plan),
    /// Require that calls return within so many seconds.
    Prompt(u8, Plan),
    /// Require that for so many seconds no event comes, whatever these calls do.
    Silence(u8, Plan),
    /// Wait until a removed container has no process any more.
    ProcessExited(String),
    /// Run a container outside the CRI.
    OutsideCri,
    /// Take operations while the host's wall clock is wrong: behind, or else ahead.
    StepClock(bool, Plan),
    /// Kill a sandbox's own process, and stop the sandbox.
    KillSandbox(String),
    KillMonitor(String),
    /// Take steps while the monitor of a container is frozen.
    FreezeMonitor(String, Plan),
    /// Take steps while the disk is full on which the monitor of a container writes.
    FillDisk(String, Plan),
    /// End the runtime by a stop or a kill, and start it again.
    Restart {
        kill: bool,
        /// Open the event stream again as a kubelet does, after growing pauses.
        back_off: bool,
        /// What is under way when it ends.
        during: Plan,
        /// What happens while it is down.
        meanwhile: Plan,
    },
    /// Take operations so many times, by so many workers at once.
    Repeat(u8, u8, Plan),
    /// Take operations once for each runtime handler.
    EachHandler(Plan),
    /// Several clients at once.
    Parallel(Vec<Branch>),
}

/// What one of several clients does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Branch {
    /// Whether it has a connection of its own.
    pub(super) other_client: bool,
    pub(super) ops: Plan,
}

/// An event to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Moment {
    Created,
    Started,
    Stopped,
    Deleted,
}

impl Moment {
    /// The word for it in a case.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Started => "started",
            Self::Stopped => "stopped",
            Self::Deleted => "deleted",
        }
    }
}

/// What is special about a sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PodKind {
    #[default]
    Plain,
    /// It has its own network.
    Network,
    /// Its containers share a PID namespace.
    SharedPid,
    /// It has labels and annotations.
    Labelled,
    /// Its memory is limited as a whole.
    Memory,
    /// Its low-level runtime crashes on demand.
    Faulty,
    /// It cannot be created.
    Refused,
}

/// What is special about a container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ContainerKind {
    #[default]
    Plain,
    /// It is the next attempt of another.
    NextAttempt,
    /// It has a terminal.
    Tty,
    /// It has a mount, labels and annotations.
    WithMetadata,
    /// It has an annotation of 200 KiB.
    Bulky,
    /// It has a stop signal of its own.
    StopSignal,
    /// It joins the PID namespace of another.
    PidTarget,
    /// Its image does not exist: the creation must fail.
    NoImage,
    /// Another has its name: the creation must fail.
    Twin,
    /// The client gives up on the creation.
    Abandoned,
    /// The low-level runtime crashes at this operation.
    CrashAtCreate,
    /// The same at the start.
    CrashAtStart,
    /// The same at the kill.
    CrashAtKill,
    /// The same when what has ended is deleted.
    CrashAtDelete,
}

/// How a second subscription reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reader {
    /// As the first does.
    Reads,
    /// It stops reading once it is live.
    Stalls,
    /// The same, as a process of its own that is stopped.
    StoppedProcess,
    /// It counts as live after a time, whether an event has proven it or not.
    Early,
}

/// What a container does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Work {
    /// Run until SIGTERM.
    UntilTerm,
    /// Run until SIGKILL.
    IgnoreTerm,
    /// Run until SIGUSR1, which is no SIGTERM.
    UntilSignal,
    /// Exit with a code after so many milliseconds.
    Exit(u8, u16),
    /// Die of a signal after so many milliseconds.
    Die(u8, u16),
    DumpCore,
    /// Be OOM-killed.
    Oom,
    /// Be OOM-killed by the limit of the pod.
    OomByPod,
    /// Be OOM-killed when SIGTERM comes.
    OomOnTerm,
    /// Outlive the OOM kill of a child.
    OomOfChild,
    /// The same, where the kill takes the whole container.
    OomGroup,
    /// Exit and leave an orphan behind.
    OrphanChild,
    /// Have no program to run: the start must fail.
    MissingProgram,
    /// Leave zombies behind.
    Zombies,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Command {
    /// It exits at once with this code.
    Exit(u8),
    /// It takes so many milliseconds.
    Slow(u16),
    /// It dies of SIGKILL.
    Killed,
    /// It does not end in time.
    TimesOut,
}

impl Op {
    /// The sandbox, container or subscription that it makes, acts on or asks about, by its name.
    pub(super) fn subject(&self) -> Option<&str> {
        match self {
            Self::Sandbox { name, .. }
            | Self::Create { name, .. }
            | Self::Start(name, _)
            | Self::Stop(name, ..)
            | Self::Remove(name)
            | Self::RemoveByPrefix(name)
            | Self::Kill(name)
            | Self::Freeze(name)
            | Self::Await(name, _)
            | Self::Exec(name, _)
            | Self::Relist(name)
            | Self::ListWithFilters(name, _)
            | Self::Call(_, Some(name))
            | Self::StopSandbox(name)
            | Self::RemoveSandbox(name)
            | Self::Subscribe(name, _)
            | Self::Deadline(name)
            | Self::Unsubscribe(name, _)
            | Self::Resume(name)
            | Self::OnEvent(name, ..)
            | Self::Poll(name, _)
            | Self::ProcessExited(name)
            | Self::KillSandbox(name)
            | Self::KillMonitor(name)
            | Self::FreezeMonitor(name, _)
            | Self::FillDisk(name, _) => Some(name),
            _ => None,
        }
    }

    /// The lists of operations inside it.
    pub(super) fn inner(&self) -> Vec<&Plan> {
        match self {
            Self::Resubscribe(ops)
            | Self::OnEvent(_, _, ops)
            | Self::Poll(_, ops)
            | Self::Prompt(_, ops)
            | Self::Silence(_, ops)
            | Self::StepClock(_, ops)
            | Self::Repeat(_, _, ops)
            | Self::EachHandler(ops)
            | Self::FreezeMonitor(_, ops)
            | Self::FillDisk(_, ops) => vec![ops],
            Self::Restart {
                during, meanwhile, ..
            } => vec![during, meanwhile],
            Self::Parallel(branches) => branches.iter().map(|branch| &branch.ops).collect(),
            _ => Vec::new(),
        }
    }

    /// The same to be changed.
    pub(super) fn inner_mut(&mut self) -> Vec<&mut Plan> {
        match self {
            Self::Resubscribe(ops)
            | Self::OnEvent(_, _, ops)
            | Self::Poll(_, ops)
            | Self::Prompt(_, ops)
            | Self::Silence(_, ops)
            | Self::StepClock(_, ops)
            | Self::Repeat(_, _, ops)
            | Self::EachHandler(ops)
            | Self::FreezeMonitor(_, ops)
            | Self::FillDisk(_, ops) => vec![ops],
            Self::Restart {
                during, meanwhile, ..
            } => vec![during, meanwhile],
            Self::Parallel(branches) => branches.iter_mut().map(|branch| &mut branch.ops).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether it only says how the operations inside it are taken.
    pub(super) fn is_block(&self) -> bool {
        matches!(
            self,
            Self::Parallel(_)
                | Self::Prompt(..)
                | Self::Repeat(..)
                | Self::EachHandler(_)
                | Self::StepClock(..)
        )
    }
}

/// How many steps a plan has, without those that only say how others are taken.
pub(super) fn size(plan: &[Op]) -> usize {
    let count = |op: &Op| {
        let inner = op.inner().into_iter().map(|ops| size(ops)).sum::<usize>();
        let own = match op {
            Op::KillSandbox(_) => 3,
            Op::Freeze(_) | Op::Deadline(_) => 2,
            op => usize::from(!op.is_block()),
        };
        inner + own
    };
    plan.iter().map(count).sum()
}

impl Work {
    /// Whether it ends without being told to.
    pub(super) fn ends(self) -> bool {
        matches!(
            self,
            Self::Exit(..)
                | Self::Die(..)
                | Self::DumpCore
                | Self::Oom
                | Self::OomByPod
                | Self::OomOfChild
                | Self::OomGroup
                | Self::OrphanChild
        )
    }

    /// How long it lasts, if that is certain.
    pub(super) fn lasts_ms(self) -> Option<u16> {
        match self {
            Self::Exit(_, ms) | Self::Die(_, ms) => Some(ms),
            _ => None,
        }
    }

    /// Whether it has to have a limit of memory.
    pub(super) fn needs_memory(self) -> bool {
        matches!(
            self,
            Self::Oom | Self::OomOnTerm | Self::OomOfChild | Self::OomGroup
        )
    }
}
