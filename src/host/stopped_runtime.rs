//! A runtime that this process has stopped, and starts again however it ends.

use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// The command that starts the runtime, while it is stopped.
static STOPPED: Mutex<Option<String>> = Mutex::new(None);

/// Notes that the runtime may be stopped from now on, and by which command it is started; or that
/// it has been started.
pub(super) fn note(start: Option<&str>) {
    *STOPPED.lock().unwrap_or_else(PoisonError::into_inner) = start.map(str::to_owned);
}

/// Begins to start the runtime if this process has stopped it; returns by which command. For when
/// the process is about to end at once: nobody waits for it.
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
    // The user is told the command, and sees whether the runtime comes back.
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
