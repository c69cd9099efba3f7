//! Finds the processes of the runtime's sandboxes and containers in `/proc`.
//!
//! A process belongs to a sandbox or container if its cgroup is named by the id, and if it began
//! after the call that made the object. It is signalled only through a handle that was opened
//! before that check, so that a reused pid does no harm.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::Kernel;
use super::clock::{self, BootTicks};
use super::owner::{OwnId, SHORTEST_ID, id_in};
use super::runtime_process::shares_pids;
use crate::history::{self, HostInstant};

/// Why the process of a sandbox or container cannot be found or signalled.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The id is too short to be unique.
    #[error(
        "the id `{0}` is too short to identify a process: it needs {SHORTEST_ID} bytes at least"
    )]
    Vague(String),
    #[error("no process of this host is in a cgroup of {0}")]
    Missing(String),
    #[error("{1} processes of this host are in a cgroup of {0}")]
    Several(String, usize),
    /// Its parent is not known to monitor it.
    #[error("the parent of the process of {0}, {1}, is no known monitor of it")]
    Unmonitored(String, String),
    #[error("process {0} was killed but did not end within {1:?}")]
    Lives(u32, Duration),
    #[error("find or signal the process of a sandbox or container: {0}")]
    System(#[from] io::Error),
}

#[derive(Debug)]
pub(super) struct ProcessHandle {
    pid: Pid,
    handle: OwnedFd,
}

/// The process of the sandbox or container with this id. Fails if it cannot be found, or is not
/// unique.
pub(super) fn find(own: &OwnId) -> Result<ProcessHandle, ProcessError> {
    check(own)?;
    let mut found = Vec::new();
    for pid in processes()? {
        if is_of(pid, own) {
            found.extend(hold(pid, own)?);
        }
    }
    match (found.pop(), found.len()) {
        (Some(held), 0) => Ok(held),
        (None, _) => Err(ProcessError::Missing(own.to_string())),
        (Some(_), others) => Err(ProcessError::Several(own.to_string(), others + 1)),
    }
}

fn check(own: &OwnId) -> Result<(), ProcessError> {
    if own.id.len() < SHORTEST_ID {
        return Err(ProcessError::Vague(own.to_string()));
    }
    Ok(())
}

/// The process of the container with this id, which has only one. The processes with the highest
/// numbers are looked at first, mostly the newest ones: on a node with many others this is much
/// faster than [`find`], which looks at all.
pub(super) fn find_newest(own: &OwnId) -> Result<ProcessHandle, ProcessError> {
    check(own)?;
    let mut processes = processes()?;
    processes.sort_unstable_by_key(|pid| std::cmp::Reverse(pid.as_raw_nonzero()));
    for pid in processes {
        if is_of(pid, own)
            && let Some(held) = hold(pid, own)?
        {
            return Ok(held);
        }
    }
    Err(ProcessError::Missing(own.to_string()))
}

/// A process that was seen: its pid may be that of another one later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenProcess {
    pid: u32,
    began: BootTicks,
}

impl SeenProcess {
    pub fn pid(self) -> u32 {
        self.pid
    }

    fn folder(pid: u32) -> PathBuf {
        Path::new("/proc").join(pid.to_string())
    }
}

impl Kernel {
    /// Whether the pids that the runtime at this socket reports are those of processes seen here.
    pub async fn knows_pids_of(&self, socket: Option<&Path>) -> bool {
        match (self, socket) {
            (Self::Host, Some(socket)) => shares_pids(socket).await,
            (Self::Host, None) => false,
            (Self::Simulated(_), _) => true,
        }
    }

    /// The process with this pid, if it is proven to be that of this container by its cgroup. That
    /// of a guest is not: here its pid is that of another process, or of none.
    pub fn process_of(&self, container: &str, pid: u32) -> Option<SeenProcess> {
        let began = match self {
            Self::Simulated(simulated) => simulated.runs(container).then(BootTicks::default)?,
            Self::Host => {
                let process = SeenProcess::folder(pid);
                let began = began(&process)?;
                let cgroups = std::fs::read_to_string(process.join("cgroup")).ok()?;
                is_within(&cgroups, container).then_some(began)?
            }
        };
        let seen = SeenProcess { pid, began };
        (!self.has_ended(container, seen)).then_some(seen)
    }

    /// Whether a process of this container has ended since it was seen.
    pub fn has_ended(&self, container: &str, seen: SeenProcess) -> bool {
        match self {
            Self::Host => began(&SeenProcess::folder(seen.pid)) != Some(seen.began),
            Self::Simulated(simulated) => !simulated.runs(container),
        }
    }
}

/// All processes of this host, by their numbers.
fn processes() -> io::Result<Vec<Pid>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let pid = name.to_str().and_then(|name| name.parse().ok());
        found.extend(pid.and_then(Pid::from_raw));
    }
    Ok(found)
}

/// Whether a process is in the cgroup with this id.
pub(super) fn exists(own: &OwnId) -> Result<bool, ProcessError> {
    match find(own) {
        Ok(_) | Err(ProcessError::Several(..)) => Ok(true),
        Err(ProcessError::Missing(_)) => Ok(false),
        Err(fault) => Err(fault),
    }
}

