//! Finds a running kubelet among the processes of this host.

use std::fs;
use std::path::Path;

/// The names of processes that are or contain a kubelet, of at most 15 bytes.
const NAMES: [&str; 5] = [
    "kubelet",
    "kubelite",
    "k3s-server",
    "k3s-agent",
    "hyperkube",
];

/// A process that is or contains a kubelet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeletProcess {
    /// Its pid.
    pub pid: u32,
    /// Its name.
    pub name: String,
}

/// The visible kubelet with the lowest pid; none if there is none.
#[must_use]
pub(super) fn find() -> Option<KubeletProcess> {
    find_below(Path::new("/proc"))
}

fn find_below(proc: &Path) -> Option<KubeletProcess> {
    let pids = fs::read_dir(proc).ok()?.filter_map(|entry| {
        let name = entry.ok()?.file_name();
        name.to_str()?.parse::<u32>().ok()
    });
    let found = pids.filter_map(|pid| {
        let name = fs::read_to_string(proc.join(pid.to_string()).join("comm")).ok()?;
        let name = name.trim_end();
        NAMES.contains(&name).then(|| KubeletProcess {
            pid,
            name: name.to_owned(),
        })
    });
    found.min_by_key(|process| process.pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(names: &[(u32, &str)], expect: Option<(u32, &str)>) {
        let proc = tempfile::tempdir().expect("a directory");
        for (pid, name) in names {
            let process = proc.path().join(pid.to_string());
            fs::create_dir(&process).expect("a directory");
            fs::write(process.join("comm"), format!("{name}\n")).expect("a file");
        }
        let found = find_below(proc.path());
        let found = found.as_ref().map(|found| (found.pid, found.name.as_str()));
        assert_eq!(found, expect);
    }

    #[test]
    fn a_kubelet_is_found_by_its_name() {
        check(&[(1, "systemd"), (812, "kubelet")], Some((812, "kubelet")));
        check(
            &[(9, "k3s-server"), (812, "kubelet")],
            Some((9, "k3s-server")),
        );
    }

    #[test]
    fn what_only_resembles_one_is_none() {
        check(
            &[(1, "systemd"), (7, "kubelet-csr-app"), (8, "kubectl")],
            None,
        );
    }
}
