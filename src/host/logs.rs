//! The directory for the logs of a run's containers.
//!
//! Every container has a log path in it. A kubelet on the node deletes, for each unknown container,
//! the files whose path begins with the container's log path: with an empty log path, those would
//! be files in the kubelet's working directory.
//!
//! The name contains the run and its process, so that `cleanup` finds the directory of a killed
//! run. A file in it names the runtime and lists what the run has made: a process may outlive a
//! container that the runtime no longer lists. Only this user can write to either, or they are not
//! used.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::fstat;

use super::owner::{OwnId, OwnIds, Owner, PREFIX};
use crate::files::Folder;
use crate::history::RunId;

/// The usual parent of logs on a node, where the runtime may write.
const DEFAULT_PARENT: &str = "/var/log";
/// Accessible only to the suite and to the runtime, which is root.
const MODE: u32 = 0o700;
/// The file with the records of the run: its owner, the boot of the host and the runtime's socket,
/// a line each, then the ids of what it has made, a line each, with the times of the calls.
const RECORDS: &str = "made-by-this-run";
/// How much of it is read: the ids of 200,000 sandboxes and containers.
const RECORDS_BYTES: u64 = 16 << 20;
/// How many entries of a parent are looked at.
const SEARCHED: usize = 100_000;

#[derive(Clone, Debug)]
pub struct LogDirectory {
    path: PathBuf,
    owner: Owner,
    /// Its parent and itself; none if there is only a path, on a simulated kernel.
    handles: Option<Arc<(Folder, Folder)>>,
}

/// What the records of a run hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunRecords {
    /// The socket of its runtime; none if the run ended before it was recorded.
    pub socket: Option<PathBuf>,
    /// What the run has made since the host was booted.
    pub made: OwnIds,
}

/// The log directory could not be created, or its parent not be listed.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}")]
pub struct LogDirectoryError {
    pub path: PathBuf,
    pub source: io::Error,
}

impl LogDirectory {
    /// The directory of a run in this process, below `parent`. It is not created yet.
    pub fn new(parent: &Path, run: &RunId) -> Self {
        let owner = Owner::new(run);
        // The runtime has another working directory.
        let parent = std::path::absolute(parent).unwrap_or_else(|_| parent.to_owned());
        let path = parent.join(format!("{PREFIX}{owner}"));
        Self {
            path,
            owner,
            handles: None,
        }
    }

    /// Creates the directory of a run in this process: below the given parent, else below
    /// `/var/log`, or below the temporary directory if the former is not writable.
    pub fn make(
        parent: Option<&Path>,
        run: &RunId,
        socket: Option<&Path>,
    ) -> Result<Self, LogDirectoryError> {
        let parents = parent.map_or_else(default_parents, |parent| vec![parent.to_owned()]);
        let mut path = PathBuf::new();
        let mut made = Err(io::Error::from(io::ErrorKind::NotFound));
        for parent in parents {
            path = Self::new(&parent, run).path;
            made = Self::make_below(&parent, run, socket);
            if made.is_ok() {
                break;
            }
        }
        made.map_err(|source| LogDirectoryError { path, source })
    }

    fn make_below(parent: &Path, run: &RunId, socket: Option<&Path>) -> io::Result<Self> {
        let above = Folder::open_safe(parent)?;
        let logs = Self::new(&parent.canonicalize()?, run);
        above.create(logs.name(), MODE)?;
        let own = above.enter(logs.name())?;
        own.must_be_own()?;
        let socket = socket.map(|socket| resolved(socket).display().to_string());
        let header = [logs.owner.to_string(), boot(), socket.unwrap_or_default()];
        let records = own.create_file(OsStr::new(RECORDS), 0o600);
        let written = records.and_then(|mut records| writeln!(records, "{}", header.join("\n")));
        let handles = Some(Arc::new((above, own)));
        let logs = Self { handles, ..logs };
        if let Err(fault) = written {
            // As on a full disk. Without records, `cleanup` would leave it.
            let _ = logs.remove();
            return Err(fault);
        }
        Ok(logs)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The run that created it.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Adds the id of a sandbox or container to those that the run has made.
    pub fn note(&self, OwnId { id, since }: &OwnId) -> io::Result<()> {
        let (_, own) = self.handles.as_deref().ok_or(io::ErrorKind::NotFound)?;
        let mut records = own.append(OsStr::new(RECORDS), 0o600)?;
        writeln!(records, "{id} {since}")
    }

    fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or_default()
    }

    /// The records of the run; empty if they cannot be read, or are of another run.
    pub fn records(&self) -> RunRecords {
        let mut text = String::new();
        let records = self.handles.as_deref();
        let records = records.and_then(|(_, own)| own.read(OsStr::new(RECORDS)).ok());
        let read = records.map(|file| file.take(RECORDS_BYTES).read_to_string(&mut text));
        let mut lines = text.lines();
        if !matches!(read, Some(Ok(_))) || lines.next() != Some(self.owner.to_string().as_str()) {
            return RunRecords::default();
        }
        let is_of_this_boot = lines.next() == Some(boot().as_str());
        let socket = lines.next().filter(|socket| !socket.is_empty());
        let made = lines.filter_map(|line| {
            let (id, since) = line.split_once(' ')?;
            let (id, since) = (id.to_owned(), since.parse().ok()?);
            Some(OwnId { id, since })
        });
        RunRecords {
            socket: socket.map(PathBuf::from),
            made: made.filter(|_| is_of_this_boot).collect(),
        }
    }

