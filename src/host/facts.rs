//! Facts about this host from the kernel. Unavailable ones are absent.

use std::fs;

use crate::history::Host;

pub(super) fn host() -> Host {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    Host {
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        cgroup: cgroup(&read("/proc/self/mounts")).map(str::to_owned),
        cpus: u32::try_from(cpus).unwrap_or(u32::MAX),
        load_percent: load_percent(&read("/proc/loadavg")),
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
}
