//! The behaviour of a container's process: the workload program as data.

use std::time::Duration;

use crate::history::{HostInstant, Signal};
use crate::workload::Workload;
use crate::workload::program::PROGRAM_PATH;

/// The time needed to write a core dump.
const CORE_DUMP: Duration = Duration::from_millis(200);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessExit {
    /// The exit code, 128 + the signal for a death by one.
    pub code: i32,
    /// Whether the kernel OOM-killed it.
    pub oom: bool,
}

/// The future of a process, and its reactions to signals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ProcessPlan {
    /// The delay and the kind of its own exit.
    pub(super) own_end: Option<(Duration, ProcessExit)>,
    /// The time at which it receives a fatal signal; it exits once its core dump has been written.
    pub(super) signalled: Option<(Duration, ProcessExit)>,
    /// The time at which the kernel OOM-kills a child of it.
    pub(super) child_killed: Option<Duration>,
    /// Whether a child outlives it and holds its output open, unless the PID namespace ends.
    pub(super) orphans_child: bool,
    /// Its exit on SIGTERM; `None` if it ignores SIGTERM.
    pub(super) on_term: Option<ProcessExit>,
    /// Another signal on which it exits, by its Linux number, and the exit.
    pub(super) also_ends_on: Option<(u8, ProcessExit)>,
}

impl ProcessExit {
    pub(super) const KILLED: Self = Self {
        code: 137,
        oom: true,
    };

    pub(super) fn exit(code: i32) -> Self {
        Self { code, oom: false }
    }
}

impl ProcessPlan {
    /// The plan of a process that runs this command under this memory limit. Fails with the
    /// runtime's message if there is no such program.
    pub(super) fn new(
        command: &[String],
        memory_bytes: Option<u64>,
        now: HostInstant,
    ) -> Result<Self, String> {
        let Some(workload) = Workload::parse(command) else {
            return Ok(Self::ends(Duration::ZERO, ProcessExit::exit(97)));
        };
        let is_too_much =
            |mebibytes: u32| memory_bytes.is_some_and(|limit| u64::from(mebibytes) << 20 > limit);
        Ok(match workload {
            Workload::Pause
            | Workload::UntilTerm
            | Workload::WriteUntilTerm { .. }
            | Workload::Zombies { .. } => Self {
                on_term: Some(ProcessExit::exit(0)),
                ..Self::default()
            },
            Workload::IgnoreTerm => Self::default(),
            Workload::UntilSignal { signal, code } => Self {
                on_term: Some(ProcessExit::exit(143)),
                also_ends_on: Some((signal, ProcessExit::exit(code.into()))),
                ..Self::default()
            },
            Workload::Exit { code, after } => Self::ends(after, ProcessExit::exit(code.into())),
            Workload::OrphanChild { code, after } => Self {
                orphans_child: true,
                ..Self::ends(after, ProcessExit::exit(code.into()))
            },
            Workload::ExitAt { code, unix_ms } => {
                let now_ms = u64::try_from(now.realtime_ns / 1_000_000).unwrap_or_default();
                let after = Duration::from_millis(unix_ms.saturating_sub(now_ms));
                Self::ends(after, ProcessExit::exit(code.into()))
            }
            Workload::Die { signal, after } => {
                Self::ends(after, ProcessExit::exit(exit_code_after(signal)))
            }
            Workload::DumpCore { signal, after } => {
                Self::dumps(after, ProcessExit::exit(exit_code_after(signal)))
            }
            Workload::Allocate { mebibytes, after } if is_too_much(mebibytes) => {
                Self::ends(after, ProcessExit::KILLED)
            }
            Workload::AllocateInChild {
                mebibytes,
                after,
                then,
                code,
            } if is_too_much(mebibytes) => Self {
                child_killed: Some(after),
                ..Self::ends(after + then, ProcessExit::exit(code.into()))
            },
            Workload::Allocate { after, .. } | Workload::AllocateInChild { after, .. } => {
                Self::ends(after, ProcessExit::exit(98))
            }
            Workload::AllocateOnTerm { mebibytes } => Self {
                on_term: Some(if is_too_much(mebibytes) {
                    ProcessExit::KILLED
                } else {
                    ProcessExit::exit(98)
                }),
                ..Self::default()
            },
            Workload::Write { .. } => Self::ends(Duration::ZERO, ProcessExit::exit(0)),
            Workload::MissingProgram | Workload::NotExecutable => {
                return Err(not_executable(command));
            }
        })
    }

    /// A process that exits after a time, or earlier on SIGTERM.
    fn ends(after: Duration, end: ProcessExit) -> Self {
        Self {
            own_end: Some((after, end)),
            on_term: Some(ProcessExit::exit(143)),
            ..Self::default()
        }
    }

    /// A process that is killed by a signal and remains until its core dump has been written.
    fn dumps(after: Duration, end: ProcessExit) -> Self {
        Self {
            signalled: Some((after, end)),
            ..Self::ends(after + CORE_DUMP, end)
        }
    }

    /// The plan in a container with `memory.oom.group`: the kernel kills all of its processes at
    /// once.
    pub(super) fn in_oom_group(self) -> Self {
        match self.child_killed {
            Some(after) => Self {
                own_end: Some((after, ProcessExit::KILLED)),
                child_killed: None,
                ..self
            },
            None => self,
        }
    }

