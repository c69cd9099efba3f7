//! Freezes the processes of a container by its cgroup, and lets them run on.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::{CgroupError, DEPTH, Hierarchies, Hierarchy, Version, at, id_in, named, write};
use crate::host::OwnIds;

/// A cgroup whose processes can be frozen.
#[derive(Debug)]
pub(in crate::host) struct Freezer {
    cgroup: PathBuf,
    version: Version,
}

impl Hierarchies {
    /// The cgroup of the container with this id, by which its processes can be frozen. `cgroups` is
    /// the content of `/proc/PID/cgroup` of one of them.
    pub(in crate::host) fn freezer_of(
        &self,
        id: &str,
        cgroups: &str,
    ) -> Result<Freezer, CgroupError> {
        let hierarchy = self.freezer.as_ref().ok_or(CgroupError::NoFreezer)?;
        let path = hierarchy.path(cgroups).ok_or(CgroupError::NoFreezer)?;
        let own = Path::new(path.trim_start_matches('/')).ancestors();
        // crun puts the processes into a cgroup below the container's.
        let own = own.into_iter().find(|path| {
            let name = path.file_name().and_then(OsStr::to_str);
            name.is_some_and(|name| id_in(name) == id)
        });
        let elsewhere = || CgroupError::Elsewhere(path.to_owned());
        let own = own
            .filter(|_| !path.starts_with("/.."))
            .ok_or_else(elsewhere)?;
        let freezer = hierarchy.freezer(hierarchy.root.join(own));
        let is_there = freezer.cgroup.join(freezer.file()).exists();
        is_there.then_some(freezer).ok_or_else(elsewhere)
    }

    /// Lets the processes in the cgroups with one of these ids in their names run on.
    pub(in crate::host) fn thaw_by_ids(&self, ids: &OwnIds) {
        let Some(hierarchy) = &self.freezer else {
            return;
        };
        for cgroup in named(&hierarchy.root, &|id| ids.contains(id), DEPTH) {
            // One that cannot be thawed may still be removed.
            let _ = hierarchy.freezer(cgroup).thaw();
        }
    }
}

impl Hierarchy {
    fn freezer(&self, cgroup: PathBuf) -> Freezer {
        Freezer {
            cgroup,
            version: self.version,
        }
    }
}

impl Freezer {
    /// Begins to freeze its processes.
    pub(in crate::host) fn freeze(&self) -> Result<(), CgroupError> {
        let value = match self.version {
            Version::One => "FROZEN",
            Version::Two => "1",
        };
        write(&self.cgroup.join(self.file()), value)
    }

    /// Lets its processes run on. It is no error if it is gone.
    pub(in crate::host) fn thaw(&self) -> Result<(), CgroupError> {
        let value = match self.version {
            Version::One => "THAWED",
            Version::Two => "0",
        };
        match write(&self.cgroup.join(self.file()), value) {
            Err(CgroupError::System { source, .. }) if is_gone(&source) => Ok(()),
            thawed => thawed,
        }
    }

    /// Whether all of its processes are frozen.
    pub(in crate::host) fn is_frozen(&self) -> Result<bool, CgroupError> {
        let (file, frozen) = match self.version {
            Version::One => (self.file(), "FROZEN"),
            Version::Two => ("cgroup.events", "frozen 1"),
        };
        let path = self.cgroup.join(file);
        let state = fs::read_to_string(&path).map_err(at(&path))?;
        Ok(state.lines().any(|line| line == frozen))
    }

    pub(in crate::host) fn path(&self) -> &Path {
        &self.cgroup
    }

    fn file(&self) -> &'static str {
        match self.version {
            Version::One => "freezer.state",
            Version::Two => "cgroup.freeze",
        }
    }
}

