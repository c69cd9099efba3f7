//! The objects of a run on this host: their names and ids, and processes that have outlived their
//! container or sandbox.
//!
//! Files and cgroups are identified by the run and its process in their names.
//!
//! A process belongs to a container or sandbox if a cgroup in its path is named by the id, or if it
//! is a shim or a monitor started for the id; and if it began after the call that made the object.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::cgroup::Hierarchies;
use super::clock::BootTicks;
use super::container_process::{CONMON, CommandLine, began};
use super::{is_alive, this_process};
use crate::files;
use crate::history::RunId;

/// The mount point of procfs.
const PROC: &str = "/proc";
/// The prefix of the names of everything that runs create on a host.
pub(super) const PREFIX: &str = "cri-event-conformance-";
/// The minimum length of an id, in bytes. Those of containerd and CRI-O have 64.
pub(super) const SHORTEST_ID: usize = 32;

/// A process that has outlived its container or sandbox, with a handle on it.
#[derive(Debug)]
pub struct Leftover {
    pid: Pid,
    handle: OwnedFd,
    program: String,
    belongs: Ownership,
}

/// Why a process belongs to a container or sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ownership {
    id: String,
    /// The evidence: the cgroup or the command line.
    seen_in: String,
}

impl Leftover {
    /// Kills it. It is no error if it has already ended.
    pub fn kill(&self) -> io::Result<()> {
        self.signal(Signal::KILL)
    }

    /// Lets it run on, if SIGSTOP has frozen it.
    pub fn thaw(&self) -> io::Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        match pidfd_send_signal(&self.handle, signal) {
            Err(rustix::io::Errno::SRCH) | Ok(()) => Ok(()),
            Err(fault) => Err(fault.into()),
        }
    }
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ownership { id, seen_in } = &self.belongs;
        let (pid, program) = (self.pid.as_raw_nonzero(), &self.program);
        write!(f, "process {pid} ({program}) of {id}, as {seen_in} shows")
    }
}

/// A run and its process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    run: String,
    process: String,
}

impl Owner {
    pub fn new(run: &RunId) -> Self {
        Self {
            run: run.to_string(),
            process: this_process(),
        }
    }

    pub fn run(&self) -> &str {
        &self.run
    }

    /// The process of the run, as [`is_alive`] takes it.
    pub fn process(&self) -> &str {
        &self.process
    }

    /// When the process began; none if its name does not say.
    pub(super) fn began(&self) -> Option<BootTicks> {
        self.process.split_once('-')?.1.parse().ok()
    }

    /// Parses the name of a file or cgroup; none if it is not the name of a run's.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        let (run, process) = name.strip_prefix(PREFIX)?.split_once('.')?;
        Self::parse(run, process)
    }

    /// Parses the parts of a name; none if they are not a run's, whose id is a UUID.
    pub fn parse(run: &str, process: &str) -> Option<Self> {
        let mut letters = process.bytes();
        let is_word = letters.all(|it| it.is_ascii_alphanumeric() || it == b'-');
        (is_uuid(run) && is_word && !process.is_empty()).then(|| Self {
            run: run.to_owned(),
            process: process.to_owned(),
        })
    }
}

/// The id of a sandbox or container that a call of a run made. Its processes began after that call
/// did: an older one is of something else that bears the id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnId {
    pub id: String,
    pub since: BootTicks,
}

impl fmt::Display for OwnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)
    }
}

/// The ids of sandboxes and containers that calls of a run made. Ids that are too short to be
/// unique are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnIds(BTreeMap<String, BootTicks>);

impl OwnIds {
    /// Adds an id. One that is there keeps its time.
    pub fn insert(&mut self, OwnId { id, since }: OwnId) {
        if id.len() >= SHORTEST_ID {
            self.0.entry(id).or_insert(since);
        }
    }

    /// The id with its time; none if it is not among these.
    pub fn get(&self, id: &str) -> Option<OwnId> {
        let (id, since) = self.0.get_key_value(id)?;
        let (id, since) = (id.clone(), *since);
        Some(OwnId { id, since })
    }

    /// Whether it is among these.
    pub fn contains(&self, id: &str) -> bool {
        self.0.contains_key(id)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those for which this holds.
    pub fn only(&self, holds: impl Fn(&str) -> bool) -> Self {
        self.iter().filter(|own| holds(&own.id)).collect()
    }

    pub fn iter(&self) -> impl Iterator<Item = OwnId> {
        let all = self.0.iter();
        all.map(|(id, since)| OwnId {
            id: id.clone(),
            since: *since,
        })
    }

    /// Whether a process that began then may be of this id.
    fn may_own(&self, id: &str, began: BootTicks) -> bool {
        self.0.get(id).is_some_and(|since| began >= *since)
    }
}

impl FromIterator<OwnId> for OwnIds {
    fn from_iter<T: IntoIterator<Item = OwnId>>(ids: T) -> Self {
        let mut all = Self::default();
        all.extend(ids);
        all
    }
}

impl Extend<OwnId> for OwnIds {
    fn extend<T: IntoIterator<Item = OwnId>>(&mut self, ids: T) {
        ids.into_iter().for_each(|own| self.insert(own));
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.run, self.process)
    }
}

