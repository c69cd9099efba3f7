//! Facts about this host from the kernel, and the numbers of resources that the runtime and its
//! pods use: from `/proc` and from the cgroup hierarchies. Unavailable facts are absent.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::cgroup::{CgroupError, Hierarchies};
use super::leftovers::{self, id_in};
use super::runtime_process::{RuntimeProcess, RuntimeProcessError};
use crate::history::{Holder, Host, Resource};

/// Why resources cannot be counted.
#[derive(Debug, thiserror::Error)]
pub enum ResourceError {
    /// The process of the runtime is out of reach.
    #[error(transparent)]
    Process(#[from] RuntimeProcessError),
    #[error("the runtime has no socket by which its process is found")]
    NoSocket,
    /// The cgroup hierarchies are out of sight.
    #[error(transparent)]
    Cgroup(#[from] CgroupError),
    /// A file of `/proc` is not as it is expected to be.
    #[error("{0} has no `{1}`")]
    Unreadable(PathBuf, &'static str),
}

/// The files that show the resources of a runtime.
struct Seen {
    pid: u32,
    folder: PathBuf,
}

impl Seen {
    fn new(process: &RuntimeProcess) -> Self {
        let pid = process.pid();
        let folder = PathBuf::from(format!("/proc/{pid}"));
        Self { pid, folder }
    }

    fn count(&self, resource: Resource, ids: &BTreeSet<String>) -> Result<u64, ResourceError> {
        Ok(match resource {
            Resource::Descriptors => {
                let listed = std::fs::read_dir(self.folder.join("fd"));
                let listed = listed.map_err(self.system())?.flatten();
                let targets = listed.filter_map(|entry| std::fs::read_link(entry.path()).ok());
                targets.filter(|target| !is_pidfd(target)).count() as u64
            }
            Resource::Threads => self.number_in_status("Threads:")?,
            Resource::MemoryKib => self.number_in_status("VmRSS:")?,
            Resource::NetworkNamespaces => {
                let mounts = self.read("mountinfo")?;
                mounts.lines().filter(|line| is_namespace(line)).count() as u64
            }
            // The user's command shows them, and nothing of the process does.
            Resource::LogLines => 0,
            Resource::Monitors => leftovers::monitors_of(ids) as u64,
            Resource::Cgroups => Hierarchies::mounted()?.count_by_ids(ids) as u64,
            Resource::Mounts => {
                let mounts = self.read("mountinfo")?;
                let places = mounts.lines().filter_map(|line| line.split(' ').nth(4));
                let is_one = |place: &&str| place.split('/').any(|part| ids.contains(id_in(part)));
                places.filter(is_one).count() as u64
            }
        })
    }

    fn read(&self, name: &str) -> Result<String, ResourceError> {
        let text = std::fs::read_to_string(self.folder.join(name));
        Ok(text.map_err(self.system())?)
    }

    fn number_in_status(&self, key: &'static str) -> Result<u64, ResourceError> {
        let status = self.read("status")?;
        let absent = || ResourceError::Unreadable(self.folder.join("status"), key);
        number_after(&status, key).ok_or_else(absent)
    }

    fn system(&self) -> impl FnOnce(std::io::Error) -> RuntimeProcessError {
        let pid = self.pid;
        move |fault| RuntimeProcessError::System(pid, fault)
    }
}

pub(super) fn host() -> Host {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    Host {
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        cgroup: cgroup(&read("/proc/self/mounts")).map(str::to_owned),
        cpus: u32::try_from(cpus).unwrap_or(u32::MAX),
        load_percent: load_percent(&read("/proc/loadavg")),
        name: Some(super::name()).filter(|name| !name.is_empty()),
    }
}

/// The cgroup version by a mount table in the format of `fstab(5)`: the type is the third field.
fn cgroup(mounts: &str) -> Option<&'static str> {
    let types = || mounts.lines().filter_map(|line| line.split(' ').nth(2));
    let (one, two) = (
        types().any(|kind| kind == "cgroup"),
        types().any(|kind| kind == "cgroup2"),
    );
    match (one, two) {
        (true, true) => Some("hybrid"),
        (false, true) => Some("2"),
        (true, false) => Some("1"),
        (false, false) => None,
    }
}

/// The load of the last minute in percent: the first number of `/proc/loadavg`, which has two
/// decimal places.
fn load_percent(loadavg: &str) -> Option<u32> {
    let (whole, cents) = loadavg.split(' ').next()?.split_once('.')?;
    if cents.len() != 2 {
        return None;
    }
    let (whole, cents): (u32, u32) = (whole.parse().ok()?, cents.parse().ok()?);
    whole.checked_mul(100)?.checked_add(cents)
}

/// How much a holder holds of each of its resources; `ids` are those of the pods.
pub(super) fn count(
    process: &RuntimeProcess,
    holder: Holder,
    ids: &BTreeSet<String>,
) -> Result<Vec<(Resource, u64)>, ResourceError> {
    let seen = Seen::new(process);
    let counted = Resource::of(holder)
        .map(|resource| Ok((resource, seen.count(resource, ids)?)))
        .collect::<Result<_, ResourceError>>();
    // Of a process that has ended in the meantime, some numbers are those of another one.
    process.check_alive()?;
    counted
}

/// Whether a descriptor refers to a process, by its link in `/proc/PID/fd`; since Linux 6.9 it may
/// lead to pidfs. A program in Go has one for each process that it looks up until its garbage is
/// collected, which can take two minutes.
fn is_pidfd(target: &Path) -> bool {
    let target = target.to_string_lossy();
    target == "anon_inode:[pidfd]" || target.starts_with("pidfd:[")
}

/// The number after a key that begins a line of `/proc/PID/status`.
fn number_after(status: &str, key: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(key))?;
    value.split_whitespace().next()?.parse().ok()
}

/// Whether a line of `mountinfo` is of a mounted network namespace: the root, the fourth field, is
/// its name, and the type of the file system follows a hyphen.
fn is_namespace(line: &str) -> bool {
    let is_net = line
        .split(' ')
        .nth(3)
        .is_some_and(|it| it.starts_with("net:["));
    let kind = line
        .split_once(" - ")
        .and_then(|(_, rest)| rest.split(' ').next());
    is_net && kind == Some("nsfs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cgroup_version_follows_from_the_types_of_mounts() {
        let one = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw 0 0\n";
        let two = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n";
        assert_eq!(cgroup(one), Some("1"));
        assert_eq!(cgroup(two), Some("2"));
        assert_eq!(cgroup(&format!("{one}{two}")), Some("hybrid"));
        assert_eq!(cgroup("tmpfs /cgroup2 tmpfs rw 0 0\n"), None);
        assert_eq!(cgroup(""), None);
    }

    #[test]
    fn the_load_is_in_percent() {
        assert_eq!(load_percent("3.07 1.00 0.50 1/200 4711\n"), Some(307));
        assert_eq!(load_percent("0.00 "), Some(0));
        for nonsense in ["", "3 1 0", "3.7 1", "-1.00 2", "99999999999.00 1"] {
            assert_eq!(load_percent(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn this_host_has_a_kernel() {
        let host = host();
        assert!(!host.kernel.is_empty() && host.cpus > 0, "{host:?}");
    }

    #[test]
    fn numbers_are_read_from_status() {
        let status = "Name:\tcontainerd\nVmRSS:\t   51234 kB\nThreads:\t17\n";
        assert_eq!(number_after(status, "VmRSS:"), Some(51_234));
        assert_eq!(number_after(status, "Threads:"), Some(17));
        assert_eq!(number_after(status, "VmSwap:"), None);
    }

    #[test]
    fn descriptors_of_processes_do_not_count() {
        for pidfd in ["anon_inode:[pidfd]", "pidfd:[4026532741]"] {
            assert!(is_pidfd(Path::new(pidfd)), "{pidfd}");
        }
        for other in ["anon_inode:[eventpoll]", "socket:[714]", "/tmp/pidfd:[1]"] {
            assert!(!is_pidfd(Path::new(other)), "{other}");
        }
    }

    #[test]
    fn only_a_mounted_network_namespace_counts() {
        let mounted = "512 35 0:4 net:[4026532741] /run/netns/cni-1 rw shared:7 - nsfs nsfs rw";
        assert!(is_namespace(mounted));
        for other in [
            "512 35 0:4 mnt:[4026532741] /run/snapd/ns/lxd.mnt rw - nsfs nsfs rw",
            "35 29 0:24 / /run/netns rw shared:7 - tmpfs tmpfs rw",
            "",
        ] {
            assert!(!is_namespace(other), "{other}");
        }
    }
}
