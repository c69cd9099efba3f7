//! The results of commands, and that none of their processes outlives its time.

use super::*;
use crate::host::container_process;
use crate::host::{Reactor, elapsed, now};

const LONG: Duration = Duration::from_secs(60);

fn run_blocking(command: &str, bound: Duration) -> Result<(), String> {
    let reactor = Reactor::real().unwrap();
    let ran = reactor.runtime().block_on(run(command, bound));
    ran.map_err(|fault| fault.to_string())
}

#[track_caller]
fn check(command: &str, fault: &str) {
    let message = run_blocking(command, LONG).unwrap_err();
    assert_eq!(message, fault);
}

#[test]
fn a_command_succeeds_or_says_why_not() {
    assert_eq!(run_blocking("exit 0", LONG), Ok(()));
    assert_eq!(run_blocking("echo nobody asks", LONG), Ok(()));
    check("exit 3", "it ended with exit status: 3, without output");
    check(
        "echo no image; echo at all >&2; exit 1",
        "it ended with exit status: 1; its output: no image\nat all",
    );
    check(
        "kill -9 $$",
        "it ended with signal: 9 (SIGKILL), without output",
    );
}

#[test]
fn the_lines_that_a_command_prints_are_counted() {
    let reactor = Reactor::real().unwrap();
    let counted = |command| reactor.runtime().block_on(lines(command, LONG)).unwrap();
    assert_eq!(counted("true"), 0);
    let printed = "seq 100000; echo warning >&2; printf unended";
    assert_eq!(counted(printed), 100_001);
}

#[test]
fn only_the_end_of_its_output_is_reported() {
    let message = run_blocking("yes | head -c 1000000; echo end; exit 1", LONG).unwrap_err();
    assert!(message.ends_with("y\nend"), "{message}");
    assert!(message.len() < 2 * OUTPUT_BYTES);
}

/// Waits until the process has ended whose number is in a file: the system does not report the
/// end of a killed process that is not our child.
fn await_end(file: &Path) {
    let pid = std::fs::read_to_string(file).unwrap();
    let process = std::path::Path::new("/proc").join(pid.trim());
    let began = now();
    while container_process::began(&process).is_some() {
        assert!(elapsed(began) < LONG, "{pid} lives");
        std::thread::yield_now();
    }
}

#[test]
fn a_command_that_times_out_is_killed_with_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let command = format!("sleep 600 & echo $! >{}; wait", pid.display());
    let began = now();
    let message = run_blocking(&command, Duration::from_millis(500)).unwrap_err();
    assert!(
        message.starts_with("it did not end within 500ms"),
        "{message}"
    );
    assert!(elapsed(began) < LONG);
    await_end(&pid);
}

#[test]
fn background_processes_are_killed_without_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let command = format!("sleep 600 & echo $! >{}", pid.display());
    let began = now();
    assert_eq!(run_blocking(&command, LONG), Ok(()));
    assert!(elapsed(began) < LONG);
    await_end(&pid);
}

#[test]
fn processes_that_left_the_group_are_killed() {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let command = format!(
        "setsid sh -c 'echo $$ >{0}.new; mv {0}.new {0}; exec sleep 600' & while ! [ -e {0} ]; do \
         sleep 0.01; done",
        pid.display()
    );
    assert_eq!(run_blocking(&command, LONG), Ok(()));
    await_end(&pid);
}

#[test]
fn a_command_with_unread_output_times_out() {
    let message = run_blocking("yes", Duration::from_millis(200)).unwrap_err();
    assert!(
        message.starts_with("it did not end within 200ms"),
        "{message}"
    );
}

fn started(command: &str, bound: Duration) -> Result<(), String> {
    let reactor = Reactor::real().unwrap();
    let ran = reactor.runtime().block_on(start(command, bound));
    ran.map_err(|fault| fault.to_string())
}

#[test]
fn a_started_runtime_keeps_running_and_can_write() {
    let folder = tempfile::tempdir().unwrap();
    let (go, went) = (folder.path().join("go"), folder.path().join("went"));
    let daemon = format!(
        "{{ while ! [ -e {} ]; do sleep 0.01; done; echo output && echo $$ >{}; }} &",
        go.display(),
        went.display()
    );
    assert_eq!(started(&daemon, LONG), Ok(()));
    std::fs::write(go, "").unwrap();
    let began = now();
    while !went.exists() {
        assert!(elapsed(began) < LONG, "it has not lived on");
        std::thread::yield_now();
    }
}

#[test]
fn a_failed_start_has_a_reason() {
    let message = started("echo no unit >&2; exit 5", LONG).unwrap_err();
    assert_eq!(message, "it ended with exit status: 5; its output: no unit");
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let in_front = format!("echo serving; echo $$ >{}; exec sleep 600", pid.display());
    let message = started(&in_front, Duration::from_millis(500)).unwrap_err();
    let expected = "it did not end within 500ms and was killed; its output: serving";
    assert_eq!(message, expected);
    await_end(&pid);
}

#[test]
fn standard_output_is_returned_without_standard_error() {
    let shell = |script| {
        let printed = output(Path::new("/bin/sh"), &["-c", script], LONG);
        printed.map_err(|fault| fault.to_string())
    };
    assert_eq!(
        shell("echo version; echo warning >&2"),
        Ok("version\n".to_owned())
    );
    let failed = shell("echo version; echo no unit >&2; exit 4");
    let expected = "it ended with exit status: 4; its output: no unit\n";
    assert_eq!(
        failed.map_err(|fault| fault + "\n"),
        Err(expected.to_owned())
    );
    let missing = output(Path::new("/no/such/program"), &[], LONG);
    assert!(
        matches!(missing, Err(CommandError::System(_))),
        "{missing:?}"
    );
    let slow = output(
        Path::new("/bin/sh"),
        &["-c", "sleep 600"],
        Duration::from_millis(50),
    );
    assert!(matches!(slow, Err(CommandError::Slow { .. })), "{slow:?}");
}

#[test]
fn simulated_time_stands_still_while_a_command_runs() {
    let reactor = Reactor::simulated().unwrap();
    let began = reactor.runtime().block_on(async {
        let began = now();
        let bounded = tokio::time::timeout(LONG, run("sleep 0.1", LONG)).await;
        assert!(bounded.is_ok_and(|ran| ran.is_ok()));
        elapsed(began)
    });
    assert_eq!(began, Duration::ZERO);
}