/// The processes of these containers and sandboxes.
pub(super) fn find(ids: &OwnIds) -> Vec<Leftover> {
    find_in(Path::new(PROC), ids)
}

/// Removes the empty cgroups of these containers and sandboxes; returns whether no visible one is
/// left.
pub(super) fn remove_cgroups(ids: &OwnIds) -> bool {
    match Hierarchies::mounted() {
        Ok(hierarchies) if !ids.is_empty() => hierarchies.remove_by_ids(ids),
        Ok(_) | Err(_) => true,
    }
}

fn find_in(proc: &Path, ids: &OwnIds) -> Vec<Leftover> {
    let entries = match std::fs::read_dir(proc) {
        Ok(entries) if !ids.is_empty() => entries,
        Ok(_) | Err(_) => return Vec::new(),
    };
    let pids = entries.filter_map(|entry| {
        let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
        Pid::from_raw(pid)
    });
    pids.filter_map(|pid| hold(proc, pid, ids)).collect()
}

/// Opens a handle on a process before finally checking its owner, so that a reused pid does no
/// harm.
fn hold(proc: &Path, pid: Pid, ids: &OwnIds) -> Option<Leftover> {
    let own = proc.join(pid.as_raw_nonzero().to_string());
    belongs(&own, ids)?;
    let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    let belongs = belongs(&own, ids)?;
    let program = std::fs::read_to_string(own.join("comm")).unwrap_or_default();
    Some(Leftover {
        pid,
        handle,
        program: program.trim().to_owned(),
        belongs,
    })
}

fn belongs(process: &Path, ids: &OwnIds) -> Option<Ownership> {
    let began = began(process)?;
    let is_one = |id: &str| ids.may_own(id, began);
    let cgroups = std::fs::read_to_string(process.join("cgroup")).unwrap_or_default();
    by_cgroup(&cgroups, is_one).or_else(|| {
        let command = std::fs::read(process.join("cmdline")).unwrap_or_default();
        by_command(&String::from_utf8_lossy(&command), is_one)
    })
}

/// Finds an id in `/proc/PID/cgroup`, whose lines have a number, controllers and a path.
fn by_cgroup(cgroups: &str, is_one: impl Fn(&str) -> bool) -> Option<Ownership> {
    cgroups.lines().find_map(|line| {
        let path = line.splitn(3, ':').nth(2)?;
        let id = path.split('/').map(id_in).find(|id| is_one(id))?;
        Some(Ownership {
            id: id.to_owned(),
            seen_in: format!("its cgroup {path}"),
        })
    })
}

/// Finds an id in a command line: of a containerd shim, of CRI-O's monitor, or of an OCI runtime
/// that creates the container.
fn by_command(command: &str, is_one: impl Fn(&str) -> bool) -> Option<Ownership> {
    let command = CommandLine::parse(command)?;
    let created = || command.creates().filter(|id| is_one(id));
    Some(Ownership {
        id: command.monitored(&is_one).or_else(created)?.to_owned(),
        seen_in: "its command line".to_owned(),
    })
}

/// The ids of containers and sandboxes with a shim or monitor whose log path belongs to one of
/// these runs, and that began after the run did. If the runtime or its client was killed during a
/// creation, no list contains them.
pub(super) fn monitored(runs: &[Owner]) -> OwnIds {
    let entries = std::fs::read_dir(PROC).into_iter().flatten();
    let processes = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let equal = processes.filter(|process| is_equal(process));
    equal
        .filter_map(|process| monitored_by(&process, runs))
        .collect()
}

/// The shims that began after one of these runs did, for a sandbox that is not among these ids and
/// of which no file is left: nothing shows who made it. One sentence each.
pub fn unexplained_shims(runs: &[Owner], listed: &BTreeSet<String>) -> Vec<String> {
    let Some(since) = runs.iter().filter_map(Owner::began).min() else {
        return Vec::new();
    };
    let entries = std::fs::read_dir(PROC).into_iter().flatten();
    let processes = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let shims = processes.filter_map(|process| {
        let command = std::fs::read(process.join("cmdline")).ok()?;
        let command = String::from_utf8_lossy(&command);
        let command = CommandLine::parse(&command)?;
        let id = command.monitors().filter(|id| !listed.contains(*id))?;
        let has_files = command.program == CONMON || process.join("cwd/config.json").exists();
        if has_files || began(&process)? < since || !is_equal(&process) {
            return None;
        }
        let (program, pid) = (command.program, process.file_name()?.to_str()?);
        Some(format!(
            "process {pid} ({program}) of sandbox {id} stays: the runtime does not list it and its \
             files are gone, so that nothing shows whether a run made it; if nothing else did, end \
             it with kill {pid}"
        ))
    });
    shims.collect()
}

