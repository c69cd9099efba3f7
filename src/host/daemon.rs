//! Finds daemons among the processes of a host.
//!
//! Every user can give a process a name and arguments, and run a program of root that has the
//! setuid bit: only a process whose real, effective, saved and file system user are trusted is
//! believed, and its name is that of its program's file.

use std::path::{Path, PathBuf};

use super::file_tree::FileTree;
use crate::files::is_trusted_user;

/// A running process of root, or of the user of this process. A process in a container is visible
/// as well if the container is on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Daemon {
    pub pid: u32,
    pub name: String,
    /// Its arguments, without the program.
    pub arguments: Vec<String>,
    /// Its systemd unit, such as `kubelet.service`; none if it is not a service of this host's
    /// systemd.
    pub unit: Option<String>,
    /// The files as it sees them.
    pub files: FileTree,
    /// Its working directory, as it calls it; `/` if that cannot be read.
    pub directory: PathBuf,
    /// Whether it has the host's root directory. Any container can run a program with the name of
    /// a daemon: what others say of themselves is not relied on.
    pub is_native: bool,
}

impl Daemon {
    /// The values of a flag, by its name without hyphens, in their order.
    pub fn flag<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let indexed = self.arguments.iter().enumerate();
        indexed.filter_map(move |(place, argument)| {
            let rest = argument.strip_prefix("--")?.strip_prefix(name)?;
            match rest {
                "" => self.arguments.get(place + 1).map(String::as_str),
                _ => rest.strip_prefix('='),
            }
        })
    }

    /// A variable of its environment, as it was when the process started; none if it cannot be
    /// read.
    pub fn variable(&self, host: &FileTree, name: &str) -> Option<String> {
        let environment = host.read(format!("/proc/{}/environ", self.pid)).ok()?;
        let mut variables = environment.split('\0').filter_map(|it| it.split_once('='));
        let (_, value) = variables.find(|(its_name, _)| *its_name == name)?;
        Some(value.to_owned())
    }

    /// Whether its name for a socket and this path of another tree are the same socket.
    pub fn has_socket(
        &self,
        path: impl AsRef<Path>,
        (other, other_path): (&FileTree, &Path),
    ) -> std::io::Result<bool> {
        let theirs = other.identify(other_path)?;
        match self.files.identify(path.as_ref()) {
            Ok(own) => Ok(own == theirs),
            Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(fault) => Err(fault),
        }
    }
}

/// The processes of a host with one of these names, of at most 15 bytes each, by pid.
pub fn daemons(host: &FileTree, names: &[&str]) -> Vec<Daemon> {
    find(host, |process| known_name(host, process, names))
}

/// The processes to which this gives a name, by their paths such as `/proc/812`; by pid.
pub(super) fn find(host: &FileTree, name: impl Fn(&Path) -> Option<String>) -> Vec<Daemon> {
    let entries = host.list("/proc").unwrap_or_default();
    let processes = entries.iter();
    let mut found: Vec<_> = processes
        .filter_map(|process| {
            let pid = pid_of(process)?;
            read(
                host,
                process,
                pid,
                name(process).filter(|_| is_trusted(host, process))?,
            )
        })
        .collect();
    found.sort_by_key(|process| process.pid);
    found
}

/// Which of these names a process has: that of its program's file, or its own if that begins with
/// the file's, as `k3s-server` does, or if the file cannot be seen.
pub(super) fn known_name(host: &FileTree, process: &Path, names: &[&str]) -> Option<String> {
    let program = program(host, process);
    let own = || {
        let own = host.read(process.join("comm")).ok()?;
        let own = own.trim_end().to_owned();
        let fits = program
            .as_ref()
            .is_none_or(|program| own.starts_with(program));
        fits.then_some(own)
    };
    let known = |name: &String| names.contains(&name.as_str());
    program
        .clone()
        .filter(known)
        .or_else(|| own().filter(known))
}

/// The name of the file of a process's program; none if it cannot be read.
pub(super) fn program(host: &FileTree, process: &Path) -> Option<String> {
    let file = host.read_link(process.join("exe")).ok()?;
    let name = file.file_name()?.to_str()?;
    // It was upgraded since.
    Some(name.strip_suffix(" (deleted)").unwrap_or(name).to_owned())
}

