//! Cgroups that the suite makes for pods of its own, as a kubelet does for all pods, and removes.
//!
//! One is known by its name, which tells the run that made it, at the root of a hierarchy. Nothing
//! else is touched: what has that name is removed by `rmdir` alone, which takes no cgroup that has
//! a process, and only if no process is left in all of it.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::owner::{Owner, PREFIX};
use super::{ProcessError, SliceError, slice};
use crate::history::{CgroupDriver, RunId};

/// What the name of a slice of systemd's ends with.
const SLICE: &str = ".slice";
/// How many cgroups lie below one another within a pod's: its containers', and those that these
/// may have made.
const DEPTH: usize = 8;

/// The name of a cgroup that a run makes for a pod of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodCgroup {
    owner: Owner,
    number: u32,
    /// Whether it is a slice of systemd's.
    is_slice: bool,
}

/// Why there is no such cgroup, or why it cannot be removed.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    /// There is none in which memory can be limited.
    #[error("this host shows no whole hierarchy of cgroups that limits memory")]
    NoHierarchy,
    /// systemd does not do its part.
    #[error(transparent)]
    Slice(#[from] SliceError),
    /// The runtime's cgroups are not those that are seen here.
    #[error("the cgroup of a sandbox, {0}, is not where this process sees it")]
    Elsewhere(String),
    /// The sandbox's process is not to be found.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// What the system said.
    #[error("{path}: {source}")]
    System {
        /// Of which file.
        path: PathBuf,
        /// What was wrong.
        source: io::Error,
    },
    /// It cannot be removed.
    #[error("processes are left in it, which the runtime has left, or another one runs")]
    Busy,
}

/// The hierarchies of cgroups that this host has mounted whole.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hierarchies {
    roots: Vec<PathBuf>,
    memory: Option<Memory>,
}

/// The one that limits memory.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Memory {
    root: PathBuf,
    version: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl PodCgroup {
    /// The cgroup of this number of a run in this process, made as the runtime's cgroups are.
    #[must_use]
    pub fn new(run: &RunId, number: u32, driver: CgroupDriver) -> Self {
        Self {
            owner: Owner::new(run),
            number,
            is_slice: driver == CgroupDriver::Systemd,
        }
    }

    /// What a runtime is asked to use: the name of a slice, or the path from the root.
    #[must_use]
    pub fn parent(&self) -> String {
        if self.is_slice {
            return self.to_string();
        }
        self.path()
    }

    /// Its path from the root.
    fn path(&self) -> String {
        format!("/{self}")
    }

    /// The run that has made it.
    #[must_use]
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// What a name tells; nothing if no run can have given it.
    fn parse(name: &str) -> Option<Self> {
        let slice = name.strip_suffix(SLICE);
        // A dash in the name of a slice would make it one within another.
        let plain = slice.map_or(name.to_owned(), |slice| slice.replace('_', "-"));
        let mut parts = plain.strip_prefix(PREFIX)?.split('.');
        let (run, process, number) = (parts.next()?, parts.next()?, parts.next()?);
        let parsed = Self {
            owner: Owner::parse(run, process)?,
            number: number.parse().ok()?,
            is_slice: slice.is_some(),
        };
        (parsed.to_string() == name).then_some(parsed)
    }
}

impl fmt::Display for PodCgroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = format!("{PREFIX}{}.{}", self.owner, self.number);
        if self.is_slice {
            return write!(f, "{}{SLICE}", name.replace('-', "_"));
        }
        f.write_str(&name)
    }
}

impl Hierarchies {
    /// Those of this host.
    pub(super) fn of_host() -> Result<Self, CgroupError> {
        let path = Path::new("/proc/self/mountinfo");
        let mounts = fs::read_to_string(path).map_err(at(path))?;
        Ok(Self::of(&mounts))
    }

