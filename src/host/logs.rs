//! The directory for the logs of a run's containers, and damaged copies of the checkpoints in it.
//!
//! Every container has a log path in it. A kubelet on the node deletes, for each unknown container,
//! the files whose path begins with the container's log path: with an empty log path, those would
//! be files in the kubelet's working directory.
//!
//! The name contains the run and its process, so that `cleanup` finds the directory of a killed
//! run. A file in it names the runtime and lists the run's objects: a process may outlive a
//! container that the runtime no longer lists. Only this user can write to either, or they are not
//! used.

#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::fstat;

use super::Kernel;
use super::leftovers::{OwnId, OwnIds, Owner, PREFIX};
use crate::files::{self, Folder};
use crate::history::{ContainerSpec, RunId};

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
/// The folder in the archive with the files of CRIU, which a runtime does not read when it creates
/// the container.
const PROCESSES: &str = "checkpoint/";
/// The largest archive that is copied: that of the suite's own program has some 100 KiB.
const ARCHIVE_BYTES: u64 = 256 << 20;
/// The mode of the copy: the runtime, which reads it, is root.
const COPY_MODE: u32 = 0o600;

#[derive(Clone, Debug)]
pub struct LogDirectory {
    path: PathBuf,
    owner: Owner,
    /// Its parent and itself; none if there is only a path, on a simulated kernel.
    handles: Option<Arc<(Folder, Folder)>>,
}

/// The records of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunRecords {
    /// The socket of its runtime; none if the run ended before it was recorded.
    pub socket: Option<PathBuf>,
    /// The objects that the run has made since the host was booted.
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

impl Kernel {
    /// Copies a checkpoint, and zeroes the state of the processes in the copy, so that its restore
    /// fails. On a simulated kernel there are no files. Fails if the archive cannot be read here,
    /// is compressed or has no processes, or the copy cannot be written.
    pub fn damage_checkpoint(&self, archive: &Path, copy: &Path) -> io::Result<()> {
        self.on_host(Ok(()), || damage(archive, copy))
    }

    /// Removes a checkpoint and its damaged copy. Both are in the run's log directory, which is
    /// removed later.
    pub fn remove_checkpoint(&self, archive: &str) {
        if let Self::Host = self {
            for file in [archive, &format!("{archive}{}", ContainerSpec::DAMAGED)] {
                let path = Path::new(file);
                if let (Some(parent), Some(name)) = (path.parent(), path.file_name()) {
                    let _ = Folder::open(parent).and_then(|folder| folder.remove(name));
                }
            }
        }
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

fn damage(archive: &Path, copy: &Path) -> io::Result<()> {
    let mut whole = files::open(archive)?;
    let (Some(folder), Some(name)) = (copy.parent(), copy.file_name()) else {
        return Err(ErrorKind::InvalidInput.into());
    };
    let mut file = Folder::open(folder)?.create_file(name, COPY_MODE)?;
    let length = io::copy(&mut (&mut whole).take(ARCHIVE_BYTES + 1), &mut file)?;
    if length > ARCHIVE_BYTES {
        let limit = ARCHIVE_BYTES >> 20;
        return Err(io::Error::other(format!(
            "the archive is larger than {limit} MiB"
        )));
    }
    whole.rewind()?;
    let mut archive = tar::Archive::new(whole);
    let mut is_damaged = false;
    for entry in archive.entries()? {
        let entry = entry?;
        if entry.size() == 0 || !entry.path()?.starts_with(PROCESSES) {
            continue;
        }
        let at = entry.raw_file_position();
        // A header may promise more than the archive has.
        if entry.size() > length.saturating_sub(at) {
            return Err(io::Error::new(
                ErrorKind::InvalidData,
                "the archive is cut short",
            ));
        }
        file.seek(SeekFrom::Start(at))?;
        io::copy(&mut io::repeat(0).take(entry.size()), &mut file)?;
        is_damaged = true;
    }
    let none = || io::Error::new(ErrorKind::InvalidData, "the archive holds no processes");
    is_damaged.then_some(()).ok_or_else(none)
}