    /// Removes it with all logs. It is no error if it is already gone.
    pub fn remove(&self) -> io::Result<()> {
        let Some((above, _)) = self.handles.as_deref() else {
            return Ok(());
        };
        match above.remove_tree(self.name()) {
            Err(fault) if fault.kind() != io::ErrorKind::NotFound => Err(fault),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// The log directories that this user's runs have left below `parent` or the default parents.
    /// Fails if `parent` cannot be listed.
    pub fn found(parent: Option<&Path>) -> Result<Vec<Self>, LogDirectoryError> {
        let below = |parent: &Path| Self::below(&Folder::open(parent)?, parent);
        let Some(parent) = parent else {
            let found = default_parents().into_iter();
            return Ok(found
                .flat_map(|it| below(&it).unwrap_or_default())
                .collect());
        };
        let path = parent.to_owned();
        below(parent).map_err(|source| LogDirectoryError { path, source })
    }

    /// Those below `/var/log` of a root directory, whose links do not lead out of it.
    pub fn found_inside(root: &Path) -> Vec<Self> {
        let parent = Path::new(DEFAULT_PARENT);
        let above = Folder::open(root).and_then(|root| root.open_inside(parent));
        let path = root.join(parent.strip_prefix("/").unwrap_or(parent));
        let found = above.and_then(|above| Self::below(&above, &path));
        found.unwrap_or_default()
    }

    fn below(above: &Folder, parent: &Path) -> io::Result<Vec<Self>> {
        let names = above.names(SEARCHED)?.into_iter();
        let found = names.filter_map(|name| Self::at(above, parent, &name));
        Ok(found.collect())
    }

    /// The log directory of this name; none if it is not one of this user's runs.
    fn at(above: &Folder, parent: &Path, name: &OsStr) -> Option<Self> {
        let owner = Owner::from_name(name.to_str()?)?;
        let above = above.again().ok()?;
        let own = above.enter(name).ok()?;
        own.must_be_own().ok()?;
        (fstat(&own).ok()?.st_mode & 0o777 == MODE).then(|| Self {
            path: parent.join(name),
            owner,
            handles: Some(Arc::new((above, own))),
        })
    }
}

impl RunRecords {
    /// Whether the run was on the runtime at this socket.
    pub fn are_of(&self, socket: Option<&Path>) -> bool {
        self.socket.is_some() && self.socket == socket.map(resolved)
    }
}

/// The path of a socket without links, by which a runtime is known.
fn resolved(socket: &Path) -> PathBuf {
    socket.canonicalize().unwrap_or_else(|_| socket.to_owned())
}

/// The boot of the host, of which the times of processes count; empty if it cannot be read.
fn boot() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    boot.unwrap_or_default().trim().to_owned()
}

fn default_parents() -> Vec<PathBuf> {
    vec![PathBuf::from(DEFAULT_PARENT), std::env::temp_dir()]
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown, lchown, symlink};

    use super::*;
    use crate::host::BootTicks;

    const ID: &str = "0d4e4a3df1f4c1b3ad9a7d1c54dbb8b0c0f1a9d3d4ad2a51f4e1c9be2f1d6a11";
    const RUN: &str = "6f1c2f0e-0f6a-4c1e-9b52-9a256f2f3c1d";
    const SOCKET: &str = "/run/a/runtime.sock";

    fn run() -> RunId {
        RunId::from(RUN)
    }

    fn made(parent: &Path) -> LogDirectory {
        let socket = Some(Path::new(SOCKET));
        LogDirectory::make(Some(parent), &run(), socket).expect("it is made")
    }

    fn found(parent: &Path) -> Vec<PathBuf> {
        let found = LogDirectory::found(Some(parent)).expect("it is there");
        found.into_iter().map(|logs| logs.path).collect()
    }

    fn own() -> OwnId {
        let (id, since) = (ID.to_owned(), BootTicks(7));
        OwnId { id, since }
    }

    #[test]
    fn it_is_private_found_again_and_removed_with_its_logs() {
        let parent = tempfile::tempdir().expect("a directory");
        let logs = made(parent.path());
        let mode = fs::metadata(logs.path())
            .expect("it is there")
            .permissions();
        assert_eq!(mode.mode() & 0o777, MODE);
        assert_eq!(found(parent.path()), [logs.path()]);
        fs::write(logs.path().join("c_0.log"), "a line").expect("a log");
        logs.remove().expect("it is removed");
        assert!(!logs.path().exists());
        logs.remove().expect("what is gone is removed");
        assert!(found(parent.path()).is_empty());
    }

