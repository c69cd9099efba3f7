//! Restarts a runtime that this process has stopped, however the process ends.

use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use super::command::CommandError;
use super::container_process::ProcessError;
use super::runtime_process::RuntimeProcessError;

/// The user's commands for a shell that stop, kill and start the runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuntimeCommands {
    /// Stops it, and returns once it has ended.
    pub stop: String,
    /// Kills it by SIGKILL, and returns once it has ended; if absent, the process that serves the
    /// runtime's socket is killed.
    pub kill: Option<String>,
    /// Starts it, and returns.
    pub start: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuntimeEnd {
    Stop,
    /// It is killed by SIGKILL.
    Kill,
}

/// Why the runtime was not ended.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeEndError {
    #[error("the command that ends the runtime: {0}")]
    Command(#[from] CommandError),
    #[error("find the process of the runtime to kill it: {0}")]
    Unknown(#[from] RuntimeProcessError),
    #[error("kill the process of the runtime: {0}")]
    Lives(#[from] ProcessError),
    /// There is no socket by which its process is found.
    #[error("the runtime has no socket by which its process is found")]
    NoSocket,
}

/// The command that starts the runtime, while it is stopped.
static STOPPED: Mutex<Option<String>> = Mutex::new(None);

/// Notes the command that starts the runtime when it may be stopped from now on; `None` when it is
/// running again.
pub(super) fn note(start: Option<&str>) {
    *STOPPED.lock().unwrap_or_else(PoisonError::into_inner) = start.map(str::to_owned);
}

/// Starts the runtime if this process has stopped it, without waiting; returns the command. Used
/// when the process is about to exit.
pub fn start_stopped_runtime() -> Option<String> {
    let command = STOPPED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take()?;
    let begun = Command::new("sh")
        .args(["-c", &command])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    // The caller prints the command; errors show when the runtime does not come back.
    drop(begun);
    Some(command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{elapsed, now};

    #[test]
    fn a_runtime_that_was_stopped_is_started_once() {
        let folder = tempfile::tempdir().unwrap();
        let started = folder.path().join("started");
        let command = format!("echo >{}", started.display());
        note(Some("false"));
        note(None);
        assert_eq!(start_stopped_runtime(), None);
        note(Some(&command));
        assert_eq!(start_stopped_runtime(), Some(command));
        assert_eq!(start_stopped_runtime(), None);
        let began = now();
        while !started.exists() {
            assert!(elapsed(began).as_secs() < 60, "it was not started");
            std::thread::yield_now();
        }
    }
}
