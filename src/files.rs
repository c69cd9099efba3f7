//! Opens the files that the suite reads and writes. The suite runs as root, possibly in directories
//! that are writable by other users, who could place a link or a pipe at a predictable name.
//!
//! One invariant: no output is opened by the name that the user gave. It is written as a draft, a
//! new file in the same directory with a random name, readable only by its owner, and then renamed.
//! Only devices, pipes of this user, and descriptors of this process such as `/dev/stdout` are
//! written to directly.

mod folder;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{
    AtFlags, FileType, OFlags, RenameFlags, fcntl_getfl, fcntl_setfl, fstat, renameat_with,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::limits;
use crate::queue::Queue;
use folder::Place;
pub use folder::{
    FileId, Folder, id, is_trusted_user, kind, open, permit_own, read, read_all, read_text, stat,
};

/// The path of an output that names standard output.
pub const STDOUT: &str = "-";
/// The suffix of a draft.
const DRAFT: &str = ".part";
/// The number of random hexadecimal digits before the suffix.
const RANDOM: usize = 32;
/// The maximum number of directory entries searched for drafts of dead processes.
const SEARCHED: usize = 100_000;

#[derive(Debug, thiserror::Error)]
#[error("write the {what} to {}: {fault}", path.display())]
pub struct OutputError {
    what: &'static str,
    path: PathBuf,
    fault: io::Error,
}

/// An output file that does not appear at its path yet.
#[derive(Debug)]
pub struct Draft {
    what: &'static str,
    path: PathBuf,
    target: Target,
    /// Whether it may replace an existing file.
    replaces: bool,
}

#[derive(Debug)]
enum Target {
    /// A device, a pipe, or a file that this process has already opened.
    Direct(File),
    /// A temporary file, which is removed unless it is renamed.
    Temporary(Temporary),
}

/// A new file with a random name, in the directory where it gets its own.
#[derive(Debug)]
struct Temporary {
    file: File,
    entry: Arc<(Folder, OsString)>,
    name: OsString,
}

/// An open output file, and its place if it has one.
#[derive(Debug)]
pub struct Output {
    file: Arc<File>,
    queue: Queue,
    written: u64,
    place: Option<(Arc<(Folder, OsString)>, OsString)>,
}

/// The drafts of this process, by their numbers of inode.
static DRAFTS: Mutex<BTreeMap<FileId, Arc<(Folder, OsString)>>> = Mutex::new(BTreeMap::new());

impl Draft {
    /// Opens a draft of a file that replaces an existing one.
    pub fn open(what: &'static str, path: &Path) -> Result<Self, OutputError> {
        let target = Target::choose(path).map_err(|fault| error(what, path, fault))?;
        Ok(Self {
            what,
            path: path.to_owned(),
            target,
            replaces: true,
        })
    }

    /// Opens a draft of a file that users edit, so it must not exist yet.
    pub fn open_new(what: &'static str, path: &Path) -> Result<Self, OutputError> {
        let place = Place::of(path, false).map_err(|fault| error(what, path, fault))?;
        if place
            .name
            .is_some_and(|name| place.folder.stat(&name).is_ok())
        {
            let fault = "it exists already and may have been edited; name a new file, and compare the \
                         two";
            return Err(error(what, path, io::Error::other(fault)));
        }
        let draft = Self::open(what, path)?;
        Ok(Self {
            replaces: false,
            ..draft
        })
    }

    pub fn what(&self) -> &'static str {
        self.what
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Checks that two outputs have different paths.
    pub fn differs_from(&self, what: &str, path: &Path) -> Result<(), OutputError> {
        let own = match &self.target {
            Target::Temporary(own) => own.entry.0.id().ok().map(|id| (id, own.name.clone())),
            Target::Direct(_) => None,
        };
        let other = Place::of(path, false).ok();
        let other = other.and_then(|place| Some((place.folder.id().ok()?, place.name?)));
        if own.is_none() || own != other {
            return Ok(());
        }
        let fault = format!("the {what} has the same path; name another file");
        Err(error(self.what, &self.path, io::Error::other(fault)))
    }

    /// Renames it to its path, and returns it for writing.
    pub fn begin(self) -> Result<Output, OutputError> {
        let (what, path) = (self.what, self.path.clone());
        self.persist().map_err(|fault| error(what, &path, fault))
    }

    /// Writes and syncs it, then renames it to its path. On failure the draft is removed, and an
    /// existing file is unchanged.
    pub fn complete(
        mut self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), OutputError> {
        let (what, path) = (self.what, self.path.clone());
        let written = self.fill(write).and_then(|()| self.persist());
        written.map(drop).map_err(|fault| error(what, &path, fault))
    }

    fn fill(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let file = match &mut self.target {
            Target::Direct(file) => file,
            Target::Temporary(draft) => &mut draft.file,
        };
        let mut out = BufWriter::new(&mut *file);
        write(&mut out)?;
        out.flush()?;
        drop(out);
        to_disk(file)
    }

