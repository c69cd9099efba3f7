//! What the process of a container does: the workload program, told as data.

use std::time::Duration;

use crate::history::{HostInstant, Signal};
use crate::workload::Workload;
use crate::workload::program::PROGRAM_PATH;

/// How long the program takes to which core dumps go.
const CORE_DUMP: Duration = Duration::from_millis(200);

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The exit code, 128 + the signal for a death by one.
    pub code: i32,
    /// Whether the kernel killed it for its memory.
    pub oom: bool,
}

/// What a process is going to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Life {
    /// When it ends by itself, and how.
    pub(super) own_end: Option<(Duration, End)>,
    /// When it gets the signal that it then dies of, while somebody reads its core.
    pub(super) signalled: Option<(Duration, End)>,
    /// When the kernel kills a child of it for its memory.
    pub(super) child_killed: Option<Duration>,
    /// Whether a child of it lives on that holds its output open, unless its PID namespace ends.
    pub(super) leaves_child: bool,
    /// How it ends when it gets a SIGTERM; none if it ignores that.
    pub(super) on_term: Option<End>,
    /// The signal that it heeds besides, by its number in Linux, and how it then ends.
    pub(super) heeds: Option<(u8, End)>,
}

impl End {
    pub(super) const KILLED: Self = Self {
        code: 137,
        oom: true,
    };

    pub(super) fn exit(code: i32) -> Self {
        Self { code, oom: false }
    }
}

impl Life {
    /// What this command does under this limit of memory, if it begins now.
    ///
    /// # Errors
    /// If there is no such program; in the words of a runtime.
    pub(super) fn of(
        command: &[String],
        memory_bytes: Option<u64>,
        now: HostInstant,
    ) -> Result<Self, String> {
        let Some(workload) = Workload::parse(command) else {
            return Ok(Self::ends(Duration::ZERO, End::exit(97)));
        };
        let is_too_much =
            |mebibytes: u32| memory_bytes.is_some_and(|limit| u64::from(mebibytes) << 20 > limit);
        Ok(match workload {
            Workload::Pause | Workload::Obey | Workload::Zombies { .. } => Self {
                on_term: Some(End::exit(0)),
                ..Self::default()
            },
            Workload::Ignore => Self::default(),
            Workload::Heed { signal, code } => Self {
                on_term: Some(End::exit(143)),
                heeds: Some((signal, End::exit(code.into()))),
                ..Self::default()
            },
            Workload::Exit { code, after } => Self::ends(after, End::exit(code.into())),
            Workload::Leave { code, after } => Self {
                leaves_child: true,
                ..Self::ends(after, End::exit(code.into()))
            },
            Workload::ExitAt { code, unix_ms } => {
                let now_ms = u64::try_from(now.realtime_ns / 1_000_000).unwrap_or_default();
                let after = Duration::from_millis(unix_ms.saturating_sub(now_ms));
                Self::ends(after, End::exit(code.into()))
            }
            Workload::Die { signal, after } => Self::ends(after, End::exit(death_by(signal))),
            Workload::Dump { signal, after } => Self::dumps(after, End::exit(death_by(signal))),
            Workload::Eat { mebibytes, after } if is_too_much(mebibytes) => {
                Self::ends(after, End::KILLED)
            }
            Workload::ChildEat {
                mebibytes,
                after,
                then,
                code,
            } if is_too_much(mebibytes) => Self {
                child_killed: Some(after),
                ..Self::ends(after + then, End::exit(code.into()))
            },
            Workload::Eat { after, .. } | Workload::ChildEat { after, .. } => {
                Self::ends(after, End::exit(98))
            }
            Workload::EatOnTerm { mebibytes } => Self {
                on_term: Some(if is_too_much(mebibytes) {
                    End::KILLED
                } else {
                    End::exit(98)
                }),
                ..Self::default()
            },
            Workload::Write { .. } => Self::ends(Duration::ZERO, End::exit(0)),
            Workload::Missing | Workload::NoProgram => {
                return Err(format!(
                    "exec: {:?}: cannot be executed: the image holds {PROGRAM_PATH} alone",
                    command.first().map_or("", String::as_str)
                ));
            }
        })
    }

    /// A process that waits, and takes a SIGTERM meanwhile for its default.
    fn ends(after: Duration, end: End) -> Self {
        Self {
            own_end: Some((after, end)),
            on_term: Some(End::exit(143)),
            ..Self::default()
        }
    }

    /// A process that dies of a signal, and is there until its core has been read.
    fn dumps(after: Duration, end: End) -> Self {
        Self {
            signalled: Some((after, end)),
            ..Self::ends(after + CORE_DUMP, end)
        }
    }

    /// The same where the kernel kills all of a container with any process of it.
    pub(super) fn in_oom_group(self) -> Self {
        match self.child_killed {
            Some(after) => Self {
                own_end: Some((after, End::KILLED)),
                child_killed: None,
                ..self
            },
            None => self,
        }
    }

