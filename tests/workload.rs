//! The workload program, run on this machine: each mode keeps its promise.
//!
//! Here it is an ordinary process. Conformance runs test it as the init of a container.

#![expect(clippy::unwrap_used, reason = "all of this is a test, its helpers too")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use cri_event_conformance::testing::history::HostInstant;
use cri_event_conformance::testing::host;
use cri_event_conformance::testing::workload::{PROGRAM, Workload};
use rustix::process::{Pid, Signal, kill_process};

const NOW: Duration = Duration::ZERO;
const LONG: Duration = Duration::from_secs(60);

/// The number of polls until a process must have reached a state, which takes it well under a
/// millisecond; one poll takes about ten microseconds.
const LOOKS: u32 = 200_000;

/// The program as a file, written once before any test runs it: executing a file that another
/// thread has open for writing, or a fork of this process, fails with ETXTBSY.
static FILE: LazyLock<PathBuf> = LazyLock::new(|| {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("workload");
    let fresh = path.with_extension(std::process::id().to_string());
    fs::write(&fresh, PROGRAM).unwrap();
    fs::set_permissions(&fresh, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(&fresh, &path).unwrap();
    path
});

fn spawn(args: &[String]) -> Child {
    let mut command = Command::new(&*FILE);
    command
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn start(workload: &Workload) -> Child {
    spawn(&workload.command()[1..])
}

/// Waits until the process sleeps, when a signal can no longer be too early: before that it has not
/// blocked SIGTERM, which has its default action.
fn settle(child: &Child) {
    let stat = format!("/proc/{}/stat", child.id());
    let sleeps = || fs::read_to_string(&stat).unwrap().contains(") S ");
    assert!((0..LOOKS).any(|_| sleeps()), "it waits for a signal");
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

fn end(mut child: Child) -> ExitStatus {
    child.wait().unwrap()
}

/// The promise for a parent on this machine: a signal, or an exit code.
#[track_caller]
fn keeps_its_promise(workload: &Workload) {
    let status = end(start(workload));
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    assert_eq!(code, workload.declared_exit(), "{workload:?}: {status}");
}

#[track_caller]
fn is_misused(args: &[&str]) {
    let args: Vec<_> = args.iter().map(|&arg| arg.to_owned()).collect();
    let output = spawn(&args).wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(97), "{args:?}");
    assert!(output.stderr.starts_with(b"usage: workload "), "{args:?}");
}

#[test]
fn exit_codes_are_as_declared() {
    for code in [0, 1, 42, 255] {
        keeps_its_promise(&Workload::Exit { code, after: NOW });
    }
    keeps_its_promise(&Workload::Exit {
        code: 3,
        after: Duration::from_millis(20),
    });
}

#[test]
fn exits_at_a_time_are_at_once_if_it_is_over() {
    let unix_ms = |at: HostInstant| u64::try_from(at.realtime_ns / 1_000_000).unwrap();
    let exit_at = |unix_ms: u64| Workload::ExitAt { code: 4, unix_ms };
    keeps_its_promise(&exit_at(0));
    let soon = unix_ms(host::now()) + 200;
    keeps_its_promise(&exit_at(soon));
    assert!(unix_ms(host::now()) >= soon);
    let child = start(&exit_at(soon + 60_000));
    settle(&child);
    send(&child, Signal::TERM);
    assert_eq!(end(child).code(), Some(143));
}

#[test]
fn sigterm_ends_a_wait_early() {
    let child = start(&Workload::Exit {
        code: 0,
        after: LONG,
    });
    settle(&child);
    send(&child, Signal::TERM);
    assert_eq!(end(child).code(), Some(143));
}

#[test]
fn until_term_pause_and_zombies_exit_on_sigterm() {
    for workload in [
        Workload::UntilTerm,
        Workload::Pause,
        Workload::Zombies { count: 2 },
        Workload::WriteUntilTerm { every: LONG },
    ] {
        let child = start(&workload);
        settle(&child);
        send(&child, Signal::TERM);
        assert_eq!(end(child).code(), Some(0), "{workload:?}");
    }
}

#[test]
fn until_signal_distinguishes_its_signal_from_a_stop_signal() {
    for (signal, code) in [(Signal::USR1, 5), (Signal::TERM, 143), (Signal::INT, 130)] {
        let waiting = Workload::UntilSignal {
            signal: 10,
            code: 5,
        };
        let child = start(&waiting);
        settle(&child);
        send(&child, signal);
        assert_eq!(end(child).code(), Some(code), "{signal:?}");
    }
    is_misused(&["until-signal", "0", "5"]);
    is_misused(&["until-signal", "10"]);
}

#[test]
fn ignore_ends_by_sigkill_alone() {
    let child = start(&Workload::IgnoreTerm);
    settle(&child);
    for signal in [
        Signal::TERM,
        Signal::INT,
        Signal::HUP,
        Signal::USR1,
        Signal::QUIT,
    ] {
        send(&child, signal);
    }
    send(&child, Signal::KILL);
    assert_eq!(end(child).signal(), Some(9));
}

#[test]
fn die_dies_by_the_signal() {
    for signal in [1, 2, 4, 5, 6, 7, 8, 9, 11, 13, 15, 31, 34, 64] {
        keeps_its_promise(&Workload::Die { signal, after: NOW });
    }
}

#[test]
fn dump_core_dies_by_the_signal() {
    // Where cores are files, none is to be left here.
    let line = format!("ulimit -c 0; exec {} dump-core 11", FILE.display());
    let child = Command::new("sh").args(["-c", &line]).spawn().unwrap();
    assert_eq!(end(child).signal(), Some(11));
}

#[test]
fn a_signal_that_does_not_kill_is_not_pretended() {
    let harmless = Workload::Die {
        signal: 17,
        after: NOW,
    };
    assert_eq!(end(start(&harmless)).code(), Some(99));
}

#[test]
fn allocated_memory_without_an_oom_kill_has_its_own_exit_code() {
    let allocating = Workload::Allocate {
        mebibytes: 4,
        after: NOW,
    };
    assert_eq!(end(start(&allocating)).code(), Some(98));
    let child_eat = Workload::AllocateInChild {
        mebibytes: 4,
        after: NOW,
        then: NOW,
        code: 5,
    };
    assert_eq!(end(start(&child_eat)).code(), Some(98));
}

#[test]
fn the_parent_outlives_a_killed_child() {
    let workload = Workload::AllocateInChild {
        mebibytes: 1,
        after: LONG,
        then: NOW,
        code: 5,
    };
    let child = start(&workload);
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let child_pid = || fs::read_to_string(&children).unwrap().trim().parse().ok();
    let child_pid: i32 = (0..LOOKS)
        .find_map(|_| child_pid())
        .expect("it has a child");
    kill_process(Pid::from_raw(child_pid).unwrap(), Signal::KILL).unwrap();
    assert_eq!(end(child).code(), workload.declared_exit());
}

#[test]
fn write_writes_a_line() {
    let mut child = start(&Workload::Write {
        text: "a  line".to_owned(),
    });
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!((line.as_str(), end(child).code()), ("a  line\n", Some(0)));
    let output = spawn(&["write", "two", "words"].map(str::to_owned))
        .wait_with_output()
        .unwrap();
    assert_eq!(output.stdout, b"two words\n");
}

#[test]
fn write_until_term_writes_one_line_after_the_other() {
    let mut child = start(&Workload::WriteUntilTerm {
        every: Duration::from_millis(1),
    });
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for line in lines.take(3) {
        // And its end.
        assert_eq!(line.unwrap().len(), 63);
    }
    send(&child, Signal::TERM);
    end(child);
    is_misused(&["write-until-term"]);
}

#[test]
fn wrong_arguments_are_a_misuse() {
    is_misused(&["nonsense"]);
    is_misused(&["exit"]);
    is_misused(&["exit", "256"]);
    is_misused(&["exit", "-1"]);
    is_misused(&["exit", "1", "2", "3"]);
    is_misused(&["exit", "1", ""]);
    is_misused(&["exit-at", "1"]);
    is_misused(&["die", "65"]);
    is_misused(&["dump", "65"]);
    is_misused(&["dump"]);
    is_misused(&["allocate"]);
    is_misused(&["allocate-in-child", "1", "2", "3"]);
    is_misused(&["until-term", "me"]);
    is_misused(&["pause", "x"]);
}
