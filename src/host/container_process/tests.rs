//! Processes and monitors are found by id and age, and signalled by a handle.

use std::process::{Child, Command};

use rustix::process::Pid;

use super::*;
use crate::host::BootTicks;

fn own(id: &str) -> OwnId {
    let (id, since) = (id.to_owned(), BootTicks(0));
    OwnId { id, since }
}

#[test]
fn a_cgroup_names_its_sandbox_in_its_last_part() {
    assert!(names("0::/k8s.io/abc\n", "abc"));
    assert!(names("9:cpu:/\n8:memory:/pods/crio-abc.scope\n", "abc"));
    assert!(!names("0::/pods/crio-conmon-abc.scope\n", "abc"));
    for other in [
        "/abc/another",
        "/k8s.io/abcd",
        "/x.abc",
        "/crio-abc.service",
        "/1-abc",
    ] {
        assert!(!names(&format!("0::{other}\n"), "abc"), "{other}");
    }
    assert!(!names("", "abc"));
}

#[test]
fn no_process_is_that_of_a_sandbox_that_is_not_there() {
    for find in [find, find_newest] {
        let missing = find(&own("no-sandbox-has-such-an-id-at-all")).unwrap_err();
        assert!(matches!(missing, ProcessError::Missing(_)), "{missing}");
    }
    assert!(!exists(&own("no-sandbox-has-such-an-id-at-all")).unwrap());
}

#[test]
fn the_end_of_a_killed_process_is_after_its_kill() {
    let mut child = std::process::Command::new("sleep")
        .arg("600")
        .spawn()
        .unwrap();
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    let process = ProcessHandle::open(pid).unwrap().unwrap();
    let before = clock::now();
    let ended = process.end(Duration::from_secs(60)).unwrap();
    assert!(ended > before && ended <= clock::now());
    child.wait().unwrap();
}

#[test]
fn a_process_that_was_seen_has_ended_even_as_a_zombie() {
    let mut child = std::process::Command::new("sleep")
        .arg("600")
        .spawn()
        .unwrap();
    let pid = child.id();
    let began = began(&SeenProcess::folder(pid)).unwrap();
    let has_ended = |began| Kernel::Host.has_ended("any", SeenProcess { pid, began });
    assert!(!has_ended(began));
    assert!(has_ended(BootTicks(began.0 + 1)), "another process");
    let number = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    let process = ProcessHandle::open(number).unwrap().unwrap();
    process.end(Duration::from_secs(60)).unwrap();
    assert!(has_ended(began), "a zombie");
    child.wait().unwrap();
    assert!(has_ended(began));
}

#[test]
fn the_process_of_a_container_is_in_its_cgroup() {
    let id = "0123456789abcdef0123456789abcdef";
    assert!(is_within(&format!("0::/k8s.io/{id}\n"), id));
    assert!(is_within(
        &format!("2:cpu:/\n1:a:/p/crio-{id}.scope/init.scope\n"),
        id
    ));
    for other in [
        format!("0::/k8s.io/{id}0"),
        format!("0::/crio-conmon-{id}.scope"),
        "0::/".to_owned(),
    ] {
        assert!(!is_within(&other, id), "{other}");
    }
    assert!(!is_within("0::/short", "short"));
    let own = std::process::id();
    assert_eq!(Kernel::Host.process_of(id, own), None, "that of a guest");
    assert_eq!(Kernel::Host.process_of(id, 0), None);
}

#[test]
fn an_id_that_may_be_ambiguous_kills_no_process() {
    for id in ["", "a", "no-sandbox-has-such-an-id-at-al"] {
        for find in [find, find_newest] {
            let vague = find(&own(id)).unwrap_err();
            assert!(matches!(vague, ProcessError::Vague(_)), "{vague}");
        }
        assert!(exists(&own(id)).is_err(), "{id}");
    }
}

/// A process of ours in the role of a monitor, and a handle on it.
fn sleeper() -> (Child, Monitor) {
    let child = Command::new("sleep").arg("600").spawn().unwrap();
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    let open = || ProcessHandle::open(pid).unwrap().unwrap();
    let monitor = Monitor {
        handle: open(),
        name: "a monitor".to_owned(),
        reports_in: PathBuf::new(),
        child: open(),
    };
    (child, monitor)
}

/// Waits until the kernel shows a process stopped, or not.
#[track_caller]
fn is_stopped(process: &Child, wanted: bool) {
    let began = crate::host::now();
    let path = format!("/proc/{}/stat", process.id());
    loop {
        let stat = std::fs::read_to_string(&path).unwrap();
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        if fields.starts_with('T') == wanted {
            return;
        }
        assert!(crate::host::elapsed(began).as_secs() < 60, "{fields}");
        std::thread::yield_now();
    }
}

#[test]
fn a_monitor_is_frozen_until_it_is_thawed_or_forgotten_or_the_process_ends() {
    let (mut process, monitor) = sleeper();
    let frozen = monitor.freeze().unwrap();
    is_stopped(&process, true);
    frozen.undo().unwrap();
    is_stopped(&process, false);
    let (mut second, monitor) = sleeper();
    let frozen = monitor.freeze().unwrap();
    is_stopped(&second, true);
    drop(frozen);
    is_stopped(&second, false);
    let (mut third, monitor) = sleeper();
    let frozen = monitor.freeze().unwrap();
    is_stopped(&third, true);
    crate::host::undo_disturbances();
    is_stopped(&third, false);
    drop(frozen);
    let (mut fourth, monitor) = sleeper();
    let frozen = monitor.freeze().unwrap();
    for process in [&mut process, &mut second, &mut third, &mut fourth] {
        process.kill().unwrap();
        process.wait().unwrap();
    }
    // It has ended, which is no error.
    frozen.undo().unwrap();
}

#[test]
fn the_parent_of_a_process_is_found() {
    let (mut process, monitor) = sleeper();
    let parent = monitor.handle.parent().unwrap().unwrap();
    assert_eq!(parent.number(), std::process::id());
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(monitor.handle.parent().unwrap().is_none());
}

#[test]
fn without_a_process_there_is_no_monitor() {
    let own = |id: &str| OwnId {
        id: id.to_owned(),
        since: BootTicks(0),
    };
    let of = Monitored {
        container: own("no-container-has-such-an-id-at-all"),
        sandbox: own("no-sandbox-has-such-an-id-at-all"),
    };
    assert!(matches!(Monitor::find(&of), Err(ProcessError::Missing(_))));
}
