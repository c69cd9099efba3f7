//! The processes of the runtime's sandboxes and containers, as this host's `/proc` shows them.
//!
//! A process is that of a sandbox or container if its cgroup bears the id, which no other has. None
//! is signalled but through a handle that was opened before that was looked at, so that a number
//! that is used again harms nobody.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// The shortest id by which a process is killed, in bytes. Those of containerd and CRI-O have 64.
pub(super) const SHORTEST_ID: usize = 32;

/// Why the process of a sandbox or container cannot be killed.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// So short an id stands in the cgroups of others, too.
    #[error("`{0}` is too short an id to know a process by: {SHORTEST_ID} bytes at least")]
    Vague(String),
    /// Nothing on this host is in its cgroup.
    #[error("no process of this host is in a cgroup of {0}")]
    Missing(String),
    /// More than one process is.
    #[error("{1} processes of this host are in a cgroup of {0}")]
    Several(String, usize),
    /// It has not ended.
    #[error("process {0} was killed and has not ended within {1:?}")]
    Lives(u32, Duration),
    /// What the system said.
    #[error("look for the process of a sandbox or container, or kill it: {0}")]
    System(#[from] io::Error),
}

/// A process, and a hold on it.
#[derive(Debug)]
pub(super) struct Held {
    pid: Pid,
    handle: OwnedFd,
}

/// The process of the sandbox or container with this id.
///
/// # Errors
/// If it is not to be found, or cannot be told from others.
pub(super) fn of(id: &str) -> Result<Held, ProcessError> {
    if id.len() < SHORTEST_ID {
        return Err(ProcessError::Vague(id.to_owned()));
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let pid = name.to_str().and_then(|name| name.parse().ok());
        let Some(pid) = pid.and_then(Pid::from_raw) else {
            continue;
        };
        if is_in_cgroup_of(pid, id) {
            found.extend(hold(pid, id)?);
        }
    }
    match (found.pop(), found.len()) {
        (Some(held), 0) => Ok(held),
        (None, _) => Err(ProcessError::Missing(id.to_owned())),
        (Some(_), others) => Err(ProcessError::Several(id.to_owned(), others + 1)),
    }
}

/// Whether a process is in the cgroup of this id.
///
/// # Errors
/// If it is not to be found out.
pub(super) fn is_there(id: &str) -> Result<bool, ProcessError> {
    match of(id) {
        Ok(_) | Err(ProcessError::Several(..)) => Ok(true),
        Err(ProcessError::Missing(_)) => Ok(false),
        Err(fault) => Err(fault),
    }
}

impl Held {
    /// Its number.
    pub(super) fn number(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Its cgroups, as `/proc/PID/cgroup` tells them; nothing once it has gone.
    pub(super) fn cgroups(&self) -> String {
        cgroups_of(self.pid)
    }

    /// Kills it and waits for its end, which the kernel brings about by itself; returns its number.
    pub(super) async fn kill(self, bound: Duration) -> Result<u32, ProcessError> {
        let number = self.number();
        pidfd_send_signal(&self.handle, Signal::KILL).map_err(io::Error::from)?;
        let handle = self.handle;
        let ended = tokio::task::spawn_blocking(move || has_ended(&handle, bound)).await;
        if ended.map_err(io::Error::from)?? {
            Ok(number)
        } else {
            Err(ProcessError::Lives(number, bound))
        }
    }
}

/// Waits until the process of this handle has ended; says whether it did in time.
pub(super) fn has_ended(handle: &OwnedFd, bound: Duration) -> io::Result<bool> {
    let bound = Timespec::try_from(bound).map_err(io::Error::other)?;
    let mut watched = [PollFd::new(handle, PollFlags::IN)];
    Ok(poll(&mut watched, Some(&bound))? > 0)
}

/// None if it has gone meanwhile.
fn hold(pid: Pid, id: &str) -> io::Result<Option<Held>> {
    let handle = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) => handle,
        Err(rustix::io::Errno::SRCH) => return Ok(None),
        Err(fault) => return Err(fault.into()),
    };
    Ok(is_in_cgroup_of(pid, id).then_some(Held { pid, handle }))
}

fn is_in_cgroup_of(pid: Pid, id: &str) -> bool {
    let folder = Path::new("/proc").join(pid.as_raw_nonzero().to_string());
    names(&cgroups_of(pid), id) && has_program(&folder)
}

/// Whether the process of this folder of `/proc` is no zombie: that has no program any more, waits
/// for its parent, and cannot be ended.
pub(super) fn has_program(process: &Path) -> bool {
    let status = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
    let state = status.rsplit_once(") ").map(|(_, fields)| fields);
    state.is_some_and(|fields| !fields.starts_with('Z') && !fields.starts_with('X'))
}

fn cgroups_of(pid: Pid) -> String {
    let path = format!("/proc/{}/cgroup", pid.as_raw_nonzero());
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Whether a process of these cgroups, as `/proc/PID/cgroup` tells them, is the sandbox's own.
fn names(cgroups: &str, id: &str) -> bool {
    let mut own = cgroups.lines().filter_map(|line| line.rsplit('/').next());
    // CRI-O's monitor of the process has a cgroup of its own that bears the id, too.
    own.any(|own| own.contains(id) && !own.contains("conmon"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_names_its_sandbox_in_its_last_part() {
        assert!(names("0::/k8s.io/abc\n", "abc"));
        assert!(names("9:cpu:/\n8:memory:/pods/crio-abc.scope\n", "abc"));
        assert!(!names("0::/pods/crio-conmon-abc.scope\n", "abc"));
        assert!(!names("0::/abc/another\n", "abc"));
        assert!(!names("", "abc"));
    }

    #[test]
    fn no_process_is_that_of_a_sandbox_that_is_not_there() {
        let missing = of("no-sandbox-has-such-an-id-at-all").unwrap_err();
        assert!(matches!(missing, ProcessError::Missing(_)), "{missing}");
        assert!(!is_there("no-sandbox-has-such-an-id-at-all").unwrap());
    }

    #[test]
    fn an_id_that_others_may_bear_kills_nobody() {
        for id in ["", "a", "no-sandbox-has-such-an-id-at-al"] {
            let vague = of(id).unwrap_err();
            assert!(matches!(vague, ProcessError::Vague(_)), "{vague}");
            assert!(is_there(id).is_err(), "{id}");
        }
    }
}
