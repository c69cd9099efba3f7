//! Writes the output files. The suite runs as root, possibly in directories that others can write
//! to, where anyone could place a link at a predictable name.
//!
//! One invariant: no file is opened by the name that the user gave. It is written as a draft, a new
//! file in the same directory with a random name, readable only by its owner, and then renamed.
//! Only devices and pipes are written to directly.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, TryLockError};
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::process::geteuid;
use tempfile::{Builder, NamedTempFile};

/// The suffix of a draft.
const DRAFT: &str = ".part";
/// The number of random characters before the suffix: 62 to the power of 12 possibilities.
const RANDOM: usize = 12;
/// How many entries of a directory are searched for the drafts of dead processes.
const SEARCHED: usize = 100_000;

/// An output file cannot be written.
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
    place: Place,
    /// Whether it may replace an existing file.
    replaces: bool,
}

#[derive(Debug)]
enum Place {
    /// A device, a pipe, or a file that this process has already opened.
    Direct(File),
    /// A temporary file, which is removed unless it is renamed.
    Temporary(NamedTempFile),
}

impl Draft {
    /// Opens a draft of a file that replaces an existing one.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn open(what: &'static str, path: &Path) -> Result<Self, OutputError> {
        let place = Place::choose(path).map_err(|fault| error(what, path, fault))?;
        Ok(Self {
            what,
            path: path.to_owned(),
            place,
            replaces: true,
        })
    }

    /// Opens a draft of a file that users edit, so it must not exist yet.
    ///
    /// # Errors
    /// If it exists, or cannot be written.
    pub fn open_new(what: &'static str, path: &Path) -> Result<Self, OutputError> {
        if path.symlink_metadata().is_ok() {
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

    /// The kind of file, for messages.
    #[must_use]
    pub fn what(&self) -> &'static str {
        self.what
    }

    /// The path given by the user.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of the temporary file; none if it is written directly.
    #[must_use]
    pub fn temporary_path(&self) -> Option<&Path> {
        match &self.place {
            Place::Direct(_) => None,
            Place::Temporary(draft) => Some(draft.path()),
        }
    }

    /// Checks that two outputs have different paths.
    ///
    /// # Errors
    /// If they have the same path.
    pub fn differs_from(&self, what: &str, path: &Path) -> Result<(), OutputError> {
        if self.temporary_path().is_none() || canonical(&self.path) != canonical(path) {
            return Ok(());
        }
        let fault = format!("the {what} has the same path; name another file");
        Err(error(self.what, &self.path, io::Error::other(fault)))
    }

    /// Renames it to its path, to be written from now on.
    ///
    /// # Errors
    /// If it cannot be renamed.
    pub fn begin(self) -> Result<File, OutputError> {
        let (what, path) = (self.what, self.path.clone());
        self.persist().map_err(|fault| error(what, &path, fault))
    }

    /// Writes and syncs it, then renames it to its path.
    ///
    /// # Errors
    /// If that fails; the draft is removed then, and an existing file is unchanged.
    pub fn complete(
        mut self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), OutputError> {
        let (what, path) = (self.what, self.path.clone());
        let written = self.fill(write).and_then(|()| self.persist());
        written.map(drop).map_err(|fault| error(what, &path, fault))
    }

    fn fill(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let file = match &mut self.place {
            Place::Direct(file) => file,
            Place::Temporary(draft) => draft.as_file_mut(),
        };
        let mut out = BufWriter::new(&mut *file);
        write(&mut out)?;
        out.flush()?;
        drop(out);
        to_disk(file)
    }

    fn persist(self) -> io::Result<File> {
        let draft = match self.place {
            Place::Direct(file) => return Ok(file),
            Place::Temporary(draft) => draft,
        };
        let moved = if self.replaces {
            draft.persist(&self.path)
        } else {
            draft.persist_noclobber(&self.path)
        };
        let file = moved.map_err(|fault| fault.error)?;
        // The file is visible even if its directory entry is not synced.
        let _ = File::open(folder(&self.path)).and_then(|folder| folder.sync_all());
        Ok(file)
    }
}

/// Creates a directory for output files, and those above it, unless it exists.
///
/// # Errors
/// If that fails.
pub fn create_directory(what: &'static str, path: &Path) -> Result<(), OutputError> {
    fs::create_dir_all(path).map_err(|fault| error(what, path, fault))
}

/// Syncs a file, so that a full disk is noticed. Does nothing for a device.
///
/// # Errors
/// If that fails.
pub fn to_disk(file: &File) -> io::Result<()> {
    if file.metadata()?.is_file() {
        file.sync_all()
    } else {
        Ok(())
    }
}

