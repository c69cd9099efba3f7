//! The words for operations in the coverage: what counts as another kind of operation.

use super::{Command, ContainerKind, Op, PodKind, Reader, Work};

impl Op {
    /// What it is, for the coverage.
    pub(in crate::explore) fn label(&self) -> &'static str {
        match self {
            Self::Sandbox {
                attempt_of: Some(_),
                ..
            } => "next attempt of a sandbox",
            Self::Sandbox { kind, .. } => kind.label(),
            Self::Create { kind, work, .. } => kind.label().unwrap_or_else(|| work.label()),
            Self::Start(_, None) => "start",
            Self::Start(_, Some(_)) => "abandoned start",
            Self::Stop(_, 0, None) => "stop without grace",
            Self::Stop(_, _, None) => "stop with grace",
            Self::Stop(_, _, Some(_)) => "abandoned stop",
            Self::Remove(_) => "remove",
            Self::RemoveByPrefix(_) => "remove by prefix",
            Self::Kill(_) => "kill",
            Self::Freeze(_) => "freeze",
            Self::Await(..) => "await",
            Self::Exec(_, command) => command.label(),
            Self::Relist(_) => "relist",
            Self::ListWithFilters(..) => "list with filters",
            Self::Call(..) => "call without event",
            Self::CallUnknown(_) => "call on an unknown id",
            Self::StopSandbox(_) => "stop sandbox",
            Self::RemoveSandbox(_) => "remove sandbox",
            Self::Resubscribe(_) => "resubscribe",
            Self::Subscribe(_, Reader::Reads) => "second subscriber",
            Self::Subscribe(_, Reader::Stalls) => "stalled subscriber",
            Self::Subscribe(_, Reader::StoppedProcess) => "stopped subscriber process",
            Self::Subscribe(_, Reader::Early) => "early subscriber",
            Self::Deadline(_) => "subscriber with a deadline",
            Self::Unsubscribe(..) => "unsubscribe",
            Self::Resume(_) => "resume a subscriber",
            Self::OnEvent(..) => "ask at an event",
            Self::Poll(..) => "poll",
            Self::Prompt(..) => "calls return soon",
            Self::Silence(..) => "pause",
            Self::ProcessExited(_) => "await the end of a process",
            Self::OutsideCri => "container outside the CRI",
            Self::StepClock(..) => "wrong clock",
            Self::KillSandbox(_) => "kill sandbox",
            Self::KillMonitor(_) => "kill monitor",
            Self::FreezeMonitor(..) => "freeze monitor",
            Self::FillDisk(..) => "fill disk",
            Self::Restart { back_off: true, .. } => "restart runtime, back off",
            Self::Restart { kill: false, .. } => "restart runtime",
            Self::Restart { kill: true, .. } => "kill runtime",
            Self::Repeat(_, 1, _) => "repeat",
            Self::Repeat(..) => "repeat by several workers",
            Self::EachHandler(_) => "for each handler",
            Self::Parallel(_) => "parallel",
        }
    }
}

impl PodKind {
    fn label(self) -> &'static str {
        match self {
            Self::Plain => "sandbox",
            Self::Network => "sandbox with a network",
            Self::SharedPid => "sandbox with a shared PID namespace",
            Self::Labelled => "sandbox with labels",
            Self::Memory => "sandbox with a memory limit",
            Self::Faulty => "sandbox whose low-level runtime crashes",
            Self::Refused => "refused sandbox",
        }
    }
}

impl ContainerKind {
    fn label(self) -> Option<&'static str> {
        Some(match self {
            Self::Plain => return None,
            Self::NextAttempt => "create the next attempt",
            Self::Tty => "create with a terminal",
            Self::WithMetadata => "create with mount and labels",
            Self::Bulky => "create with 200 KiB of annotations",
            Self::StopSignal => "create with a stop signal",
            Self::PidTarget => "create in another's PID namespace",
            Self::NoImage => "create without an image",
            Self::Twin => "create a twin",
            Self::Abandoned => "abandoned creation",
            Self::CrashAtCreate => "crash at create",
            Self::CrashAtStart => "crash at start",
            Self::CrashAtKill => "crash at kill",
            Self::CrashAtDelete => "crash at delete",
        })
    }
}

impl Work {
    fn label(self) -> &'static str {
        match self {
            Self::UntilTerm => "create: until TERM",
            Self::IgnoreTerm => "create: ignores TERM",
            Self::UntilSignal => "create: until USR1",
            Self::Exit(_, 0) => "create: exits at once",
            Self::Exit(0, _) => "create: exits with 0",
            Self::Exit(..) => "create: exits with an error",
            Self::Die(..) => "create: crashes",
            Self::DumpCore => "create: dumps a core",
            Self::Oom => "create: OOM kill",
            Self::OomByPod => "create: OOM kill by the pod's limit",
            Self::OomOnTerm => "create: OOM kill at TERM",
            Self::OomOfChild => "create: OOM kill of a child",
            Self::OomGroup => "create: OOM kill of all",
            Self::OrphanChild => "create: leaves an orphan",
            Self::MissingProgram => "create: no program",
            Self::Zombies => "create: zombies",
        }
    }
}

impl Command {
    fn label(self) -> &'static str {
        match self {
            Self::Exit(_) => "exec",
            Self::Slow(_) => "slow exec",
            Self::Killed => "exec that is killed",
            Self::TimesOut => "exec that times out",
        }
    }
}