    /// Those of a table of mounts, as `/proc/self/mountinfo` tells them: the root within the
    /// hierarchy and the place stand fourth and fifth, the type and its options after a hyphen.
    fn of(mounts: &str) -> Self {
        let mut found = Self {
            roots: Vec::new(),
            memory: None,
        };
        for line in mounts.lines() {
            let Some((mount, kind)) = line.split_once(" - ") else {
                continue;
            };
            let mut mount = mount.split(' ').skip(3);
            let (Some("/"), Some(place)) = (mount.next(), mount.next()) else {
                continue;
            };
            let mut kind = kind.split(' ');
            let (name, options) = (kind.next(), kind.nth(1).unwrap_or_default());
            let root = PathBuf::from(place);
            let version = match name {
                Some("cgroup") => Version::One,
                Some("cgroup2") => Version::Two,
                _ => continue,
            };
            let limits = version == Version::Two || options.split(',').any(|it| it == "memory");
            // Where both versions are there, memory is limited where version 1 says so.
            let known = found.memory.as_ref().map(|memory| memory.version);
            if limits && (known.is_none() || version == Version::One) {
                let root = root.clone();
                found.memory = Some(Memory { root, version });
            }
            found.roots.push(root);
        }
        found
    }

    fn memory(&self) -> Result<&Memory, CgroupError> {
        self.memory.as_ref().ok_or(CgroupError::NoHierarchy)
    }

    /// Looks whether a process is where a cgroup of its runtime's can be given to another pod.
    /// `told` is what `/proc/PID/cgroup` says of it.
    pub(super) fn suit(&self, pid: u32, told: &str) -> Result<(), CgroupError> {
        let memory = self.memory()?;
        let path = memory.path(told).ok_or(CgroupError::NoHierarchy)?;
        let elsewhere = || CgroupError::Elsewhere(path.to_owned());
        if path.starts_with("/..") {
            return Err(elsewhere());
        }
        let seen = memory.root.join(path.trim_start_matches('/'));
        let members = fs::read_to_string(seen.join("cgroup.procs")).map_err(|_| elsewhere())?;
        let has = members.lines().any(|member| member.parse() == Ok(pid));
        if has { Ok(()) } else { Err(elsewhere()) }
    }

    /// Whether a process of which `told` is said lies below this cgroup.
    pub(super) fn holds(&self, cgroup: &PodCgroup, told: &str) -> bool {
        let path = self.memory.as_ref().and_then(|memory| memory.path(told));
        path.is_some_and(|path| path.starts_with(&format!("{}/", cgroup.path())))
    }

    /// Makes a cgroup whose processes may use so much memory together, and no swap.
    pub(super) fn make(&self, cgroup: &PodCgroup, bytes: u64) -> Result<(), CgroupError> {
        if cgroup.is_slice {
            return Ok(slice::start(&cgroup.to_string(), bytes)?);
        }
        let memory = self.memory()?;
        let own = memory.root.join(cgroup.to_string());
        fs::create_dir(&own).map_err(at(&own))?;
        let limited = memory.limit(&own, bytes);
        if limited.is_err() {
            let _ = fs::remove_dir(&own);
        }
        limited
    }

    /// Removes what a pod had by this name, in all hierarchies: runtimes make it in each.
    pub(super) fn remove(&self, cgroup: &PodCgroup) -> Result<(), CgroupError> {
        let own = self.roots.iter().map(|root| root.join(cgroup.to_string()));
        let own: Vec<PathBuf> = own.filter(|own| is_folder(own)).collect();
        if own.iter().any(|own| is_populated(own, DEPTH)) {
            return Err(CgroupError::Busy);
        }
        if cgroup.is_slice {
            slice::stop(&cgroup.to_string())?;
        }
        own.iter().try_for_each(|own| remove(own, DEPTH))
    }

    /// Removes the cgroups whose names have one of these ids, if nothing is in them. A runtime that
    /// has forgotten the container does not do it. What cannot be removed does no harm.
    /// Says whether none is left.
    pub(super) fn remove_those_of(&self, ids: &BTreeSet<&str>) -> bool {
        let mut all_gone = true;
        for root in &self.roots {
            all_gone &= remove_below(root, ids, DEPTH);
        }
        all_gone
    }

    /// All that runs of this suite have made, in any hierarchy.
    pub(super) fn made(&self) -> BTreeSet<PodCgroup> {
        let folders = self.roots.iter().filter_map(|root| fs::read_dir(root).ok());
        let names = folders.flatten().filter_map(|entry| {
            let entry = entry.ok()?;
            let is_folder = entry.file_type().ok()?.is_dir();
            PodCgroup::parse(entry.file_name().to_str()?).filter(|_| is_folder)
        });
        names.collect()
    }
}

