//! The modes of the workload program, as types.
//!
//! `fixtures/workload.rs` is the program itself. The program understands every command of this
//! module, except [`Workload::MissingProgram`] and [`Workload::NotExecutable`].

use std::time::Duration;

/// The program: a static executable of Linux for the architecture of this build.
pub const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/workload"));

/// The path of the program in the image.
pub const PROGRAM_PATH: &str = "/workload";

/// A file that exists in every container and is not executable.
const NO_PROGRAM_PATH: &str = "/proc/version";

/// The behaviour of a container.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Workload {
    /// Reaps children forever, as the init of a sandbox; a SIGTERM ends it with code 0.
    Pause,
    /// Exits with `code` after a time, or with 143 if a SIGTERM comes first.
    Exit { code: u8, after: Duration },
    /// Exits with `code` at a wall-clock time, at once if it is past; or with 143 if a SIGTERM
    /// comes first.
    ExitAt {
        code: u8,
        /// In milliseconds since 1970.
        unix_ms: u64,
    },
    /// Waits for a SIGTERM, then exits with code 0 at once.
    UntilTerm,
    /// Ignores every signal except SIGKILL.
    IgnoreTerm,
    /// Waits for a signal, then exits with `code`; with 143 if a SIGTERM comes first.
    UntilSignal {
        /// From 1 to 64.
        signal: u8,
        code: u8,
    },
    /// Is killed by a signal after a time.
    ///
    /// The init of a container is only killed by signals of faults: SIGILL, SIGTRAP, SIGBUS,
    /// SIGSEGV and, on `x86_64`, SIGFPE. With any other it exits with code 99 instead.
    Die {
        /// From 1 to 64.
        signal: u8,
        after: Duration,
    },
    /// Is killed by a signal, with a core dump larger than a pipe's buffer.
    DumpCore { signal: u8, after: Duration },
    /// Allocates memory after a time, to be OOM-killed; otherwise it exits with code 98.
    Allocate {
        mebibytes: u32,
        /// The delay before the allocation.
        after: Duration,
    },
    /// Has a child that allocates memory, outlives it, and exits with `code`; with 98 if the child
    /// was not killed.
    AllocateInChild {
        mebibytes: u32,
        /// The delay before the child's allocation.
        after: Duration,
        /// The time that the parent runs after the child's death.
        then: Duration,
        code: u8,
    },
    /// Waits for a SIGTERM and then allocates memory, to be OOM-killed; otherwise it exits with
    /// code 98.
    AllocateOnTerm { mebibytes: u32 },
    /// Starts a child that waits forever and holds the output open, and exits with `code`; the
    /// child ends with the PID namespace.
    OrphanChild { code: u8, after: Duration },
    /// Leaves zombies to the init of its PID namespace, then behaves like [`Workload::UntilTerm`].
    Zombies { count: u32 },
    /// Writes a line to its standard output and exits with code 0.
    Write {
        /// The line, without its end.
        text: String,
    },
    /// Writes a line of 64 bytes to its standard output at an interval until a SIGTERM, then exits
    /// with code 0.
    WriteUntilTerm { every: Duration },
    /// A command missing from the image: the start of the container fails.
    MissingProgram,
    /// A file that is not executable: the start of the container fails.
    NotExecutable,
}

impl Workload {
    /// The whole command line, beginning with the path of the program.
    pub fn command(&self) -> Vec<String> {
        let ms = |time: &Duration| time.as_millis().to_string();
        let (mode, arguments) = match self {
            Self::Pause => ("pause", vec![]),
            Self::Exit { code, after } => ("exit", vec![code.to_string(), ms(after)]),
            Self::ExitAt { code, unix_ms } => {
                ("exit-at", vec![code.to_string(), unix_ms.to_string()])
            }
            Self::UntilTerm => ("until-term", vec![]),
            Self::IgnoreTerm => ("ignore-term", vec![]),
            Self::UntilSignal { signal, code } => {
                ("until-signal", vec![signal.to_string(), code.to_string()])
            }
            Self::Die { signal, after } => ("die", vec![signal.to_string(), ms(after)]),
            Self::DumpCore { signal, after } => ("dump-core", vec![signal.to_string(), ms(after)]),
            Self::Allocate { mebibytes, after } => {
                ("allocate", vec![mebibytes.to_string(), ms(after)])
            }
            Self::AllocateInChild {
                mebibytes,
                after,
                then,
                code,
            } => (
                "allocate-in-child",
                vec![mebibytes.to_string(), ms(after), ms(then), code.to_string()],
            ),
            Self::AllocateOnTerm { mebibytes } => ("allocate-on-term", vec![mebibytes.to_string()]),
            Self::OrphanChild { code, after } => {
                ("orphan-child", vec![code.to_string(), ms(after)])
            }
            Self::Zombies { count } => ("zombies", vec![count.to_string()]),
            Self::Write { text } => ("write", vec![text.clone()]),
            Self::WriteUntilTerm { every } => ("write-until-term", vec![ms(every)]),
            Self::MissingProgram => return vec!["/missing".to_owned()],
            Self::NotExecutable => return vec![NO_PROGRAM_PATH.to_owned()],
        };
        [PROGRAM_PATH, mode]
            .map(str::to_owned)
            .into_iter()
            .chain(arguments)
            .collect()
    }