impl Place {
    fn choose(path: &Path) -> io::Result<Self> {
        let found = match fs::symlink_metadata(path) {
            Ok(found) => found,
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Self::temporary(path),
            Err(fault) => return Err(fault),
        };
        if found.is_symlink() && is_of_the_system(path) {
            // Such as `/dev/stdout`: a file that this process has already opened.
            let file = File::options().append(true).open(path)?;
            return Ok(Self::Direct(file));
        }
        let behind = fs::metadata(path);
        if behind.as_ref().is_ok_and(Metadata::is_dir) {
            return Err(io::Error::other("it is a directory; name a file"));
        }
        if found.is_file() {
            return Self::temporary(path);
        }
        if found.is_symlink() {
            return match behind {
                Ok(behind) if !behind.is_file() => Err(io::Error::other(
                    "it is a link to a device or a pipe; name its target",
                )),
                // The link is replaced, not its target.
                _ => Self::temporary(path),
            };
        }
        let mut options = File::options();
        let file = options.write(true).custom_flags(no_link()).open(path)?;
        let kind = file.metadata()?.file_type();
        if kind.is_char_device() || kind.is_fifo() {
            Ok(Self::Direct(file))
        } else {
            Err(io::Error::other("it is not a file, a pipe or a terminal"))
        }
    }

    fn temporary(path: &Path) -> io::Result<Self> {
        let Some(name) = path.file_name() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        remove_dead_drafts(folder(path), name);
        loop {
            let draft = Builder::new()
                .prefix(&prefix(name))
                .suffix(DRAFT)
                .rand_bytes(RANDOM)
                .make_in(folder(path), create)?;
            let (file, place) = draft.into_parts();
            // Without support for locks, no process removes foreign drafts either.
            let _ = file.try_lock();
            // Before the lock, another run may have removed it as a dead draft.
            if file.metadata()?.nlink() == 1 {
                return Ok(Self::Temporary(NamedTempFile::from_parts(file, place)));
            }
        }
    }
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create_new(true).mode(0o600);
    options.custom_flags(no_link()).open(path)
}

fn no_link() -> i32 {
    OFlags::NOFOLLOW.bits().cast_signed()
}

fn prefix(name: &OsStr) -> OsString {
    let mut prefix = name.to_owned();
    prefix.push(".");
    prefix
}

/// Whether a link is in a directory where only the system creates links.
fn is_of_the_system(path: &Path) -> bool {
    let folder = fs::canonicalize(folder(path));
    folder.is_ok_and(|folder| folder == Path::new("/dev") || folder.starts_with("/proc"))
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// The canonical path of a file, which need not exist.
fn canonical(path: &Path) -> Option<PathBuf> {
    let folder = fs::canonicalize(folder(path)).ok()?;
    Some(folder.join(path.file_name()?))
}

fn error(what: &'static str, path: &Path, fault: io::Error) -> OutputError {
    OutputError {
        what,
        path: path.to_owned(),
        fault,
    }
}

/// Removes drafts of this file that killed processes have left: files of our user with the name of
/// a draft, which no process has locked.
fn remove_dead_drafts(folder: &Path, name: &OsStr) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.take(SEARCHED).flatten() {
        if is_draft(&entry.file_name(), name) && is_dead(&entry.path()).unwrap_or(false) {
            // A leftover does no harm.
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn is_draft(found: &OsStr, name: &OsStr) -> bool {
    let prefix = prefix(name);
    let random = found
        .as_bytes()
        .strip_prefix(prefix.as_bytes())
        .and_then(|rest| rest.strip_suffix(DRAFT.as_bytes()));
    random.is_some_and(|random| {
        random.len() == RANDOM && random.iter().all(u8::is_ascii_alphanumeric)
    })
}

/// Whether no process writes this draft any more. It is locked during the check.
fn is_dead(path: &Path) -> io::Result<bool> {
    let found = fs::symlink_metadata(path)?;
    if !found.is_file() || found.uid() != geteuid().as_raw() {
        return Ok(false);
    }
    let mut options = File::options();
    let file = options.read(true).custom_flags(no_link()).open(path)?;
    let opened = file.metadata()?;
    let is_same = (opened.dev(), opened.ino()) == (found.dev(), found.ino());
    match file.try_lock() {
        Ok(()) => Ok(is_same),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(fault)) => Err(fault),
    }
}

#[cfg(test)]
mod tests;