/// The number of shims and monitors that were started for these ids. Zombies have no command line.
pub(super) fn monitors_of(ids: &BTreeSet<String>) -> usize {
    let entries = std::fs::read_dir(PROC).into_iter().flatten();
    let commands =
        entries.filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok());
    let is_one = |command: &Vec<u8>| {
        let command = String::from_utf8_lossy(command);
        let command = CommandLine::parse(&command);
        command.is_some_and(|it| it.monitored(|id| ids.contains(id)).is_some())
    };
    commands.filter(is_one).count()
}

/// The monitors of runs that have ended and of which no record was found, a sentence each; but only
/// of this run, if one is given.
pub fn unrecorded_monitors(recorded: &[Owner], run: Option<&RunId>) -> Vec<String> {
    let entries = std::fs::read_dir(PROC).into_iter().flatten();
    let processes = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let unrecorded = processes.filter_map(|process| {
        let (owner, OwnId { id, .. }, above) = monitor(&process)?;
        let is_one = run.map_or_else(
            || !is_alive(owner.process()),
            |run| run.as_str() == owner.run(),
        );
        if !is_one || recorded.contains(&owner) || !is_equal(&process) {
            return None;
        }
        let (run, pid, above) = (owner.run(), process.file_name()?.to_str()?, above.display());
        Some(format!(
            "process {pid} of {id} stays: no record was found of its run {run}, whose logs are in \
             {above}; clean up with --log-dir '{above}'"
        ))
    });
    unrecorded.collect()
}

/// The container or sandbox that this process monitors, if its logs belong to one of the given
/// runs.
fn monitored_by(process: &Path, runs: &[Owner]) -> Option<OwnId> {
    let (owner, id, _) = monitor(process)?;
    runs.contains(&owner).then_some(id)
}

/// The run of the container or sandbox that this process monitors, as its logs show, its id, and
/// the parent of the run's log directory.
fn monitor(process: &Path) -> Option<(Owner, OwnId, PathBuf)> {
    let command = std::fs::read(process.join("cmdline")).ok()?;
    let command = String::from_utf8_lossy(&command);
    let command = CommandLine::parse(&command)?;
    let id = command.monitors().filter(|id| id.len() >= SHORTEST_ID)?;
    let log = if command.program == CONMON {
        PathBuf::from(command.after("-l")?)
    } else {
        log_directory(&process.join("cwd/config.json"))?
    };
    let (owner, above) = log.ancestors().find_map(|logs| {
        let owner = Owner::from_name(logs.file_name()?.to_str()?)?;
        Some((owner, logs.parent()?.to_owned()))
    })?;
    let (id, since) = (id.to_owned(), owner.began()?);
    (began(process)? >= since).then_some((owner, OwnId { id, since }, above))
}

/// The log directory of a sandbox, from an annotation in the OCI specification in the working
/// directory of containerd's shim: `pkg/cri/annotations` (1.7), `internal/cri/annotations` (2.x).
fn log_directory(specification: &Path) -> Option<PathBuf> {
    /// The maximum size; that of a sandbox has some ten kilobytes.
    const LONGEST: u64 = 1 << 20;
    let text = files::read(specification, LONGEST).ok()?;
    let specification: serde_json::Value = serde_json::from_slice(&text).ok()?;
    let annotations = specification.get("annotations")?;
    let directory = annotations.get("io.kubernetes.cri.sandbox-log-directory")?;
    Some(PathBuf::from(directory.as_str()?))
}

/// Whether this process has our user and PID namespace, and so may kill the same processes as we
/// may: another process could name a foreign container in order to have us kill it.
fn is_equal(process: &Path) -> bool {
    let namespace = |process: &Path| std::fs::read_link(process.join("ns/pid")).ok();
    let same_user = std::fs::metadata(process)
        .is_ok_and(|found| found.uid() == rustix::process::geteuid().as_raw());
    let own = namespace(&Path::new(PROC).join("self"));
    same_user && own.is_some() && namespace(process) == own
}

/// Whether this is a UUID as the suite writes one.
pub fn is_uuid(text: &str) -> bool {
    uuid::Uuid::try_parse(text).is_ok_and(|uuid| uuid.to_string() == text)
}

/// The id in a component of a cgroup's path: all of the component, or the part after the prefix of
/// a runtime, as in `cri-containerd-ID.scope` and `crio-conmon-ID`.
pub(super) fn id_in(component: &str) -> &str {
    /// containerd, CRI-O and its monitor, and cri-dockerd.
    const PREFIXES: [&str; 4] = ["cri-containerd", "crio", "crio-conmon", "docker"];
    let plain = component.strip_suffix(".scope").unwrap_or(component);
    match plain.rsplit_once('-') {
        Some((prefix, id)) if PREFIXES.contains(&prefix) => id,
        _ => plain,
    }
}
