//! The directory on this host in which the logs of a run's containers stand.
//!
//! Every container has a log below it. A kubelet that lives on the node deletes, of each container
//! that it does not know, the files that begin with the container's log path: with an empty path
//! those are files of the kubelet's own working directory.
//!
//! The name has the run and its process, so that `cleanup` finds what a killed run has left.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::owner::{Owner, PREFIX};
use crate::history::RunId;

/// Where logs stand on a node, and where the runtime is allowed to write them.
const USUAL: &str = "/var/log";
/// Only the runtime, which is root, and the suite itself read what is there.
const MODE: u32 = 0o700;

/// The log directory of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogDirectory {
    path: PathBuf,
    owner: Owner,
}

/// The log directory could not be made.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}")]
pub struct LogDirectoryError {
    /// Its path.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

impl LogDirectory {
    /// The directory of a run in this process, below `parent`. It is not made yet.
    #[must_use]
    pub fn new(parent: &Path, run: &RunId) -> Self {
        let owner = Owner::new(run);
        // The runtime has another working directory.
        let parent = std::path::absolute(parent).unwrap_or_else(|_| parent.to_owned());
        let path = parent.join(format!("{PREFIX}{owner}"));
        Self { path, owner }
    }

    /// The directory of a run in this process: below the parent that the user names, else below
    /// `/var/log`, else, where that may not be written, below the directory for temporary files.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn make(parent: Option<&Path>, run: &RunId) -> Result<Self, LogDirectoryError> {
        let parents = parent.map_or_else(usual_parents, |parent| vec![parent.to_owned()]);
        let mut made = Err(io::Error::from(io::ErrorKind::NotFound));
        let mut path = PathBuf::new();
        for parent in parents {
            let logs = Self::new(&parent, run);
            made = DirBuilder::new().mode(MODE).create(&logs.path);
            if made.is_ok() {
                return Ok(logs);
            }
            path = logs.path;
        }
        let source = made.expect_err("a directory that was made has been returned");
        Err(LogDirectoryError { path, source })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The run that made it.
    #[must_use]
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Removes it with all logs. That it is gone already is no error.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn remove(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.path) {
            Err(fault) if fault.kind() != io::ErrorKind::NotFound => Err(fault),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// The log directories below `parent`, or below the usual ones, that this user's runs have made
    /// and not removed.
    #[must_use]
    pub fn found(parent: Option<&Path>) -> Vec<Self> {
        let parents = parent.map_or_else(usual_parents, |parent| vec![parent.to_owned()]);
        let entries = parents
            .iter()
            .filter_map(|parent| fs::read_dir(parent).ok());
        let paths = entries
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()));
        paths.filter_map(Self::at).collect()
    }

    /// The log directory at a path; none if no run of this user can have made it.
    fn at(path: PathBuf) -> Option<Self> {
        let name = path.file_name().and_then(OsStr::to_str)?;
        let owner = Owner::in_name(name)?;
        let found = fs::symlink_metadata(&path).ok()?;
        let ours = found.is_dir() && found.uid() == rustix::process::geteuid().as_raw();
        ours.then_some(Self { path, owner })
    }
}

fn usual_parents() -> Vec<PathBuf> {
    vec![PathBuf::from(USUAL), std::env::temp_dir()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn run() -> RunId {
        RunId::from("6f1c")
    }

    #[test]
    fn it_is_private_found_again_and_removed_with_its_logs() {
        let parent = tempfile::tempdir().expect("a directory");
        let logs = LogDirectory::make(Some(parent.path()), &run()).expect("it is made");
        let mode = fs::metadata(logs.path())
            .expect("it is there")
            .permissions();
        assert_eq!(mode.mode() & 0o777, MODE);
        let found = LogDirectory::found(Some(parent.path()));
        assert_eq!(found.first(), Some(&logs));
        fs::write(logs.path().join("c_0.log"), "a line").expect("a log");
        logs.remove().expect("it is removed");
        assert!(!logs.path().exists());
        logs.remove().expect("what is gone is removed");
        assert_eq!(LogDirectory::found(Some(parent.path())), []);
    }

    #[test]
    fn what_is_there_already_is_not_taken() {
        let parent = tempfile::tempdir().expect("a directory");
        let logs = LogDirectory::new(parent.path(), &run());
        symlink("/", logs.path()).expect("a link");
        let fault = LogDirectory::make(Some(parent.path()), &run()).expect_err("it is there");
        assert_eq!(fault.source.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(LogDirectory::found(Some(parent.path())), []);
    }

    #[test]
    fn directories_of_others_are_not_found() {
        let parent = tempfile::tempdir().expect("a directory");
        for name in [
            "cri-event-conformance-",
            "cri-event-conformance-a",
            "other-a.1-2",
        ] {
            fs::create_dir(parent.path().join(name)).expect("a directory");
        }
        fs::write(parent.path().join("cri-event-conformance-a.1-2"), "").expect("a file");
        assert_eq!(LogDirectory::found(Some(parent.path())), []);
    }
}