    #[test]
    fn it_remembers_the_runtime_and_what_the_run_has_made() {
        let parent = tempfile::tempdir().expect("a directory");
        let logs = made(parent.path());
        logs.note(&own()).expect("it is written");
        let found = LogDirectory::found(Some(parent.path())).expect("it is there");
        let records = found.first().expect("it is found").records();
        assert_eq!(records.made, [own()].into_iter().collect());
        assert!(records.are_of(Some(Path::new(SOCKET))));
        assert!(!records.are_of(Some(Path::new("/run/b/runtime.sock"))));
        assert!(!records.are_of(None));
        logs.remove().expect("it is removed");
        logs.note(&own()).expect_err("nothing is made again");
    }

    /// What is read after the records were changed so.
    fn changed(change: impl FnOnce(&Path)) -> RunRecords {
        let parent = tempfile::tempdir().expect("a directory");
        let logs = made(parent.path());
        logs.note(&own()).expect("it is written");
        change(&logs.path().join(RECORDS));
        logs.records()
    }

    #[test]
    fn only_records_of_the_run_itself_since_this_boot_are_believed() {
        let with = |from: String, to: &str| {
            changed(|file| {
                let text = fs::read_to_string(file).expect("it is there");
                fs::write(file, text.replace(&from, to)).expect("it is written");
            })
        };
        let other_run = with(run().to_string(), "another-run");
        assert_eq!(other_run, RunRecords::default());
        let other_boot = with(boot(), "another-boot");
        assert_eq!(
            (other_boot.socket.is_some(), other_boot.made),
            (true, OwnIds::default())
        );
        let linked = changed(|file| {
            let target = file.with_file_name("target");
            fs::rename(file, &target).expect("it is moved");
            symlink(target, file).expect("a link");
        });
        assert_eq!(linked, RunRecords::default());
    }

    #[test]
    fn what_is_there_already_is_not_taken() {
        let parent = tempfile::tempdir().expect("a directory");
        let logs = LogDirectory::new(parent.path(), &run());
        symlink("/", logs.path()).expect("a link");
        let fault = LogDirectory::make(Some(parent.path()), &run(), None).expect_err("it is there");
        assert_eq!(fault.source.kind(), io::ErrorKind::AlreadyExists);
        assert!(found(parent.path()).is_empty());
    }

    #[test]
    fn none_is_made_where_others_could_replace_it() {
        let parent = tempfile::tempdir().expect("a directory");
        let inner = parent.path().join("inner");
        fs::create_dir(&inner).expect("a directory");
        let refused = |mode: u32| {
            let mode = fs::Permissions::from_mode(mode);
            fs::set_permissions(parent.path(), mode).expect("ours");
            let logs = LogDirectory::make(Some(&inner), &run(), None);
            logs.map(|logs| logs.remove()).is_err()
        };
        assert!(!refused(0o755) && !refused(0o1777));
        assert!(refused(0o777));
        // Only root can give a directory away.
        if rustix::process::geteuid().is_root() {
            chown(parent.path(), Some(65534), None).expect("root may");
            assert!(refused(0o755));
            let (target, links) = (tempfile::tempdir(), tempfile::tempdir());
            let (target, links) = (target.expect("a directory"), links.expect("a directory"));
            let link = links.path().join("link");
            symlink(target.path(), &link).expect("a link");
            let linked = || LogDirectory::make(Some(&link), &run(), None);
            linked().expect("the link is ours").remove().expect("ours");
            lchown(&link, Some(65534), None).expect("root may");
            linked().expect_err("the link is of another user");
        }
    }

    #[test]
    fn a_root_directory_is_not_left() {
        let root = tempfile::tempdir().expect("a directory");
        let log = root.path().join("var/log");
        fs::create_dir_all(&log).expect("a directory");
        let logs = made(&log);
        let inside = || LogDirectory::found_inside(root.path());
        assert_eq!(inside()[0].path, logs.path());
        let elsewhere = tempfile::tempdir().expect("a directory");
        let outside = elsewhere.path().join("log");
        fs::rename(&log, &outside).expect("it is moved");
        symlink(&outside, &log).expect("a link");
        assert!(inside().is_empty());
    }

    #[test]
    fn directories_of_others_are_not_found() {
        let parent = tempfile::tempdir().expect("a directory");
        let is_file = format!("{PREFIX}{}.1-2", run());
        for name in [
            PREFIX,
            &format!("{PREFIX}{}", run()),
            &format!("other-{}.1-2", run()),
            // Others can write to it.
            &format!("{PREFIX}{}.1-3", run()),
        ] {
            fs::create_dir(parent.path().join(name)).expect("a directory");
        }
        // The id of its run is no UUID.
        let private = parent.path().join(format!("{PREFIX}x.1-2"));
        fs::DirBuilder::new()
            .mode(MODE)
            .create(private)
            .expect("a directory");
        fs::write(parent.path().join(is_file), "").expect("a file");
        assert!(found(parent.path()).is_empty());
    }
}