    /// Its exit on this signal; `None` if it keeps running.
    pub(super) fn on_signal(&self, signal: Signal) -> Option<ProcessExit> {
        match signal {
            Signal::DEFAULT | Signal::TERMINATE => self.on_term,
            Signal::KILL => Some(ProcessExit::exit(137)),
            _ => {
                let number = signal.linux_number()?;
                let (_, end) = self.also_ends_on.filter(|(other, _)| *other == number)?;
                Some(end)
            }
        }
    }
}

/// The exit code after raising a signal: the init of a PID namespace is killed only by signals of
/// its own faults.
fn exit_code_after(signal: u8) -> i32 {
    const FAULTS: [u8; 5] = [4, 5, 7, 8, 11];
    if FAULTS.contains(&signal) {
        128 + i32::from(signal)
    } else {
        99
    }
}

/// A runtime's message about a command that is no program of the image.
fn not_executable(command: &[String]) -> String {
    format!(
        "exec: {:?}: cannot be executed: the image holds {PROGRAM_PATH} alone",
        command.first().map_or("", String::as_str)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_process_exits_once_its_core_dump_is_written() {
        let (signal, after) = (11, SECOND);
        let dump = Workload::DumpCore { signal, after };
        let process = ProcessPlan::new(&dump.command(), None, HostInstant::default()).unwrap();
        assert_eq!(process.signalled, Some((SECOND, ProcessExit::exit(139))));
        assert_eq!(
            process.own_end,
            Some((SECOND + CORE_DUMP, ProcessExit::exit(139)))
        );
    }

    #[track_caller]
    fn check(command: &str, memory_mib: Option<u64>, own_end: Option<(u64, i32, bool)>) {
        let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        let memory = memory_mib.map(|mib| mib << 20);
        let process = ProcessPlan::new(&words, memory, HostInstant::default()).unwrap();
        let got = process
            .own_end
            .map(|(after, end)| (after.as_secs(), end.code, end.oom));
        assert_eq!(got, own_end);
    }

    #[test]
    fn each_workload_ends_as_it_says() {
        check("/workload until-term", None, None);
        check("/workload ignore-term", None, None);
        check("/workload exit 42 1000", None, Some((1, 42, false)));
        check("/workload exit-at 4 3000", None, Some((3, 4, false)));
        check("/workload orphan-child 3 1000", None, Some((1, 3, false)));
        check("/workload die 11 1000", None, Some((1, 139, false)));
        check("/workload die 9 1000", None, Some((1, 99, false)));
        check("/workload dance", None, Some((0, 97, false)));
        check("/workload write a line", None, Some((0, 0, false)));
    }

    #[test]
    fn memory_above_the_limit_is_an_oom_kill() {
        check("/workload allocate 64 1000", Some(16), Some((1, 137, true)));
        check("/workload allocate 64 1000", Some(64), Some((1, 98, false)));
        check("/workload allocate 64 1000", None, Some((1, 98, false)));
        check(
            "/workload allocate-in-child 64 1000 2000 5",
            Some(16),
            Some((3, 5, false)),
        );
        check(
            "/workload allocate-in-child 64 1000 2000 5",
            None,
            Some((1, 98, false)),
        );
    }

    #[test]
    fn workloads_end_on_sigterm_or_ignore_it() {
        let on_term = |mode: &str| {
            let command = [PROGRAM_PATH.to_owned(), mode.to_owned()];
            let process = ProcessPlan::new(&command, None, HostInstant::default());
            process.unwrap().on_term
        };
        assert_eq!(on_term("until-term"), Some(ProcessExit::exit(0)));
        assert_eq!(on_term("pause"), Some(ProcessExit::exit(0)));
        assert_eq!(on_term("ignore-term"), None);
        assert_eq!(
            ProcessPlan::ends(SECOND, ProcessExit::exit(1)).on_term,
            Some(ProcessExit::exit(143))
        );
    }

    #[test]
    fn a_process_ends_on_its_signal_and_no_other() {
        let waiting = Workload::UntilSignal {
            signal: 10,
            code: 5,
        };
        let process = ProcessPlan::new(&waiting.command(), None, HostInstant::default()).unwrap();
        assert_eq!(
            process.on_signal(Signal::USER_1),
            Some(ProcessExit::exit(5))
        );
        assert_eq!(process.on_signal(Signal::USER_2), None);
        assert_eq!(
            process.on_signal(Signal::DEFAULT),
            Some(ProcessExit::exit(143))
        );
        assert_eq!(
            process.on_signal(Signal::TERMINATE),
            Some(ProcessExit::exit(143))
        );
        assert_eq!(process.on_signal(Signal(64)), None);
    }

    #[test]
    fn an_oom_group_ends_with_its_child() {
        let allocating = Workload::AllocateInChild {
            mebibytes: 64,
            after: SECOND,
            then: SECOND,
            code: 5,
        };
        let process = |memory| {
            ProcessPlan::new(&allocating.command(), memory, HostInstant::default()).unwrap()
        };
        let killed = process(Some(16 << 20)).in_oom_group();
        assert_eq!(killed.own_end, Some((SECOND, ProcessExit::KILLED)));
        assert_eq!(killed.child_killed, None);
        assert_eq!(process(None).in_oom_group(), process(None));
    }

    #[test]
    fn a_program_missing_from_the_image_cannot_be_started() {
        let missing = ["/missing".to_owned()];
        let fault = ProcessPlan::new(&missing, None, HostInstant::default()).unwrap_err();
        assert!(fault.contains("/missing"), "{fault}");
    }
}
