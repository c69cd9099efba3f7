//! Creates and removes cgroups for the suite's own pods, as a kubelet does for all pods; as
//! systemd slices, if that is the cgroup driver.
//!
//! Such a cgroup is identified by its name, which contains the run, at the root of a hierarchy.
//! Nothing else is changed: it is removed with `rmdir`, which refuses a cgroup with processes, and
//! only if no process is left below it.

mod freezer;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::ProcessError;
use super::leftovers::{OwnIds, Owner, PREFIX, SHORTEST_ID, id_in};
use crate::history::{CgroupDriver, RunId};

/// The suffix of a systemd slice.
const SLICE: &str = ".slice";
/// The maximum depth of cgroups below a pod's: those of its containers, and those created by them.
const DEPTH: usize = 8;
/// How long systemd may take to accept a request, in seconds.
const ACCEPTED_WITHIN: &str = "--timeout=10";
const SYSTEMD: [&str; 3] = [
    "org.freedesktop.systemd1",
    "/org/freedesktop/systemd1",
    "org.freedesktop.systemd1.Manager",
];

/// The name of a cgroup that a run creates for a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodCgroup {
    owner: Owner,
    number: u32,
    /// Whether it is a systemd slice.
    is_slice: bool,
}

/// Why a cgroup cannot be created or removed.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    /// There is no hierarchy with the memory controller.
    #[error("this host has no complete cgroup hierarchy that limits memory")]
    NoHierarchy,
    #[error("this host has no complete cgroup hierarchy that freezes processes")]
    NoFreezer,
    /// systemd failed.
    #[error(transparent)]
    Slice(#[from] SliceError),
    #[error("the cgroup {0} is not visible to this process")]
    Elsewhere(String),
    /// The sandbox's process cannot be found.
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("{path}: {source}")]
    System { path: PathBuf, source: io::Error },
    #[error("it still contains processes")]
    Busy,
}

/// The complete cgroup hierarchies that are mounted on this host.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hierarchies {
    roots: Vec<PathBuf>,
    memory: Option<Hierarchy>,
    freezer: Option<Hierarchy>,
}

