//! The directory for the logs of a run's containers.
//!
//! Every container has a log path in it. A kubelet on the node deletes, for each unknown container,
//! the files whose path begins with the container's log path: with an empty log path, those would
//! be files in the kubelet's working directory.
//!
//! The name contains the run and its process, so that `cleanup` finds the directory of a killed
//! run. A file in it lists what the run has made: a process may outlive a container that the
//! runtime no longer lists.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::owner::{Owner, PREFIX};
use crate::history::RunId;

/// The usual parent of logs on a node, where the runtime may write.
const DEFAULT_PARENT: &str = "/var/log";
/// Accessible only to the suite and to the runtime, which is root.
const MODE: u32 = 0o700;
/// The file that lists the ids of what the run has made, a line each.
const MADE: &str = "made-by-this-run";
/// The mode of that file.
const MADE_MODE: u32 = 0o600;
/// How much of it is read: the ids of 250,000 sandboxes and containers.
const MADE_BYTES: u64 = 16 << 20;

/// The log directory of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogDirectory {
    path: PathBuf,
    owner: Owner,
}

/// The log directory could not be created.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}")]
pub struct LogDirectoryError {
    /// Its path.
    pub path: PathBuf,
    /// The error of the system.
    pub source: io::Error,
}

impl LogDirectory {
    /// The directory of a run in this process, below `parent`. It is not created yet.
    #[must_use]
    pub fn new(parent: &Path, run: &RunId) -> Self {
        let owner = Owner::new(run);
        // The runtime has another working directory.
        let parent = std::path::absolute(parent).unwrap_or_else(|_| parent.to_owned());
        let path = parent.join(format!("{PREFIX}{owner}"));
        Self { path, owner }
    }

    /// Creates the directory of a run in this process: below the given parent, else below
    /// `/var/log`, or below the temporary directory if the former is not writable.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn make(parent: Option<&Path>, run: &RunId) -> Result<Self, LogDirectoryError> {
        let parents = parent.map_or_else(default_parents, |parent| vec![parent.to_owned()]);
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

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The run that created it.
    #[must_use]
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Adds the id of a sandbox or container to those that the run has made.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn note(&self, id: &str) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let options = options.append(true).create(true).mode(MADE_MODE);
        let mut file = options.open(self.path.join(MADE))?;
        file.write_all(format!("{id}\n").as_bytes())
    }

    /// The ids that were noted; none if they cannot be read.
    #[must_use]
    pub fn noted(&self) -> BTreeSet<String> {
        let mut text = String::new();
        let read = File::open(self.path.join(MADE))
            .and_then(|file| file.take(MADE_BYTES).read_to_string(&mut text));
        match read {
            Ok(_) => text.lines().map(str::to_owned).collect(),
            Err(_) => BTreeSet::new(),
        }
    }

    /// Removes it with all logs. It is no error if it is already gone.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn remove(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.path) {
            Err(fault) if fault.kind() != io::ErrorKind::NotFound => Err(fault),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// The log directories that this user's runs have left below `parent` or the default parents.
    #[must_use]
    pub fn found(parent: Option<&Path>) -> Vec<Self> {
        let parents = parent.map_or_else(default_parents, |parent| vec![parent.to_owned()]);
        let entries = parents
            .iter()
            .filter_map(|parent| fs::read_dir(parent).ok());
        let paths = entries
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()));
        paths.filter_map(Self::at).collect()
    }

    /// The log directory at a path; none if it is not one of this user's runs.
    fn at(path: PathBuf) -> Option<Self> {
        let name = path.file_name().and_then(OsStr::to_str)?;
        let owner = Owner::from_name(name)?;
        let found = fs::symlink_metadata(&path).ok()?;
        let ours = found.is_dir() && found.uid() == rustix::process::geteuid().as_raw();
        ours.then_some(Self { path, owner })
    }
}

fn default_parents() -> Vec<PathBuf> {
    vec![PathBuf::from(DEFAULT_PARENT), std::env::temp_dir()]
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
    fn it_remembers_what_the_run_has_made() {
        let parent = tempfile::tempdir().expect("a directory");
        let logs = LogDirectory::make(Some(parent.path()), &run()).expect("it is made");
        assert_eq!(logs.noted(), BTreeSet::new());
        for id in ["pod", "container"] {
            logs.note(id).expect("it is written");
        }
        let found = LogDirectory::found(Some(parent.path()));
        let noted = found.iter().flat_map(LogDirectory::noted);
        assert_eq!(noted.collect::<Vec<_>>(), ["container", "pod"]);
        logs.remove().expect("it is removed");
        logs.note("late").expect_err("nothing is made again");
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