    /// Parses a command line; `None` if the program does not support it.
    ///
    /// An empty command is the image's default, [`Workload::Pause`]; one of another program is
    /// [`Workload::MissingProgram`], since the image has no other.
    pub fn parse(command: &[String]) -> Option<Self> {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let ms = |text: &str| text.parse().ok().map(Duration::from_millis);
        Some(match words[..] {
            [] | [PROGRAM_PATH] | [PROGRAM_PATH, "pause"] => Self::Pause,
            [PROGRAM_PATH, "exit", code] => Self::Exit {
                code: code.parse().ok()?,
                after: Duration::ZERO,
            },
            [PROGRAM_PATH, "exit", code, after] => Self::Exit {
                code: code.parse().ok()?,
                after: ms(after)?,
            },
            [PROGRAM_PATH, "exit-at", code, unix_ms] => Self::ExitAt {
                code: code.parse().ok()?,
                unix_ms: unix_ms.parse().ok()?,
            },
            [PROGRAM_PATH, "until-term"] => Self::UntilTerm,
            [PROGRAM_PATH, "ignore-term"] => Self::IgnoreTerm,
            [PROGRAM_PATH, "until-signal", signal, code] => Self::UntilSignal {
                signal: signal.parse().ok()?,
                code: code.parse().ok()?,
            },
            [PROGRAM_PATH, "die", signal] => Self::die(signal, Duration::ZERO)?,
            [PROGRAM_PATH, "die", signal, after] => Self::die(signal, ms(after)?)?,
            [PROGRAM_PATH, "dump-core", signal, after] => Self::dump_core(signal, ms(after)?)?,
            [PROGRAM_PATH, "allocate", mebibytes] => Self::Allocate {
                mebibytes: mebibytes.parse().ok()?,
                after: Duration::ZERO,
            },
            [PROGRAM_PATH, "allocate", mebibytes, after] => Self::Allocate {
                mebibytes: mebibytes.parse().ok()?,
                after: ms(after)?,
            },
            [
                PROGRAM_PATH,
                "allocate-in-child",
                mebibytes,
                after,
                then,
                code,
            ] => Self::AllocateInChild {
                mebibytes: mebibytes.parse().ok()?,
                after: ms(after)?,
                then: ms(then)?,
                code: code.parse().ok()?,
            },
            [PROGRAM_PATH, "allocate-on-term", mebibytes] => Self::AllocateOnTerm {
                mebibytes: mebibytes.parse().ok()?,
            },
            [PROGRAM_PATH, "orphan-child", code] => Self::OrphanChild {
                code: code.parse().ok()?,
                after: Duration::ZERO,
            },
            [PROGRAM_PATH, "orphan-child", code, after] => Self::OrphanChild {
                code: code.parse().ok()?,
                after: ms(after)?,
            },
            [PROGRAM_PATH, "zombies", count] => Self::Zombies {
                count: count.parse().ok()?,
            },
            [PROGRAM_PATH, "write", ref text @ ..] => Self::Write {
                text: text.join(" "),
            },
            [PROGRAM_PATH, "write-until-term", every] => Self::WriteUntilTerm { every: ms(every)? },
            [PROGRAM_PATH, ..] => return None,
            [NO_PROGRAM_PATH] => Self::NotExecutable,
            _ => Self::MissingProgram,
        })
    }

    fn die(signal: &str, after: Duration) -> Option<Self> {
        let signal = signal.parse().ok()?;
        Some(Self::Die { signal, after })
    }

    fn dump_core(signal: &str, after: Duration) -> Option<Self> {
        let signal = signal.parse().ok()?;
        Some(Self::DumpCore { signal, after })
    }