/// Whether a cgroup is gone, already when its file is opened or only when that is written to.
fn is_gone(fault: &io::Error) -> bool {
    fault.kind() == ErrorKind::NotFound || fault.raw_os_error() == Some(Errno::NODEV.raw_os_error())
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::host::{BootTicks, OwnId};

    const ID: &str = "0d4e4a3df1f4c1b3ad9a7d1c54dbb8b0";

    /// A hierarchy of this version with such a cgroup in it, and the file that freezes that.
    fn hierarchy(version: Version, cgroup: &str) -> (TempDir, Hierarchies, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let freezer = Some(Hierarchy {
            root: folder.path().to_owned(),
            version,
            controller: "freezer",
        });
        let hierarchies = Hierarchies {
            roots: Vec::new(),
            memory: None,
            freezer,
        };
        let cgroup = folder.path().join(cgroup);
        fs::create_dir_all(&cgroup).expect("a new folder");
        let file = match version {
            Version::One => "freezer.state",
            Version::Two => "cgroup.freeze",
        };
        fs::write(cgroup.join(file), "").expect("a new file");
        (folder, hierarchies, cgroup.join(file))
    }

    fn content(file: &Path) -> String {
        fs::read_to_string(file).expect("it is there")
    }

    #[test]
    fn version_1_freezes_and_thaws_by_one_file() {
        let (_folder, hierarchies, file) = hierarchy(Version::One, "k8s.io/0d4e");
        let cgroups = "4:memory:/elsewhere\n3:freezer:/k8s.io/0d4e\n0::/\n";
        let freezer = hierarchies.freezer_of("0d4e", cgroups).expect("it is");
        freezer.freeze().expect("the file is there");
        assert_eq!(content(&file), "FROZEN");
        assert!(freezer.is_frozen().expect("the file is there"));
        for not_yet in ["FREEZING\n", "THAWED\n"] {
            fs::write(&file, not_yet).expect("the file is there");
            assert!(!freezer.is_frozen().expect("the file is there"));
        }
        freezer.freeze().expect("the file is there");
        freezer.thaw().expect("the file is there");
        assert!(content(&file).starts_with("THAWED"));
    }

    #[test]
    fn version_2_tells_in_another_file_whether_all_are_frozen() {
        let (_folder, hierarchies, file) = hierarchy(Version::Two, "a.slice/crio-0d4e.scope");
        let cgroups = "0::/a.slice/crio-0d4e.scope/container\n";
        let freezer = hierarchies.freezer_of("0d4e", cgroups).expect("it is");
        freezer.freeze().expect("the file is there");
        assert_eq!(content(&file), "1");
        for (events, is_frozen) in [("populated 1\nfrozen 0\n", false), ("frozen 1\n", true)] {
            fs::write(file.with_file_name("cgroup.events"), events).expect("a file");
            assert_eq!(freezer.is_frozen().expect("the file is there"), is_frozen);
        }
        freezer.thaw().expect("the file is there");
        assert_eq!(content(&file), "0");
    }

    #[test]
    fn only_the_containers_own_cgroup_is_frozen() {
        let (_folder, hierarchies, _) = hierarchy(Version::Two, "a.slice/crio-0d4e.scope");
        for other in ["0::/a.slice\n", "0::/../crio-0d4e.scope\n", "0::/b/0d4e\n"] {
            let refused = hierarchies.freezer_of("0d4e", other);
            assert!(matches!(refused, Err(CgroupError::Elsewhere(_))), "{other}");
        }
        let refused = hierarchies.freezer_of("0d4e", "4:freezer:/a.slice/crio-0d4e.scope\n");
        assert!(matches!(refused, Err(CgroupError::NoFreezer)));
    }

    #[test]
    fn one_that_is_gone_needs_no_thaw() {
        let (folder, hierarchies, file) = hierarchy(Version::One, "k8s.io/0d4e");
        let freezer = hierarchies.freezer_of("0d4e", "3:freezer:/k8s.io/0d4e\n");
        drop(folder);
        assert!(!file.exists());
        freezer.expect("it was there").thaw().expect("it is gone");
    }

    #[test]
    fn cgroups_frozen_by_a_killed_run_are_thawed_and_no_others() {
        let (folder, hierarchies, file) = hierarchy(Version::One, &format!("k8s.io/{ID}"));
        let other = folder.path().join(format!("k8s.io/1{ID}"));
        fs::create_dir(&other).expect("a new folder");
        fs::write(other.join("freezer.state"), "FROZEN").expect("a new file");
        fs::write(&file, "FROZEN").expect("it is there");
        let own = OwnId {
            id: ID.to_owned(),
            since: BootTicks::now(),
        };
        hierarchies.thaw_by_ids(&[own].into_iter().collect());
        assert_eq!(content(&file), "THAWED");
        assert_eq!(content(&other.join("freezer.state")), "FROZEN");
    }
}