/// The hierarchy with a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hierarchy {
    root: PathBuf,
    version: Version,
    /// Its name in version 1.
    controller: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl PodCgroup {
    /// The cgroup with this number of a run in this process, for the runtime's cgroup driver.
    pub fn new(run: &RunId, number: u32, driver: CgroupDriver) -> Self {
        Self {
            owner: Owner::new(run),
            number,
            is_slice: driver == CgroupDriver::Systemd,
        }
    }

    /// The cgroup parent for the runtime: the name of a slice, or the path from the root.
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

    /// The run that has created it.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Parses a name; none if it is not the name of such a cgroup.
    fn parse(name: &str) -> Option<Self> {
        let slice = name.strip_suffix(SLICE);
        // A dash in the name of a slice would nest it in another one.
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
    pub(super) fn mounted() -> Result<Self, CgroupError> {
        let path = Path::new("/proc/self/mountinfo");
        let mounts = fs::read_to_string(path).map_err(at(path))?;
        Ok(Self::parse(&mounts))
    }

    /// Parses `/proc/self/mountinfo`: the root within the hierarchy and the mount point are the
    /// fourth and fifth fields, the type and its options follow a hyphen.
    fn parse(mounts: &str) -> Self {
        let mut found = Self {
            roots: Vec::new(),
            memory: None,
            freezer: None,
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
            let places = [
                ("memory", &mut found.memory),
                ("freezer", &mut found.freezer),
            ];
            for (controller, known) in places {
                let has = version == Version::Two || options.split(',').any(|it| it == controller);
                // If both versions are mounted, version 1 has the controller.
                if has && (known.is_none() || version == Version::One) {
                    *known = Some(Hierarchy {
                        root: root.clone(),
                        version,
                        controller,
                    });
                }
            }
            found.roots.push(root);
        }
        found
    }

    fn memory(&self) -> Result<&Hierarchy, CgroupError> {
        self.memory.as_ref().ok_or(CgroupError::NoHierarchy)
    }

    /// Checks that the cgroup of a runtime's process is visible here. `cgroups` is the content of
    /// `/proc/PID/cgroup`.
    pub(super) fn check_visible(&self, pid: u32, cgroups: &str) -> Result<(), CgroupError> {
        let memory = self.memory()?;
        let path = memory.path(cgroups).ok_or(CgroupError::NoHierarchy)?;
        let elsewhere = || CgroupError::Elsewhere(path.to_owned());
        if path.starts_with("/..") {
            return Err(elsewhere());
        }
        let seen = memory.root.join(path.trim_start_matches('/'));
        let members = fs::read_to_string(seen.join("cgroup.procs")).map_err(|_| elsewhere())?;
        let has = members.lines().any(|member| member.parse() == Ok(pid));
        if has { Ok(()) } else { Err(elsewhere()) }
    }

    /// Whether a process with these `cgroups` is below this cgroup.
    pub(super) fn contains(&self, cgroup: &PodCgroup, cgroups: &str) -> bool {
        let path = self.memory.as_ref().and_then(|memory| memory.path(cgroups));
        path.is_some_and(|path| path.starts_with(&format!("{}/", cgroup.path())))
    }

    /// Creates a cgroup with a memory limit and without swap.
    pub(super) fn make(&self, cgroup: &PodCgroup, bytes: u64) -> Result<(), CgroupError> {
        if cgroup.is_slice {
            return Ok(start_slice(&cgroup.to_string(), bytes)?);
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

    /// Removes the cgroup from all hierarchies: runtimes create it in each.
    pub(super) fn remove(&self, cgroup: &PodCgroup) -> Result<(), CgroupError> {
        let own: Vec<PathBuf> = self
            .roots
            .iter()
            .map(|root| root.join(cgroup.to_string()))
            .filter(|own| is_folder(own))
            .collect();
        if own.iter().any(|own| is_populated(own, DEPTH)) {
            return Err(CgroupError::Busy);
        }
        if cgroup.is_slice {
            stop_slice(&cgroup.to_string())?;
        }
        own.iter().try_for_each(|own| remove(own, DEPTH))
    }

    /// Removes the empty cgroups with one of these ids in their names, which a runtime leaves
    /// behind when it has lost track of the container. Returns whether none is left.
    pub(super) fn remove_by_ids(&self, ids: &OwnIds) -> bool {
        let mut all_gone = true;
        for root in &self.roots {
            all_gone &= remove_below(root, ids, DEPTH);
        }
        all_gone
    }

    /// The number of cgroups with one of these ids in their names, in all hierarchies.
    pub(super) fn count_by_ids(&self, ids: &BTreeSet<String>) -> usize {
        let is_one = |id: &str| ids.contains(id);
        let found = self.roots.iter();
        found.map(|root| named(root, &is_one, DEPTH).len()).sum()
    }

    /// The ids in the names of all cgroups.
    pub(super) fn ids(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for root in &self.roots {
            collect_ids(root, DEPTH, &mut found);
        }
        found
    }

    /// The cgroups that runs of this suite have created, in any hierarchy.
    pub(super) fn list_own(&self) -> BTreeSet<PodCgroup> {
        let folders = self.roots.iter().filter_map(|root| fs::read_dir(root).ok());
        let names = folders.flatten().filter_map(|entry| {
            let entry = entry.ok()?;
            let is_folder = entry.file_type().ok()?.is_dir();
            PodCgroup::parse(entry.file_name().to_str()?).filter(|_| is_folder)
        });
        names.collect()
    }
}

impl Hierarchy {
    /// The path in `/proc/PID/cgroup`, whose lines have a number, controllers and a path.
    fn path<'a>(&self, cgroups: &'a str) -> Option<&'a str> {
        cgroups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            let own = match self.version {
                Version::One => controllers.split(',').any(|it| it == self.controller),
                Version::Two => controllers.is_empty(),
            };
            own.then_some(path)
        })
    }

    fn limit(&self, own: &Path, bytes: u64) -> Result<(), CgroupError> {
        let limit = bytes.to_string();
        match self.version {
            Version::One => {
                // Before Linux 5.11 a limit may apply only to the cgroup itself.
                let below = own.join("memory.use_hierarchy");
                if fs::read_to_string(&below).is_ok_and(|value| value.trim() == "0") {
                    write(&below, "1")?;
                }
                write(&own.join("memory.limit_in_bytes"), &limit)?;
                // The limit of memory plus swap: equal, so that there is no swap.
                write_if_there(&own.join("memory.memsw.limit_in_bytes"), &limit)
            }
            Version::Two => {
                write(&own.join("memory.max"), &limit)?;
                write_if_there(&own.join("memory.swap.max"), "0")?;
                // Runtimes read the counters of each container, which need the controller.
                write(&own.join("cgroup.subtree_control"), "+memory")
            }
        }
    }
}