    /// The exit code of the undisturbed program, as a runtime reports it: 128 + the signal for a
    /// death by a signal.
    pub fn declared_exit(&self) -> Option<i32> {
        match self {
            Self::Exit { code, .. }
            | Self::ExitAt { code, .. }
            | Self::AllocateInChild { code, .. }
            | Self::OrphanChild { code, .. } => Some(i32::from(*code)),
            Self::Die { signal, .. } | Self::DumpCore { signal, .. } => {
                Some(128 + i32::from(*signal))
            }
            Self::Write { .. } => Some(0),
            Self::Pause
            | Self::UntilTerm
            | Self::IgnoreTerm
            | Self::UntilSignal { .. }
            | Self::Allocate { .. }
            | Self::AllocateOnTerm { .. }
            | Self::Zombies { .. }
            | Self::WriteUntilTerm { .. }
            | Self::MissingProgram
            | Self::NotExecutable => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[track_caller]
    fn check(workload: &Workload, command: &str, declared_exit: Option<i32>) {
        assert_eq!(workload.command().join(" "), command);
        assert_eq!(
            Workload::parse(&workload.command()).as_ref(),
            Some(workload)
        );
        assert_eq!(workload.declared_exit(), declared_exit);
    }

    #[test]
    fn each_workload_has_its_command_and_promise() {
        check(&Workload::Pause, "/workload pause", None);
        check(
            &Workload::Exit {
                code: 42,
                after: SECOND,
            },
            "/workload exit 42 1000",
            Some(42),
        );
        let exit_at = Workload::ExitAt {
            code: 3,
            unix_ms: 1_000,
        };
        check(&exit_at, "/workload exit-at 3 1000", Some(3));
        check(&Workload::UntilTerm, "/workload until-term", None);
        check(&Workload::IgnoreTerm, "/workload ignore-term", None);
        let until_signal = Workload::UntilSignal {
            signal: 10,
            code: 5,
        };
        check(&until_signal, "/workload until-signal 10 5", None);
        check(
            &Workload::Die {
                signal: 11,
                after: SECOND,
            },
            "/workload die 11 1000",
            Some(139),
        );
        let (signal, after) = (11, SECOND);
        let dump_core = Workload::DumpCore { signal, after };
        check(&dump_core, "/workload dump-core 11 1000", Some(139));
        check(
            &Workload::Allocate {
                mebibytes: 64,
                after: SECOND,
            },
            "/workload allocate 64 1000",
            None,
        );
        let in_child = Workload::AllocateInChild {
            mebibytes: 64,
            after: SECOND,
            then: SECOND * 2,
            code: 5,
        };
        check(
            &in_child,
            "/workload allocate-in-child 64 1000 2000 5",
            Some(5),
        );
        let on_term = Workload::AllocateOnTerm { mebibytes: 64 };
        check(&on_term, "/workload allocate-on-term 64", None);
        let orphan_child = Workload::OrphanChild {
            code: 3,
            after: SECOND,
        };
        check(&orphan_child, "/workload orphan-child 3 1000", Some(3));
        check(&Workload::Zombies { count: 3 }, "/workload zombies 3", None);
        let text = "a line".to_owned();
        let write = Workload::Write { text };
        check(&write, "/workload write a line", Some(0));
        let every = SECOND;
        let writes = Workload::WriteUntilTerm { every };
        check(&writes, "/workload write-until-term 1000", None);
        check(&Workload::MissingProgram, "/missing", None);
    }

    #[test]
    fn a_text_is_one_argument() {
        let command = Workload::Write {
            text: "a  line".into(),
        }
        .command();
        assert_eq!(command, ["/workload", "write", "a  line"]);
    }

    #[track_caller]
    fn parses(command: &str, expect: Option<&Workload>) {
        let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        assert_eq!(Workload::parse(&words).as_ref(), expect);
    }

    #[test]
    fn a_command_is_taken_as_the_program_takes_it() {
        let exit = |code| Workload::Exit {
            code,
            after: Duration::ZERO,
        };
        parses("", Some(&Workload::Pause));
        parses("/workload", Some(&Workload::Pause));
        parses("/workload exit 7", Some(&exit(7)));
        parses("/workload exit 300", None);
        parses("/workload dance", None);
        parses("sleep 1", Some(&Workload::MissingProgram));
    }

    #[test]
    fn the_program_is_a_small_static_executable() {
        assert!(PROGRAM.starts_with(b"\x7fELF\x02"), "a 64-bit ELF file");
        assert!(PROGRAM.len() < 200 << 10, "{} bytes", PROGRAM.len());
        let interpreter = b"ld-linux";
        assert!(
            !PROGRAM
                .windows(interpreter.len())
                .any(|window| window == interpreter)
        );
    }
}
