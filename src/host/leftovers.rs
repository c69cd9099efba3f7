//! Processes that live on though the container or sandbox is gone that they belong to.
//!
//! A process is one of these if the runtime has put it into a cgroup that bears the id, or if it is
//! a shim or a monitor that was started for the id. An id of a runtime has 64 random digits, so no
//! other container has the same. What only looks alike is left alone.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::cgroup::{Hierarchies, words};
use super::process::{SHORTEST_ID, has_program};

/// Where the kernel shows its processes.
const PROC: &str = "/proc";

/// A process that has outlived what it belongs to, and a hold on it.
#[derive(Debug)]
pub struct Leftover {
    pid: Pid,
    handle: OwnedFd,
    program: String,
    owner: Owner,
}

/// What shows to whom a process belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Owner {
    id: String,
    /// The cgroup whose name has the id, or the command line.
    seen_in: String,
}

impl Leftover {
    /// Kills it. That it has ended by itself is no fault.
    ///
    /// # Errors
    /// If the system does not let us.
    pub fn kill(&self) -> io::Result<()> {
        match pidfd_send_signal(&self.handle, Signal::KILL) {
            Err(rustix::io::Errno::SRCH) | Ok(()) => Ok(()),
            Err(fault) => Err(fault.into()),
        }
    }
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Owner { id, seen_in } = &self.owner;
        let (pid, program) = (self.pid.as_raw_nonzero(), &self.program);
        write!(f, "process {pid} ({program}) of {id}, as {seen_in} shows")
    }
}

/// The processes of these containers and sandboxes. Ids that are too short to be a runtime's are
/// not looked for.
pub(super) fn find(ids: &BTreeSet<String>) -> Vec<Leftover> {
    find_in(Path::new(PROC), ids)
}

/// Removes the empty cgroups of these containers and sandboxes.
pub(super) fn remove_cgroups(ids: &BTreeSet<String>) {
    let ids = long_enough(ids);
    if let Ok(hierarchies) = Hierarchies::of_host()
        && !ids.is_empty()
    {
        hierarchies.remove_those_of(&ids);
    }
}

fn long_enough(ids: &BTreeSet<String>) -> BTreeSet<&str> {
    let ids = ids.iter().map(String::as_str);
    ids.filter(|id| id.len() >= SHORTEST_ID).collect()
}

fn find_in(proc: &Path, ids: &BTreeSet<String>) -> Vec<Leftover> {
    let ids = long_enough(ids);
    let entries = match std::fs::read_dir(proc) {
        Ok(entries) if !ids.is_empty() => entries,
        Ok(_) | Err(_) => return Vec::new(),
    };
    let pids = entries.filter_map(|entry| {
        let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
        Pid::from_raw(pid)
    });
    pids.filter_map(|pid| hold(proc, pid, &ids)).collect()
}

/// A hold on a process, taken before what shows its owner is read for good: a number that is used
/// again harms nobody.
fn hold(proc: &Path, pid: Pid, ids: &BTreeSet<&str>) -> Option<Leftover> {
    let own = proc.join(pid.as_raw_nonzero().to_string());
    owner(&own, ids)?;
    let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    let owner = owner(&own, ids)?;
    let program = std::fs::read_to_string(own.join("comm")).unwrap_or_default();
    Some(Leftover {
        pid,
        handle,
        program: program.trim().to_owned(),
        owner,
    })
}

fn owner(process: &Path, ids: &BTreeSet<&str>) -> Option<Owner> {
    if !has_program(process) {
        return None;
    }
    let cgroups = std::fs::read_to_string(process.join("cgroup")).unwrap_or_default();
    by_cgroup(&cgroups, ids).or_else(|| {
        let command = std::fs::read(process.join("cmdline")).unwrap_or_default();
        by_command(&String::from_utf8_lossy(&command), ids)
    })
}

/// By the lines of `/proc/PID/cgroup`: a number, controllers and a path.
fn by_cgroup(cgroups: &str, ids: &BTreeSet<&str>) -> Option<Owner> {
    cgroups.lines().find_map(|line| {
        let path = line.splitn(3, ':').nth(2)?;
        let id = words(path).find(|word| ids.contains(word))?;
        Some(Owner {
            id: id.to_owned(),
            seen_in: format!("its cgroup {path}"),
        })
    })
}

