//! The runtime's monitor of a container: the parent of the container's process, which outlives it
//! and reports its exit.
//!
//! A parent is a monitor if its command line says that it was started for this container or its
//! sandbox. It serves nothing else, so to kill or freeze it harms nobody else.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::command_line::CommandLine;
use super::container_process::{ProcessError, ProcessHandle, began, find};
use super::{Disturbance, OwnId};
use crate::history::Signal;

/// A container with a monitor, by its id and that of its sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Monitored {
    pub container: OwnId,
    pub sandbox: OwnId,
}

/// A monitor with its name, and the process that it monitors.
pub(super) struct Monitor {
    handle: ProcessHandle,
    name: String,
    reports_in: PathBuf,
    child: ProcessHandle,
}

/// A directory that is relative to where a process works, as this process can reach it.
fn place_of(process: u32, directory: &str) -> PathBuf {
    let process = PathBuf::from(format!("/proc/{process}"));
    match directory.strip_prefix('/') {
        Some(absolute) => process.join("root").join(absolute),
        None => process.join("cwd").join(directory),
    }
}

impl Monitor {
    /// The monitor of a container.
    pub(super) fn find(of: &Monitored) -> Result<Self, ProcessError> {
        let child = find(&of.container)?;
        let unmonitored = |parent| ProcessError::Unmonitored(of.container.to_string(), parent);
        let missing = || unmonitored("gone".to_owned());
        let handle = child.parent()?.ok_or_else(missing)?;
        let number = handle.number();
        let command = std::fs::read(Path::new("/proc").join(number.to_string()).join("cmdline"));
        let command = command.unwrap_or_default();
        let command = String::from_utf8_lossy(&command);
        let command = CommandLine::parse(&command).ok_or_else(missing)?;
        let name = format!("{number} ({})", command.program);
        let reports_in = place_of(number, command.reports_in());
        let started_for = |own: &OwnId| {
            let is_of = command.monitors() == Some(own.id.as_str());
            let folder = Path::new("/proc").join(number.to_string());
            is_of && began(&folder).is_some_and(|began| began >= own.since)
        };
        let is_ours = started_for(&of.container) || started_for(&of.sandbox);
        if is_ours {
            Ok(Self {
                handle,
                name,
                reports_in,
                child,
            })
        } else {
            Err(unmonitored(format!("process {name}")))
        }
    }

    /// Its name, and the directory in which it leaves what it has to report.
    pub(super) fn place(&self) -> (&str, &Path) {
        (&self.name, &self.reports_in)
    }

    /// Kills it and waits for its end, and before it the container's process if asked to, without
    /// its notice; returns its name.
    pub(super) async fn kill(
        self,
        with_container: bool,
        bound: Duration,
    ) -> Result<String, ProcessError> {
        if with_container {
            self.handle.signal(Signal::STOP)?;
            // Killed below, the frozen monitor does not stay.
            let killed = self.child.signal(Signal::KILL);
            self.handle.kill(bound).await?;
            killed?;
        } else {
            self.handle.kill(bound).await?;
        }
        Ok(self.name)
    }

    pub(super) fn freeze(self) -> io::Result<Disturbance> {
        let handle = Arc::new(self.handle);
        let thawed = handle.clone();
        let frozen = Disturbance::new(&self.name, move || thaw(&thawed));
        handle.signal(Signal::STOP)?;
        Ok(frozen)
    }
}

/// Lets a monitor run on. It is no error if it has ended.
fn thaw(monitor: &ProcessHandle) -> io::Result<()> {
    match monitor.signal(Signal::CONTINUE) {
        Err(fault) if is_gone(&fault) => Ok(()),
        thawed => thawed,
    }
}

fn is_gone(fault: &io::Error) -> bool {
    fault.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use rustix::process::Pid;

    use super::*;
    use crate::host::BootTicks;

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
}