impl ProcessHandle {
    /// Opens a handle; none if there is no such process.
    pub(super) fn open(pid: Pid) -> io::Result<Option<Self>> {
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => Ok(Some(Self { pid, handle })),
            Err(rustix::io::Errno::SRCH) => Ok(None),
            Err(fault) => Err(fault.into()),
        }
    }
    pub(super) fn number(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// The content of `/proc/PID/cgroup`; empty if the process is gone.
    pub(super) fn cgroups(&self) -> String {
        cgroups_of(self.pid)
    }
    pub(super) fn has_ended(&self) -> io::Result<bool> {
        has_ended(&self.handle, Duration::ZERO)
    }

    /// Its parent; none if one of them is gone.
    pub(super) fn parent(&self) -> io::Result<Option<Self>> {
        let Some(pid) = parent_of(self.pid) else {
            return Ok(None);
        };
        let parent = Self::open(pid)?;
        // The handle is that of the parent if the parent is still there.
        Ok(parent.filter(|_| parent_of(self.pid) == Some(pid)))
    }
    pub(super) fn signal(&self, signal: history::Signal) -> io::Result<()> {
        let number = signal.linux_number().map(i32::from);
        let Some(signal) = number.and_then(Signal::from_named_raw) else {
            let message = format!("no number of {signal} is known");
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        };
        Ok(pidfd_send_signal(&self.handle, signal)?)
    }

    /// Kills it and blocks until it has ended; returns when that was.
    pub(super) fn end(&self, bound: Duration) -> Result<HostInstant, ProcessError> {
        self.signal(history::Signal::KILL)?;
        if has_ended(&self.handle, bound)? {
            Ok(clock::now())
        } else {
            Err(ProcessError::Lives(self.number(), bound))
        }
    }

    /// Kills it and waits for its end; returns its pid.
    pub(super) async fn kill(self, bound: Duration) -> Result<u32, ProcessError> {
        let number = self.number();
        self.signal(history::Signal::KILL)?;
        let handle = self.handle;
        let ended = tokio::task::spawn_blocking(move || has_ended(&handle, bound)).await;
        if ended.map_err(io::Error::from)?? {
            Ok(number)
        } else {
            Err(ProcessError::Lives(number, bound))
        }
    }
}

/// Waits until the process has ended; returns whether it did within `bound`.
pub(super) fn has_ended(handle: &OwnedFd, bound: Duration) -> io::Result<bool> {
    let bound = Timespec::try_from(bound).map_err(io::Error::other)?;
    let mut watched = [PollFd::new(handle, PollFlags::IN)];
    Ok(poll(&mut watched, Some(&bound))? > 0)
}

/// Field 4 of `/proc/PID/stat`.
fn parent_of(pid: Pid) -> Option<Pid> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    Pid::from_raw(fields.split(' ').nth(1)?.parse().ok()?)
}

/// Opens a handle; none if the process is gone meanwhile.
fn hold(pid: Pid, own: &OwnId) -> io::Result<Option<ProcessHandle>> {
    let held = ProcessHandle::open(pid)?;
    Ok(held.filter(|_| is_of(pid, own)))
}

fn is_of(pid: Pid, own: &OwnId) -> bool {
    let folder = Path::new("/proc").join(pid.as_raw_nonzero().to_string());
    names(&cgroups_of(pid), &own.id) && began(&folder).is_some_and(|began| began >= own.since)
}

/// When the process of this folder in `/proc` began, field 22 of its `stat`; none if it is gone or
/// a zombie, which cannot be killed.
pub(super) fn began(process: &Path) -> Option<BootTicks> {
    let stat = std::fs::read_to_string(process.join("stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    if fields.starts_with(['Z', 'X']) {
        return None;
    }
    fields.split(' ').nth(19)?.parse().ok()
}

fn cgroups_of(pid: Pid) -> String {
    let path = format!("/proc/{}/cgroup", pid.as_raw_nonzero());
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Whether a process with these cgroups, from `/proc/PID/cgroup`, is that of the id.
fn names(cgroups: &str, id: &str) -> bool {
    let mut own = cgroups.lines().filter_map(|line| line.rsplit('/').next());
    // The cgroup of CRI-O's monitor contains the id, too.
    own.any(|own| id_in(own) == id && !own.contains("conmon"))
}

/// Whether a process with these cgroups is in that of the id, or below it.
fn is_within(cgroups: &str, id: &str) -> bool {
    let mut parts = cgroups.lines().flat_map(|line| line.split('/'));
    id.len() >= SHORTEST_ID && parts.any(|part| id_in(part) == id && !part.contains("conmon"))
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn an_id_that_others_may_bear_kills_nobody() {
        for id in ["", "a", "no-sandbox-has-such-an-id-at-al"] {
            for find in [find, find_newest] {
                let vague = find(&own(id)).unwrap_err();
                assert!(matches!(vague, ProcessError::Vague(_)), "{vague}");
            }
            assert!(exists(&own(id)).is_err(), "{id}");
        }
    }
}
