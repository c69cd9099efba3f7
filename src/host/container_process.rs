//! Finds the processes of the runtime's sandboxes and containers in `/proc`, and the runtime's
//! monitor of a container: the parent of the container's process, which outlives it and reports its
//! exit.
//!
//! A process belongs to a sandbox or container if its cgroup is named by the id, and if it began
//! after the call that made the object. It is signalled only through a handle that was opened
//! before that check, so that a reused pid does no harm.

#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};

use super::clock::{self, BootTicks};
use super::leftovers::{SHORTEST_ID, id_in};
use super::runtime_process::shares_pids;
use super::{Disturbance, Kernel, OwnId};
use crate::history::{HostInstant, Signal};

/// CRI-O's monitor of a container.
pub(super) const CONMON: &str = "conmon";

/// The beginning of the names of containerd's monitors.
const SHIM: &str = "containerd-shim";

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
    /// Its parent does not name it.
    #[error("the parent of the process of {0}, {1}, is no monitor: no argument names its id")]
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
    pub(super) fn signal(&self, signal: Signal) -> io::Result<()> {
        let number = signal.linux_number().map(i32::from);
        let Some(signal) = number.and_then(rustix::process::Signal::from_named_raw) else {
            let message = format!("no number of {signal} is known");
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        };
        Ok(pidfd_send_signal(&self.handle, signal)?)
    }

    /// Kills it and blocks until it has ended; returns when that was.
    pub(super) fn end(&self, bound: Duration) -> Result<HostInstant, ProcessError> {
        self.signal(Signal::KILL)?;
        if has_ended(&self.handle, bound)? {
            Ok(clock::now())
        } else {
            Err(ProcessError::Lives(self.number(), bound))
        }
    }

    /// Kills it and waits for its end; returns its pid.
    pub(super) async fn kill(self, bound: Duration) -> Result<u32, ProcessError> {
        let number = self.number();
        self.signal(Signal::KILL)?;
        let handle = self.handle;
        let ended = tokio::task::spawn_blocking(move || has_ended(&handle, bound)).await;
        if ended.map_err(io::Error::from)?? {
            Ok(number)
        } else {
            Err(ProcessError::Lives(number, bound))
        }
    }
}

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
            let is_of = command.named(|id| id == own.id).is_some();
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

    /// Its name, and the directory in which it leaves its reports.
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

pub(super) struct CommandLine<'a> {
    pub(super) program: &'a str,
    arguments: Vec<&'a str>,
}

impl<'a> CommandLine<'a> {
    /// Parses `/proc/PID/cmdline`, in which each argument ends with NUL.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let text = text.strip_suffix('\0').unwrap_or(text);
        let mut words = text.split('\0');
        let program = Path::new(words.next()?).file_name()?.to_str()?;
        let arguments = words.collect();
        Some(Self { program, arguments })
    }

    /// The argument after this one.
    pub(super) fn after(&self, name: &str) -> Option<&'a str> {
        let mut pairs = self.arguments.windows(2);
        pairs.find_map(|pair| (pair[0] == name).then_some(pair[1]))
    }

    /// The container that CRI-O's monitor, or the sandbox that containerd's shim was started for.
    pub(super) fn monitors(&self) -> Option<&'a str> {
        if self.program.starts_with(SHIM) {
            let is_cris = self.after("-namespace") == Some("k8s.io");
            self.after("-id").filter(|_| is_cris)
        } else if self.program == CONMON {
            self.after("-c")
        } else {
            None
        }
    }

    /// Whether it is named as the monitor of a container, with any arguments.
    pub(super) fn is_monitor(&self) -> bool {
        self.program.contains("shim") || self.program.starts_with(CONMON)
    }

    /// Such an id, if it is a monitor's: of one that is not known, such as `conmonrs`, any part of
    /// its arguments.
    pub(super) fn monitored(&self, is_one: impl Fn(&str) -> bool) -> Option<&'a str> {
        let is_known = self.program.starts_with(SHIM) || self.program == CONMON;
        if is_known {
            self.monitors().filter(|id| is_one(id))
        } else {
            self.named(is_one).filter(|_| self.is_monitor())
        }
    }

    /// The first such id that is an argument, or a part of a path or of an option.
    pub(super) fn named(&self, is_one: impl Fn(&str) -> bool) -> Option<&'a str> {
        let mut parts = self.arguments.iter().flat_map(|it| it.split(['/', '=']));
        parts.find(|part| is_one(part))
    }

    /// The directory in which a monitor leaves its reports, as it calls it: CRI-O's the exit code;
    /// containerd's works in the directory of the sandbox.
    fn reports_in(&self) -> &'a str {
        self.after("--exit-dir").unwrap_or(".")
    }

    /// The container that an OCI runtime creates: the last argument of `runc … create … ID`.
    pub(super) fn creates(&self) -> Option<&'a str> {
        let creates = self.arguments.contains(&"create");
        self.arguments.last().copied().filter(|_| creates)
    }
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

/// A directory that is relative to where a process works, as this process can reach it.
fn place_of(process: u32, directory: &str) -> PathBuf {
    let process = PathBuf::from(format!("/proc/{process}"));
    match directory.strip_prefix('/') {
        Some(absolute) => process.join("root").join(absolute),
        None => process.join("cwd").join(directory),
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