    fn persist(self) -> io::Result<Output> {
        match self.target {
            Target::Direct(file) => Ok(file.into()),
            Target::Temporary(draft) => draft.persist(self.replaces),
        }
    }
}

impl From<File> for Output {
    fn from(file: File) -> Self {
        let file = Arc::new(file);
        let queue = Queue::begin(file.clone());
        Self {
            file,
            queue,
            written: 0,
            place: None,
        }
    }
}

impl Output {
    /// The number of bytes written or pending.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Waits until all is written, and syncs the file to detect a full disk.
    pub fn to_disk(&self) -> io::Result<()> {
        self.queue.drain(limits::STALLED_OUTPUT)?;
        to_disk(&self.file)
    }

    /// Renames the file with a suffix, and continues in a new one with its name.
    pub fn begin_anew(&mut self, suffix: &str) -> io::Result<()> {
        let moved = "it is full, and cannot be continued: the path no longer names this file, or is not a \
                     regular file";
        let moved = || io::Error::other(moved);
        let (entry, name) = self.place.as_ref().ok_or_else(moved)?;
        let (folder, own) = (&entry.0, fstat(&*self.file)?);
        let named = folder.stat(name)?;
        if kind(&named) != FileType::RegularFile || id(&named) != id(&own) {
            return Err(moved());
        }
        let mut kept = name.clone();
        kept.push(suffix);
        folder.rename(name, &kept)?;
        self.queue.drain(limits::STALLED_OUTPUT)?;
        *self = Temporary::create(folder.again()?, name)?.persist(true)?;
        Ok(())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.queue.push(bytes)?;
        self.written += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Removes the drafts of this process, before an immediate exit.
pub fn remove_drafts() {
    for draft in std::mem::take(&mut *drafts()).into_values() {
        // A leftover does no harm.
        let _ = draft.0.remove(&draft.1);
    }
}

fn drafts() -> MutexGuard<'static, BTreeMap<FileId, Arc<(Folder, OsString)>>> {
    DRAFTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives a file to the user who called sudo, who could not read it otherwise: an output has the
/// mode 0600.
fn give_to_sudoer(file: &File) -> io::Result<()> {
    match sudoer() {
        Some((user, group)) => fchown(file, Some(user), Some(group)),
        None => Ok(()),
    }
}

/// The user and the group who called sudo, if this process is root's.
fn sudoer() -> Option<(u32, u32)> {
    let id = |name| std::env::var(name).ok()?.parse().ok();
    geteuid().is_root().then_some(())?;
    Some((id("SUDO_UID")?, id("SUDO_GID")?))
}

/// Creates a directory for output files, and those above it, unless it exists. The new ones are
/// given to the user who called sudo.
pub fn create_directory(what: &'static str, path: &Path) -> Result<(), OutputError> {
    Folder::make(path, sudoer()).map_err(|fault| error(what, path, fault))?;
    Ok(())
}

/// Syncs a file to detect a full disk. Does nothing for a device.
pub fn to_disk(file: &File) -> io::Result<()> {
    if file.metadata()?.is_file() {
        file.sync_all()
    } else {
        Ok(())
    }
}

impl Target {
    fn choose(path: &Path) -> io::Result<Self> {
        let path = if path == Path::new(STDOUT) {
            Path::new("/dev/stdout")
        } else {
            path
        };
        let Place { folder, name, .. } = Place::of(path, false)?;
        let Some(name) = name else {
            return Err(io::Error::other("it is a directory; name a file"));
        };
        let found = match folder.stat(&name) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => None,
            found => Some(kind(&found?)),
        };
        match found {
            None | Some(FileType::RegularFile) => {
                Temporary::create(folder, &name).map(Self::Temporary)
            }
            Some(FileType::Symlink) => match Self::behind_link(path)? {
                Some(descriptor) => Ok(Self::Direct(descriptor)),
                // The link is replaced, not its target.
                None => Temporary::create(folder, &name).map(Self::Temporary),
            },
            Some(FileType::Directory) => Err(io::Error::other("it is a directory; name a file")),
            Some(FileType::CharacterDevice | FileType::Fifo) => {
                direct(&folder, &name).map(Self::Direct)
            }
            Some(_) => Err(io::Error::other("it is not a file, a pipe or a terminal")),
        }
    }

    /// The file behind a link if this process has already opened it, such as `/dev/stdout`. `None`
    /// if the link is to be replaced.
    fn behind_link(path: &Path) -> io::Result<Option<File>> {
        let Ok(place) = Place::of(path, true) else {
            // It leads nowhere, or belongs to another user.
            return Ok(None);
        };
        if place.is_descriptor {
            return place.append().map(Some);
        }
        let found = place.name.as_ref().map(|name| place.folder.stat(name));
        match found.and_then(Result::ok).map(|found| kind(&found)) {
            None if place.name.is_none() => Err(io::Error::other("it is a directory; name a file")),
            Some(FileType::Directory) => Err(io::Error::other("it is a directory; name a file")),
            None | Some(FileType::RegularFile) => Ok(None),
            Some(_) => Err(io::Error::other(
                "it is a link to a device or a pipe; name its target",
            )),
        }
    }
}

/// Opens a device, or a pipe that belongs to this user and has a reader.
fn direct(folder: &Folder, name: &OsStr) -> io::Result<File> {
    let found = folder.stat(name)?;
    let is_pipe = |found| kind(found) == FileType::Fifo;
    if is_pipe(&found) && found.st_uid != geteuid().as_raw() {
        let owner = found.st_uid;
        return Err(io::Error::other(format!(
            "it is a pipe of user {owner}; name a file, or a pipe of your own"
        )));
    }
    let file = match folder.open_entry(name, OFlags::WRONLY, 0) {
        Err(fault) if Errno::from_io_error(&fault) == Some(Errno::NXIO) => {
            return Err(io::Error::other(
                "it is a pipe without a reader; start its reader first",
            ));
        }
        opened => opened?,
    };
    let opened = fstat(&file)?;
    if id(&opened) != id(&found) || kind(&opened) != kind(&found) {
        return Err(io::Error::other("it was exchanged while it was opened"));
    }
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

impl Temporary {
    fn create(folder: Folder, name: &OsStr) -> io::Result<Self> {
        remove_dead_drafts(&folder, name);
        loop {
            let mut random = prefix(name);
            random.push(uuid::Uuid::new_v4().simple().to_string());
            random.push(DRAFT);
            let file = folder.create_file(&random, 0o600)?;
            // Without support for locks, no process removes foreign drafts either.
            let _ = file.try_lock();
            // Before the lock, another run may have removed it as a dead draft.
            if file.metadata()?.nlink() == 1 {
                let entry = Arc::new((folder, random));
                drafts().insert(id(&fstat(&file)?), entry.clone());
                let name = name.to_owned();
                return Ok(Self { file, entry, name });
            }
        }
    }

    fn persist(self, replaces: bool) -> io::Result<Output> {
        give_to_sudoer(&self.file)?;
        let (folder, draft) = &*self.entry;
        if replaces {
            folder.rename(draft, &self.name)?;
        } else {
            match renameat_with(folder, draft, folder, &*self.name, RenameFlags::NOREPLACE) {
                // File systems such as NFS.
                Err(Errno::INVAL | Errno::NOSYS) => {
                    rustix::fs::linkat(folder, draft, folder, &*self.name, AtFlags::empty())?;
                }
                renamed => renamed?,
            }
        }
        // The file is visible even if its directory entry is not synced.
        let _ = folder.sync();
        let place = Some((self.entry.clone(), self.name.clone()));
        Ok(Output {
            place,
            ..self.file.try_clone()?.into()
        })
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let own = fstat(&self.file).map(|found| id(&found));
        if own.is_ok_and(|own| drafts().remove(&own).is_some()) {
            // It is gone if it was renamed.
            let _ = self.entry.0.remove(&self.entry.1);
        }
    }
}

fn prefix(name: &OsStr) -> OsString {
    let mut prefix = name.to_owned();
    prefix.push(".");
    prefix
}

fn error(what: &'static str, path: &Path, fault: io::Error) -> OutputError {
    OutputError {
        what,
        path: path.to_owned(),
        fault,
    }
}

/// Removes drafts of this file that killed processes have left: files of our user with the name of
/// a draft that no process has locked.
fn remove_dead_drafts(folder: &Folder, name: &OsStr) {
    for found in folder.names(SEARCHED).unwrap_or_default() {
        if is_draft(&found, name) && is_dead(folder, &found).unwrap_or(false) {
            // A leftover does no harm.
            let _ = folder.remove(&found);
        }
    }
}

fn is_draft(found: &OsStr, name: &OsStr) -> bool {
    let prefix = prefix(name);
    let random = found
        .as_bytes()
        .strip_prefix(prefix.as_bytes())
        .and_then(|rest| rest.strip_suffix(DRAFT.as_bytes()));
    random.is_some_and(|random| random.len() == RANDOM && random.iter().all(u8::is_ascii_hexdigit))
}

/// Whether no process writes this draft any more. Locks it during the check.
fn is_dead(folder: &Folder, name: &OsStr) -> io::Result<bool> {
    let file = folder.read(name)?;
    if file.metadata()?.uid() != geteuid().as_raw() {
        return Ok(false);
    }
    match file.try_lock() {
        Ok(()) => Ok(id(&folder.stat(name)?) == id(&fstat(&file)?)),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(fault)) => Err(fault),
    }
}

#[cfg(test)]
pub(crate) mod tests;