/// The systemd unit of each process of a host whose cgroup can be read, by pid.
pub(super) fn units(host: &FileTree) -> impl Iterator<Item = (u32, String)> {
    let entries = host.list("/proc").unwrap_or_default();
    let host = host.clone();
    entries.into_iter().filter_map(move |process| {
        let pid = pid_of(&process)?;
        Some((pid, unit(&host.read(process.join("cgroup")).ok()?)?))
    })
}

fn pid_of(process: &Path) -> Option<u32> {
    process.file_name()?.to_str()?.parse().ok()
}

/// Whether all users of a process are trusted: its real, effective, saved and file system user.
fn is_trusted(host: &FileTree, process: &Path) -> bool {
    let status = host.read(process.join("status")).unwrap_or_default();
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let mut users = users.unwrap_or_default().split_whitespace().peekable();
    let is_known = users.peek().is_some();
    is_known && users.all(|user| user.parse().is_ok_and(is_trusted_user))
}

/// The daemon at this path of `/proc`; none if it has ended.
fn read(host: &FileTree, process: &Path, pid: u32, name: String) -> Option<Daemon> {
    let command = host.read(process.join("cmdline")).ok()?;
    // An argument may be empty. A zombie has none, not even a program.
    let mut words = command.strip_suffix('\0').unwrap_or(&command).split('\0');
    words.next().filter(|program| !program.is_empty())?;
    let cgroups = host.read(process.join("cgroup")).unwrap_or_default();
    let files = FileTree::at(host.outside(&process.join("root")));
    let root = Path::new("/");
    let is_native = matches!((files.identify(root), host.identify(root)), (Ok(a), Ok(b)) if a == b);
    let directory = host.read_link(process.join("cwd"));
    Some(Daemon {
        pid,
        name,
        arguments: words.map(str::to_owned).collect(),
        unit: unit(&cgroups).filter(|_| is_native),
        files,
        directory: directory.unwrap_or_else(|_| root.to_owned()),
        is_native,
    })
}

/// The service of this host's systemd that a process belongs to, by its `/proc/PID/cgroup`.
///
/// It is in systemd's own hierarchy: `name=systemd` with cgroup v1 and in hybrid mode, else v2's.
/// The service's cgroup is below slices only: what is below a scope or another service, as in a
/// container or in a user's session, is not a unit of this systemd.
fn unit(cgroups: &str) -> Option<String> {
    let path_in = |hierarchy: &str| {
        let mut lines = cgroups.lines().filter_map(|line| line.split_once(':'));
        lines.find_map(|(_, rest)| {
            let (controllers, path) = rest.split_once(':')?;
            (controllers == hierarchy).then_some(path)
        })
    };
    let path = path_in("name=systemd").or_else(|| path_in(""))?;
    // A cgroup outside of this process's cgroup namespace begins with `..`.
    let is_kind = |part: &str, kind: &str| part.rsplit_once('.').is_some_and(|(_, it)| it == kind);
    let unit = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != "..")
        .find(|part| !is_kind(part, "slice"))?;
    let is_service = is_kind(unit, "service") && !unit.starts_with("user@");
    is_service.then(|| unit.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(cgroups: &str, expect: Option<&str>) {
        assert_eq!(unit(cgroups).as_deref(), expect, "{cgroups}");
    }

    #[test]
    fn the_unit_is_found_in_each_mode_of_cgroups() {
        let kubelet = Some("kubelet.service");
        check("0::/system.slice/kubelet.service\n", kubelet);
        check(
            "12:cpu:/\n1:name=systemd:/system.slice/kubelet.service\n",
            kubelet,
        );
        check(
            "1:name=systemd:/system.slice/kubelet.service/child\n0::/other\n",
            kubelet,
        );
        check("0::/kubelet.slice/kubelet.service\n", kubelet);
        check("0::/../../system.slice/kubelet.service\n", kubelet);
    }

    #[test]
    fn a_unit_of_another_systemd_is_none() {
        for cgroups in [
            "0::/\n",
            "0::/system.slice/docker-6f1c.scope/kubelet.slice/kubelet.service\n",
            "0::/user.slice/user-0.slice/user@0.service/app.slice/kubelet.service\n",
            "0::/user.slice/user-0.slice/session-1.scope\n",
            "2:cpu:/system.slice/kubelet.service\n",
        ] {
            check(cgroups, None);
        }
    }
}