/// By a command line whose arguments end with NUL each: a shim of containerd's CRI, or a monitor of
/// CRI-O's.
fn by_command(command: &str, ids: &BTreeSet<&str>) -> Option<Owner> {
    let mut arguments = command.split('\0');
    let program = PathBuf::from(arguments.next()?);
    let program = program.file_name().and_then(OsStr::to_str)?;
    let arguments: Vec<&str> = arguments.collect();
    let after = |name: &str| {
        let mut pairs = arguments.windows(2);
        pairs.find_map(|pair| (pair[0] == name).then_some(pair[1]))
    };
    let id = if program.starts_with("containerd-shim") {
        after("-id").filter(|_| after("-namespace") == Some("k8s.io"))
    } else if program == "conmon" {
        after("-c")
    } else {
        None
    }?;
    ids.contains(id).then(|| Owner {
        id: id.to_owned(),
        seen_in: "its command line".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command};

    use super::*;

    const ID: &str = "0d4e4a3df1f4c1b3ad9a7d1c54dbb8b0c0f1a9d3d4ad2a51f4e1c9be2f1d6a11";
    const OTHER: &str = "1d4e4a3df1f4c1b3ad9a7d1c54dbb8b0c0f1a9d3d4ad2a51f4e1c9be2f1d6a11";

    fn ids() -> BTreeSet<&'static str> {
        BTreeSet::from([ID])
    }

    #[test]
    fn a_cgroup_with_the_id_in_its_path_is_of_the_container() {
        for path in [
            format!("0::/k8s.io/{ID}"),
            format!("9:cpu:/\n8:memory:/pods/crio-{ID}.scope"),
            format!("0::/system.slice/cri-containerd-{ID}.scope"),
            format!("0::/pods/crio-conmon-{ID}.scope"),
            format!("0::/k8s.io/{ID}/below"),
        ] {
            let owner = by_cgroup(&path, &ids());
            assert_eq!(owner.unwrap().id, ID, "{path}");
        }
        for path in [
            format!("0::/k8s.io/{OTHER}"),
            format!("0::/k8s.io/{ID}0"),
            format!("0::/k8s.io/{}", &ID[..63]),
            format!("8:name={ID}:/"),
        ] {
            assert_eq!(by_cgroup(&path, &ids()), None, "{path}");
        }
    }

    #[test]
    fn a_shim_or_a_monitor_is_of_the_container_that_it_was_started_for() {
        let of = |arguments: &[&str]| by_command(&arguments.join("\0"), &ids()).is_some();
        let shim = "/usr/bin/containerd-shim-runc-v2";
        assert!(of(&[
            shim,
            "-namespace",
            "k8s.io",
            "-id",
            ID,
            "-address",
            "/run/c.sock"
        ]));
        assert!(of(&["conmon", "-b", "/run/bundle", "-c", ID]));
        assert!(!of(&[shim, "-namespace", "k8s.io", "-id", OTHER]));
        assert!(!of(&[shim, "-namespace", "moby", "-id", ID]));
        assert!(!of(&[shim, "-namespace", "k8s.io", "-address", ID]));
        assert!(!of(&["/usr/bin/tail", "-namespace", "k8s.io", "-id", ID]));
        assert!(!of(&["crictl", "-c", ID]));
        assert!(!of(&[""]));
    }

    /// A process that waits, and is shown in a `/proc` of the test's own, in this cgroup.
    fn sleeper(proc: &Path, id: &str) -> Child {
        let child = Command::new("sleep").arg("600").spawn().unwrap();
        let own = proc.join(child.id().to_string());
        fs::create_dir(&own).unwrap();
        fs::write(own.join("cgroup"), format!("0::/k8s.io/{id}\n")).unwrap();
        fs::write(own.join("comm"), "sleep\n").unwrap();
        fs::write(own.join("stat"), "1 (sleep) S 1").unwrap();
        child
    }

    #[test]
    fn what_is_found_is_killed_and_nothing_else() {
        let proc = tempfile::tempdir().unwrap();
        let (mut ours, mut another) = (sleeper(proc.path(), ID), sleeper(proc.path(), OTHER));
        fs::create_dir(proc.path().join("self")).unwrap();
        let wanted = BTreeSet::from([ID.to_owned(), "short".to_owned()]);
        let found = find_in(proc.path(), &wanted);
        let told: Vec<_> = found.iter().map(ToString::to_string).collect();
        let pid = ours.id();
        let expected = format!("process {pid} (sleep) of {ID}, as its cgroup /k8s.io/{ID} shows");
        assert_eq!(told, [expected]);
        for found in found {
            found.kill().unwrap();
        }
        assert_eq!(ours.wait().unwrap().signal(), Some(9));
        assert_eq!(another.try_wait().unwrap(), None);
        another.kill().unwrap();
        another.wait().unwrap();
    }

    #[test]
    fn nothing_is_found_by_no_id() {
        let proc = tempfile::tempdir().unwrap();
        let mut child = sleeper(proc.path(), ID);
        assert!(find_in(proc.path(), &BTreeSet::new()).is_empty());
        let short = BTreeSet::from(["k8s".to_owned(), "io".to_owned()]);
        assert!(find_in(proc.path(), &short).is_empty());
        fs::write(
            proc.path().join(format!("{}/stat", child.id())),
            "1 (s) Z 1",
        )
        .unwrap();
        assert!(find_in(proc.path(), &BTreeSet::from([ID.to_owned()])).is_empty());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
