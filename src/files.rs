//! The files that the suite writes for its user. It runs as root, in folders that others may write
//! to: whoever can guess a name there can put a link at it.
//!
//! One invariant: nothing is opened by the name that the user gave. A file is written as a draft, a
//! new one in the same folder whose name nobody can guess, which only its owner can read, and takes
//! its place by a rename. Devices and pipes alone are written to directly.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, TryLockError};
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::process::geteuid;
use tempfile::{Builder, NamedTempFile};

/// What the name of a draft ends with.
const DRAFT: &str = ".part";
/// Characters before that which nobody can guess: 62 to the power of 12 possibilities.
const RANDOM: usize = 12;
/// How many entries of a folder are searched for the drafts of dead processes.
const SEARCHED: usize = 100_000;

/// A file cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("write the {what} to {}: {fault}", path.display())]
pub struct OutputError {
    what: &'static str,
    path: PathBuf,
    fault: io::Error,
}

/// A file to be written, of which nothing can be seen at its place yet.
#[derive(Debug)]
pub struct Draft {
    what: &'static str,
    path: PathBuf,
    place: Place,
    /// Whether it may take the place of another file.
    replaces: bool,
}

#[derive(Debug)]
enum Place {
    /// A device, a pipe, or a file that this process has open already.
    Direct(File),
    /// A file that is removed unless it is moved.
    Beside(NamedTempFile),
}

impl Draft {
    /// A draft of a file that takes the place of another one, if there is one.
    ///
    /// # Errors
    /// If the file could not be written.
    pub fn open(what: &'static str, path: &Path) -> Result<Self, OutputError> {
        let place = Place::of(path).map_err(|fault| error(what, path, fault))?;
        Ok(Self {
            what,
            path: path.to_owned(),
            place,
            replaces: true,
        })
    }

    /// A draft of a file that people edit, so that there must be none yet.
    ///
    /// # Errors
    /// If there is one, or it could not be written.
    pub fn open_new(what: &'static str, path: &Path) -> Result<Self, OutputError> {
        if path.symlink_metadata().is_ok() {
            let fault = "it is there already, and what people wrote into it would be lost; name a \
                         new file, and compare the two";
            return Err(error(what, path, io::Error::other(fault)));
        }
        let draft = Self::open(what, path)?;
        Ok(Self {
            replaces: false,
            ..draft
        })
    }

    /// What it is, in a few words.
    #[must_use]
    pub fn what(&self) -> &'static str {
        self.what
    }

    /// The place that the user named.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where it is now; nowhere if it is written directly.
    #[must_use]
    pub fn beside(&self) -> Option<&Path> {
        match &self.place {
            Place::Direct(_) => None,
            Place::Beside(draft) => Some(draft.path()),
        }
    }

    /// Refuses to write two things to one place, the second of which would replace the first.
    ///
    /// # Errors
    /// If this file and the other one are the same.
    pub fn differs_from(&self, what: &str, path: &Path) -> Result<(), OutputError> {
        if self.beside().is_none() || whole(&self.path) != whole(path) {
            return Ok(());
        }
        let fault = format!("that is where the {what} is; name another file");
        Err(error(self.what, &self.path, io::Error::other(fault)))
    }

    /// Moves it into its place, to be written from now on.
    ///
    /// # Errors
    /// If it cannot be moved.
    pub fn begin(self) -> Result<File, OutputError> {
        let (what, path) = (self.what, self.path.clone());
        self.persist().map_err(|fault| error(what, &path, fault))
    }

    /// Writes it to the disk and then moves it into its place.
    ///
    /// # Errors
    /// If either fails; then there is no draft any more, and an older file is as it was.
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
            Place::Beside(draft) => draft.as_file_mut(),
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
            Place::Beside(draft) => draft,
        };
        let moved = if self.replaces {
            draft.persist(&self.path)
        } else {
            draft.persist_noclobber(&self.path)
        };
        let file = moved.map_err(|fault| fault.error)?;
        // What cannot be written is a name, and the next one who looks sees it all the same.
        let _ = File::open(folder(&self.path)).and_then(|folder| folder.sync_all());
        Ok(file)
    }
}

/// Writes what a file holds to the disk, so that a full disk is noticed. A device has none.
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
    fn of(path: &Path) -> io::Result<Self> {
        let found = match fs::symlink_metadata(path) {
            Ok(found) => found,
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Self::beside(path),
            Err(fault) => return Err(fault),
        };
        if found.is_symlink() && is_of_the_system(path) {
            // `/dev/stdout` and the like: what this process has open.
            let file = File::options().append(true).open(path)?;
            return Ok(Self::Direct(file));
        }
        let behind = fs::metadata(path);
        if behind.as_ref().is_ok_and(Metadata::is_dir) {
            return Err(io::Error::other("it is a directory; name a file"));
        }
        if found.is_file() {
            return Self::beside(path);
        }
        if found.is_symlink() {
            return match behind {
                Ok(behind) if !behind.is_file() => Err(io::Error::other(
                    "it is a link to a device or a pipe; name that itself",
                )),
                // The link is replaced, not what it leads to.
                _ => Self::beside(path),
            };
        }
        let mut options = File::options();
        let file = options.write(true).custom_flags(no_link()).open(path)?;
        let kind = file.metadata()?.file_type();
        if kind.is_char_device() || kind.is_fifo() {
            Ok(Self::Direct(file))
        } else {
            Err(io::Error::other("it is no file, no pipe and no terminal"))
        }
    }

    fn beside(path: &Path) -> io::Result<Self> {
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
            // Where locks are not to be had, nobody takes the draft for a dead one's either.
            let _ = file.try_lock();
            // Between the two, another run may have taken it for one.
            if file.metadata()?.nlink() == 1 {
                return Ok(Self::Beside(NamedTempFile::from_parts(file, place)));
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

/// Whether a link lies where the system alone makes links.
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

/// The path by which the same file is always named, whether or not it is there.
fn whole(path: &Path) -> Option<PathBuf> {
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

/// Removes drafts of this file whose processes were killed: our own user's files with the name of a
/// draft that no process holds.
fn remove_dead_drafts(folder: &Path, name: &OsStr) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.take(SEARCHED).flatten() {
        if is_draft(&entry.file_name(), name) && is_dead(&entry.path()).unwrap_or(false) {
            // If it stays, it harms nobody.
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn is_draft(found: &OsStr, name: &OsStr) -> bool {
    let prefix = prefix(name);
    let random = found.as_bytes().strip_prefix(prefix.as_bytes());
    let random = random.and_then(|rest| rest.strip_suffix(DRAFT.as_bytes()));
    random.is_some_and(|random| {
        random.len() == RANDOM && random.iter().all(u8::is_ascii_alphanumeric)
    })
}

/// Whether nobody writes this draft any more. While that is asked, it is locked.
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