/// systemd failed to start or stop a slice.
#[derive(Debug, thiserror::Error)]
pub enum SliceError {
    #[error("run busctl, a part of systemd: {0}")]
    Busctl(#[from] io::Error),
    #[error("systemd refuses {method} of {unit}: {said}")]
    Refused {
        method: &'static str,
        unit: String,
        said: String,
    },
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> CgroupError {
    let path = path.to_owned();
    move |source| CgroupError::System { path, source }
}

/// Writes to an existing file: the kernel creates those of a cgroup.
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

/// Whether it is a directory, and not a link to one.
fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

fn folders_in(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten();
    let folders = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        entry.file_type().ok()?.is_dir().then(|| entry.path())
    });
    folders.collect()
}

/// Whether a process is in this cgroup or below it; true if that cannot be read.
fn is_populated(path: &Path, depth: usize) -> bool {
    let members = match fs::read_to_string(path.join("cgroup.procs")) {
        Ok(members) => members,
        Err(fault) if fault.kind() == ErrorKind::NotFound => String::new(),
        Err(_) => return true,
    };
    let mut below = folders_in(path).into_iter();
    !members.trim().is_empty() || below.any(|below| depth == 0 || is_populated(&below, depth - 1))
}

/// Removes the empty cgroups below a path with one of these ids in their names; returns whether
/// none is left.
fn remove_below(path: &Path, ids: &OwnIds, depth: usize) -> bool {
    let mut all_gone = true;
    for below in folders_in(path) {
        let name = below.file_name().and_then(OsStr::to_str);
        let is_one = name.is_some_and(|name| ids.contains(id_in(name)));
        all_gone &= if is_one {
            !is_populated(&below, DEPTH) && remove(&below, DEPTH).is_ok()
        } else {
            depth == 0 || remove_below(&below, ids, depth - 1)
        };
    }
    all_gone
}

/// The cgroups below a path with one of these ids in their names, without those below them.
fn named(path: &Path, is_one: &impl Fn(&str) -> bool, depth: usize) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for below in folders_in(path) {
        let name = below.file_name().and_then(OsStr::to_str);
        if name.is_some_and(|name| is_one(id_in(name))) {
            found.push(below);
        } else if depth > 0 {
            found.extend(named(&below, is_one, depth - 1));
        }
    }
    found
}

fn collect_ids(path: &Path, depth: usize, found: &mut BTreeSet<String>) {
    for below in folders_in(path) {
        let name = below.file_name().and_then(OsStr::to_str);
        let id = name.map(id_in).filter(|id| id.len() >= SHORTEST_ID);
        found.extend(id.map(str::to_owned));
        if depth > 0 {
            collect_ids(&below, depth - 1, found);
        }
    }
}

/// Removes empty cgroups bottom-up. One that is already gone is no error.
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

/// Starts a slice with a memory limit and without swap.
pub(super) fn start_slice(unit: &str, memory_bytes: u64) -> Result<(), SliceError> {
    let limit = memory_bytes.to_string();
    let properties = [
        ["Description", "s", "a pod of cri-event-conformance"],
        ["MemoryAccounting", "b", "true"],
        ["MemoryMax", "t", &limit],
        ["MemorySwapMax", "t", "0"],
    ];
    let count = properties.len().to_string();
    let head = ["ssa(sv)a(sa(sv))", unit, "fail", &count];
    // No auxiliary units.
    let arguments = [&head[..], properties.as_flattened(), &["0"]].concat();
    call_systemd("StartTransientUnit", unit, &arguments)
}

/// Stops an empty slice, which removes it. It is no error if there is none.
pub(super) fn stop_slice(unit: &str) -> Result<(), SliceError> {
    match call_systemd("StopUnit", unit, &["ss", unit, "fail"]) {
        Err(SliceError::Refused { said, .. }) if said.contains("not loaded") => Ok(()),
        done => done,
    }
}

fn call_systemd(method: &'static str, unit: &str, arguments: &[&str]) -> Result<(), SliceError> {
    let output = Command::new("busctl")
        .args([ACCEPTED_WITHIN, "call"])
        .args(SYSTEMD)
        .arg(method)
        .args(arguments)
        .stdin(Stdio::null())
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let unit = unit.to_owned();
    Err(SliceError::Refused { method, unit, said })
}