impl Memory {
    /// The path that `/proc/PID/cgroup` tells: lines of a number, controllers and a path.
    fn path<'a>(&self, told: &'a str) -> Option<&'a str> {
        told.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            let own = match self.version {
                Version::One => controllers.split(',').any(|it| it == "memory"),
                Version::Two => controllers.is_empty(),
            };
            own.then_some(path)
        })
    }

    fn limit(&self, own: &Path, bytes: u64) -> Result<(), CgroupError> {
        let limit = bytes.to_string();
        match self.version {
            Version::One => {
                // Before Linux 5.11 a limit may concern the cgroup itself alone.
                let below = own.join("memory.use_hierarchy");
                if fs::read_to_string(&below).is_ok_and(|told| told.trim() == "0") {
                    write(&below, "1")?;
                }
                write(&own.join("memory.limit_in_bytes"), &limit)?;
                // Memory and swap together: equal, so that there is no swap.
                write_if_there(&own.join("memory.memsw.limit_in_bytes"), &limit)
            }
            Version::Two => {
                write(&own.join("memory.max"), &limit)?;
                write_if_there(&own.join("memory.swap.max"), "0")?;
                // A runtime reads each container's own counts, which are there only so.
                write(&own.join("cgroup.subtree_control"), "+memory")
            }
        }
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> CgroupError {
    let path = path.to_owned();
    move |source| CgroupError::System { path, source }
}

/// Writes to a file that is there: a cgroup's are the kernel's.
fn write(path: &Path, value: &str) -> Result<(), CgroupError> {
    let mut file = OpenOptions::new()
        .write(true)
        .open(path)
        .map_err(at(path))?;
    file.write_all(value.as_bytes()).map_err(at(path))
}

fn write_if_there(path: &Path, value: &str) -> Result<(), CgroupError> {
    if path.exists() {
        return write(path, value);
    }
    Ok(())
}

/// Whether it is a folder itself, and not a link to one.
fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|told| told.is_dir())
}

fn folders_in(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.filter(|path| is_folder(path)).collect()
}

/// Whether a process is in this cgroup or below it. What cannot be read may have one.
fn is_populated(path: &Path, depth: usize) -> bool {
    let members = match fs::read_to_string(path.join("cgroup.procs")) {
        Ok(members) => members,
        Err(fault) if fault.kind() == ErrorKind::NotFound => String::new(),
        Err(_) => return true,
    };
    let mut below = folders_in(path).into_iter();
    !members.trim().is_empty() || below.any(|below| depth == 0 || is_populated(&below, depth - 1))
}

/// Removes the cgroups below a path whose names have one of these ids, if nothing is in them; says
/// whether none is left.
fn remove_below(path: &Path, ids: &BTreeSet<&str>, depth: usize) -> bool {
    let mut all_gone = true;
    for below in folders_in(path) {
        let name = below.file_name().and_then(OsStr::to_str);
        let is_one = name.is_some_and(|name| words(name).any(|word| ids.contains(word)));
        all_gone &= if is_one {
            !is_populated(&below, DEPTH) && remove(&below, DEPTH).is_ok()
        } else {
            depth == 0 || remove_below(&below, ids, depth - 1)
        };
    }
    all_gone
}

/// What a path of cgroups consists of: ids, and what runtimes put around them.
pub(super) fn words(path: &str) -> impl Iterator<Item = &str> {
    path.split(|letter: char| !letter.is_ascii_alphanumeric())
}

/// Removes empty cgroups from the lowest up. One that has gone meanwhile is as good as removed.
fn remove(path: &Path, depth: usize) -> Result<(), CgroupError> {
    if depth > 0 {
        for below in folders_in(path) {
            remove(&below, depth - 1)?;
        }
    }
    match fs::remove_dir(path) {
        Err(fault) if fault.kind() == ErrorKind::ResourceBusy => Err(CgroupError::Busy),
        Err(fault) if fault.kind() != ErrorKind::NotFound => Err(at(path)(fault)),
        Ok(()) | Err(_) => Ok(()),
    }
}