    /// How it ends when a stop sends this signal; none if it goes on.
    pub(super) fn on_stop(&self, signal: Signal) -> Option<End> {
        let number = match signal {
            Signal::DEFAULT | Signal::TERMINATE => return self.on_term,
            Signal::HANGUP => 1,
            Signal::QUIT => 3,
            Signal::USER_1 => 10,
            Signal::USER_2 => 12,
            Signal(_) => return None,
        };
        let (_, end) = self.heeds.filter(|(heeded, _)| *heeded == number)?;
        Some(end)
    }
}

/// The init of a container dies only of the signals that its own faults raise.
fn death_by(signal: u8) -> i32 {
    const FAULTS: [u8; 5] = [4, 5, 7, 8, 11];
    if FAULTS.contains(&signal) {
        128 + i32::from(signal)
    } else {
        99
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_process_is_gone_once_its_core_is_read() {
        let (signal, after) = (11, SECOND);
        let dump = Workload::Dump { signal, after };
        let life = Life::of(&dump.command(), None, HostInstant::default()).unwrap();
        assert_eq!(life.signalled, Some((SECOND, End::exit(139))));
        assert_eq!(life.own_end, Some((SECOND + CORE_DUMP, End::exit(139))));
    }

    #[track_caller]
    fn check(command: &str, memory_mib: Option<u64>, own_end: Option<(u64, i32, bool)>) {
        let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        let memory = memory_mib.map(|mib| mib << 20);
        let life = Life::of(&words, memory, HostInstant::default()).unwrap();
        let got = life
            .own_end
            .map(|(after, end)| (after.as_secs(), end.code, end.oom));
        assert_eq!(got, own_end);
    }

    #[test]
    fn each_workload_ends_as_it_says() {
        check("/workload obey", None, None);
        check("/workload ignore", None, None);
        check("/workload exit 42 1000", None, Some((1, 42, false)));
        check("/workload exit-at 4 3000", None, Some((3, 4, false)));
        check("/workload leave 3 1000", None, Some((1, 3, false)));
        check("/workload die 11 1000", None, Some((1, 139, false)));
        check("/workload die 9 1000", None, Some((1, 99, false)));
        check("/workload dance", None, Some((0, 97, false)));
        check("/workload write a line", None, Some((0, 0, false)));
    }

    #[test]
    fn memory_above_the_limit_is_killed_for() {
        check("/workload eat 64 1000", Some(16), Some((1, 137, true)));
        check("/workload eat 64 1000", Some(64), Some((1, 98, false)));
        check("/workload eat 64 1000", None, Some((1, 98, false)));
        check(
            "/workload child-eat 64 1000 2000 5",
            Some(16),
            Some((3, 5, false)),
        );
        check(
            "/workload child-eat 64 1000 2000 5",
            None,
            Some((1, 98, false)),
        );
    }

    #[test]
    fn signals_are_obeyed_or_not() {
        let on_term = |mode: &str| {
            let command = [PROGRAM_PATH.to_owned(), mode.to_owned()];
            let life = Life::of(&command, None, HostInstant::default());
            life.unwrap().on_term
        };
        assert_eq!(on_term("obey"), Some(End::exit(0)));
        assert_eq!(on_term("pause"), Some(End::exit(0)));
        assert_eq!(on_term("ignore"), None);
        assert_eq!(
            Life::ends(SECOND, End::exit(1)).on_term,
            Some(End::exit(143))
        );
    }

    #[test]
    fn a_process_heeds_its_signal_and_no_other() {
        let heed = Workload::Heed {
            signal: 10,
            code: 5,
        };
        let life = Life::of(&heed.command(), None, HostInstant::default()).unwrap();
        assert_eq!(life.on_stop(Signal::USER_1), Some(End::exit(5)));
        assert_eq!(life.on_stop(Signal::USER_2), None);
        assert_eq!(life.on_stop(Signal::DEFAULT), Some(End::exit(143)));
        assert_eq!(life.on_stop(Signal::TERMINATE), Some(End::exit(143)));
        assert_eq!(life.on_stop(Signal(64)), None);
    }

    #[test]
    fn an_oom_group_ends_with_its_child() {
        let eat = Workload::ChildEat {
            mebibytes: 64,
            after: SECOND,
            then: SECOND,
            code: 5,
        };
        let life = |memory| Life::of(&eat.command(), memory, HostInstant::default()).unwrap();
        let killed = life(Some(16 << 20)).in_oom_group();
        assert_eq!(killed.own_end, Some((SECOND, End::KILLED)));
        assert_eq!(killed.child_killed, None);
        assert_eq!(life(None).in_oom_group(), life(None));
    }

    #[test]
    fn a_program_that_the_image_lacks_cannot_be_started() {
        let missing = ["/missing".to_owned()];
        let fault = Life::of(&missing, None, HostInstant::default()).unwrap_err();
        assert!(fault.contains("/missing"), "{fault}");
    }
}
