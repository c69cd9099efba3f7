//! Opens directories and the files in them, one component of a path at a time.
//!
//! Long, because all operations on an open directory are one list of short functions.
//!
//! One invariant: a path is resolved once. If another user replaces a component meanwhile, it is
//! either not reached or rejected, since each is opened below the descriptor of its parent. A link
//! is followed if it belongs to root or to the user of this process.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, PROC_SUPER_MAGIC, Stat, chownat, fstat, fstatfs, mkdirat,
    openat, readlinkat, renameat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::{Gid, Uid, geteuid};

/// The maximum number of links on a path, as in the kernel.
const LINKS: usize = 40;
/// The permission bits of a group, and of all other users, to create and remove entries.
const GROUP: u32 = 0o020;
const OTHERS: u32 = 0o002;
/// The highest id of a system group; higher ones belong to users.
const LAST_SYSTEM_GROUP: u32 = 999;
/// In a directory with this bit only the owner of an entry can remove it.
const STICKY: u32 = 0o1000;

/// Identifies a file: its device and inode.
pub type FileId = (u64, u64);

#[derive(Debug)]
pub struct Folder {
    descriptor: OwnedFd,
    is_safe: bool,
}

/// The end of a path: a directory and the name in it.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) folder: Folder,
    /// `None` if the path ends with a directory, as `..` does.
    pub(super) name: Option<OsString>,
    /// Whether the name is a link to a file that a process has opened, as `/dev/stdout` is.
    pub(super) is_descriptor: bool,
}

impl Folder {
    /// Opens a directory. Fails if it cannot be opened, or the path contains a link of another
    /// user.
    pub fn open(path: &Path) -> io::Result<Self> {
        Place::of(path, true)?.directory()
    }

    /// Opens a directory whose entries no other user can replace.
    pub fn open_safe(path: &Path) -> io::Result<Self> {
        let folder = Self::open(path)?;
        if folder.is_safe() {
            return Ok(folder);
        }
        let path = path.display();
        let fault =
            format!("users other than root can replace files in {path} or a directory above it");
        Err(io::Error::new(io::ErrorKind::PermissionDenied, fault))
    }

    /// The directory where a path begins.
    fn start(path: &str) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let descriptor = openat(CWD, path, flags, Mode::empty())?;
        let is_safe = is_safe(&fstat(&descriptor)?);
        Ok(Self {
            descriptor,
            is_safe,
        })
    }

    /// Creates a directory and those above it, unless they exist, and opens it. The new ones get
    /// this user and group as their owner, if given.
    pub fn make(path: &Path, owner: Option<(u32, u32)>) -> io::Result<Self> {
        let missing = match Self::open(path) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => fault,
            opened => return opened,
        };
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(missing);
        };
        let here = above == Path::new("");
        let above = Self::make(if here { Path::new(".") } else { above }, owner)?;
        match (above.create(name, 0o777), owner) {
            // Another thread or process was faster.
            (Err(fault), _) if fault.kind() == io::ErrorKind::AlreadyExists => above.enter(name),
            (Err(fault), _) => Err(fault),
            (Ok(()), None) => above.enter(name),
            (Ok(()), Some((user, group))) => {
                let own = above.enter(name)?;
                own.must_be_own()?;
                let (user, group) = (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
                chownat(&own.descriptor, "", user, group, AtFlags::EMPTY_PATH)?;
                Ok(own)
            }
        }
    }

    /// Creates a directory in this one, and opens it. One that exists is opened if it belongs to
    /// the user of this process. Fails if it can be neither created nor opened, is a link, or
    /// belongs to another user.
    pub fn make_own(&self, name: &OsStr, mode: u32) -> io::Result<Self> {
        match self.create(name, mode) {
            Err(fault) if fault.kind() != io::ErrorKind::AlreadyExists => return Err(fault),
            _ => {}
        }
        let own = self.enter(name)?;
        own.must_be_own()?;
        Ok(own)
    }

    /// Creates a directory in this one.
    pub fn create(&self, name: &OsStr, mode: u32) -> io::Result<()> {
        Ok(mkdirat(&self.descriptor, name, Mode::from_raw_mode(mode))?)
    }

    /// Opens a subdirectory, but no link.
    pub fn enter(&self, name: &OsStr) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = openat(&self.descriptor, name, flags, Mode::empty())?;
        let is_safe = self.is_safe && is_safe(&fstat(&descriptor)?);
        Ok(Self {
            descriptor,
            is_safe,
        })
    }

    /// Whether no other user can replace an entry on its path: each directory on it belongs to root
    /// or to the user of this process, and other users cannot rename its entries.
    pub fn is_safe(&self) -> bool {
        self.is_safe
    }

    /// Checks that it belongs to the user of this process.
    pub fn must_be_own(&self) -> io::Result<()> {
        let owner = fstat(&self.descriptor)?.st_uid;
        if owner == geteuid().as_raw() {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "the directory belongs to user {owner}; name a directory of your own"
        )))
    }

    pub fn id(&self) -> io::Result<FileId> {
        Ok(id(&fstat(&self.descriptor)?))
    }

    pub fn permit(&self, mode: u32) -> io::Result<()> {
        let opened = File::from(self.readable()?);
        Ok(rustix::fs::fchmod(&opened, Mode::from_raw_mode(mode))?)
    }

    /// The names of its entries, sorted, at most `limit` of them.
    pub fn names(&self, limit: usize) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(self.readable()?)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(OsStr::from_bytes(name).to_owned());
            }
            if names.len() == limit {
                break;
            }
        }
        names.sort();
        Ok(names)
    }

    /// The metadata of an entry; links are not followed.
    pub fn stat(&self, name: &OsStr) -> io::Result<Stat> {
        Ok(statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Opens a regular file for reading. Fails if it cannot be opened, is a link, or is not a
    /// regular file.
    pub fn read(&self, name: &OsStr) -> io::Result<File> {
        regular(self.open_entry(name, OFlags::RDONLY, 0)?)
    }

    /// Opens a regular file of the user of this process to append to it; creates it if it is
    /// missing.
    pub fn append(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE;
        let file = regular(self.open_entry(name, flags, mode)?)?;
        if fstat(&file)?.st_uid != geteuid().as_raw() {
            return Err(io::Error::other("the file belongs to another user"));
        }
        Ok(file)
    }

    /// Creates a file, which must not exist, and opens it.
    pub fn create_file(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        self.open_entry(name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL, mode)
    }

    /// Opens an entry unless it is a link. The call does not wait for the other end of a pipe.
    pub(super) fn open_entry(&self, name: &OsStr, flags: OFlags, mode: u32) -> io::Result<File> {
        let always = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode);
        match openat(&self.descriptor, name, flags | always, mode) {
            Ok(opened) => Ok(File::from(opened)),
            Err(Errno::LOOP) => Err(io::Error::other("it is a link, which is not followed")),
            Err(fault) => Err(fault.into()),
        }
    }

    /// Removes a file or a link.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.descriptor, name, AtFlags::empty())?)
    }

    /// Removes a directory with its content; follows no link.
    pub fn remove_tree(&self, name: &OsStr) -> io::Result<()> {
        std::fs::remove_dir_all(self.path_of(name))
    }

    /// Renames an entry; replaces one with the new name.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(renameat(&self.descriptor, from, &self.descriptor, to)?)
    }

    /// A path of an entry through this directory's descriptor, for calls that need a path.
    pub fn path_of(&self, name: &OsStr) -> PathBuf {
        Path::new("/proc/self/fd")
            .join(self.descriptor.as_raw_fd().to_string())
            .join(name)
    }

    /// Opens a regular file by a path that cannot lead out of this directory, which is `/` for the
    /// path and for the links on it.
    pub fn read_inside(&self, path: &Path) -> io::Result<File> {
        let place = self.inside(path)?;
        place.folder.read(place.name()?)
    }

    /// Opens a directory as [`Folder::read_inside`] does.
    pub fn open_inside(&self, path: &Path) -> io::Result<Self> {
        self.inside(path)?.directory()
    }

    /// The metadata at a path, resolved as in [`Folder::read_inside`].
    pub fn stat_inside(&self, path: &Path) -> io::Result<Stat> {
        let place = self.inside(path)?;
        match &place.name {
            Some(name) => place.folder.stat(name),
            None => Ok(fstat(&place.folder.descriptor)?),
        }
    }

    /// The target of a link, resolved as in [`Folder::read_inside`].
    pub fn read_link_inside(&self, path: &Path) -> io::Result<PathBuf> {
        let place = Walk::new(self.again()?, true).walk(path, false)?;
        let target = readlinkat(&place.folder.descriptor, place.name()?, Vec::new())?;
        Ok(OsString::from_vec(target.into_bytes()).into())
    }

    /// The path in this process, without links, of a file that exists, resolved as in
    /// [`Folder::read_inside`].
    pub fn path_inside(&self, path: &Path) -> io::Result<PathBuf> {
        let place = self.inside(path)?;
        place.folder.path_of(place.name()?).canonicalize()
    }

    fn inside(&self, path: &Path) -> io::Result<Place> {
        Walk::new(self.again()?, true).walk(path, true)
    }

    pub fn again(&self) -> io::Result<Self> {
        Ok(Self {
            descriptor: self.descriptor.try_clone()?,
            is_safe: self.is_safe,
        })
    }

    fn readable(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(openat(&self.descriptor, ".", flags, Mode::empty())?)
    }

    /// Syncs its entries to the disk.
    pub fn sync(&self) -> io::Result<()> {
        File::from(self.readable()?).sync_all()
    }

    fn is_on_procfs(&self) -> bool {
        fstatfs(&self.descriptor).is_ok_and(|found| found.f_type == PROC_SUPER_MAGIC)
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Place {
    /// The end of a path. A link there is resolved if `follows`.
    pub(super) fn of(path: &Path, follows: bool) -> io::Result<Self> {
        // Where this process works may be closed to it.
        let start = if path.is_absolute() { "/" } else { "." };
        Walk::new(Folder::start(start)?, false).walk(path, follows)
    }

    pub(super) fn name(&self) -> io::Result<&OsStr> {
        let none = || io::Error::other("it is a directory; name a file");
        self.name.as_deref().ok_or_else(none)
    }

    fn directory(self) -> io::Result<Folder> {
        match &self.name {
            None => Ok(self.folder),
            Some(name) if self.is_descriptor => {
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let descriptor = openat(&self.folder.descriptor, name, flags, Mode::empty())?;
                let is_safe = is_safe(&fstat(&descriptor)?);
                Ok(Folder {
                    descriptor,
                    is_safe,
                })
            }
            Some(name) => self.folder.enter(name),
        }
    }

    /// Opens it for reading: a regular file, or any file that this process got as a descriptor.
    pub(super) fn read(&self) -> io::Result<File> {
        if self.is_descriptor {
            let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::CLOEXEC;
            let opened = openat(&self.folder.descriptor, self.name()?, flags, Mode::empty())?;
            return Ok(File::from(opened));
        }
        self.folder.read(self.name()?)
    }

    /// Opens a file that this process has already opened, to append to it.
    pub(super) fn append(&self) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = openat(&self.folder.descriptor, self.name()?, flags, Mode::empty())?;
        Ok(File::from(opened))
    }
}

struct Walk {
    /// The start directory, and those that were entered.
    folders: Vec<Folder>,
    /// Whether the first of them acts as `/`.
    is_closed: bool,
    links: usize,
}

impl Walk {
    fn new(start: Folder, is_closed: bool) -> Self {
        Self {
            folders: vec![start],
            is_closed,
            links: 0,
        }
    }

    fn walk(mut self, path: &Path, follows: bool) -> io::Result<Place> {
        // With a slash behind it, a link is its target.
        let follows = follows || path.as_os_str().as_bytes().ends_with(b"/");
        let mut pending: VecDeque<OsString> = components(path).collect();
        while let Some(component) = pending.pop_front() {
            if component == "/" {
                self.enter_root()?;
                continue;
            }
            if component == ".." {
                self.up()?;
                continue;
            }
            let is_last = pending.is_empty();
            let here = self.here();
            let found = match here.stat(&component) {
                Err(fault) if is_last && fault.kind() == io::ErrorKind::NotFound => None,
                found => Some(found?),
            };
            let is_link = found.is_some_and(|found| kind(&found) == FileType::Symlink);
            let is_descriptor = is_link && !self.is_closed && here.is_on_procfs();
            if is_last && (!is_link || is_descriptor || !follows) {
                return Ok(self.end(Some(component), is_descriptor && follows));
            }
            if is_descriptor {
                let folder = self.end(Some(component), true).directory()?;
                self = Self {
                    folders: vec![folder],
                    is_closed: false,
                    links: 0,
                };
            } else if is_link {
                for part in self.target(&component)?.into_iter().rev() {
                    pending.push_front(part);
                }
            } else {
                let below = here.enter(&component)?;
                self.folders.push(below);
            }
        }
        Ok(self.end(None, false))
    }

    fn here(&self) -> &Folder {
        self.folders.last().expect("the first one stays")
    }

    fn end(mut self, name: Option<OsString>, is_descriptor: bool) -> Place {
        Place {
            folder: self.folders.pop().expect("the first one stays"),
            name,
            is_descriptor,
        }
    }

    fn enter_root(&mut self) -> io::Result<()> {
        self.folders.truncate(1);
        if !self.is_closed {
            self.folders = vec![Folder::start("/")?];
        }
        Ok(())
    }

    fn up(&mut self) -> io::Result<()> {
        if self.folders.len() > 1 {
            self.folders.pop();
        } else if !self.is_closed {
            let above = self.here().enter(OsStr::new(".."))?;
            self.folders = vec![above];
        }
        Ok(())
    }

    /// The components of a link's target.
    fn target(&mut self, link: &OsStr) -> io::Result<Vec<OsString>> {
        self.links += 1;
        if self.links > LINKS {
            return Err(Errno::LOOP.into());
        }
        // The link itself is opened, so that its owner and its target are those of one link.
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat(&self.here().descriptor, link, flags, Mode::empty())?;
        let owner = fstat(&opened)?.st_uid;
        if !is_trusted_user(owner) {
            return Err(io::Error::other(format!(
                "`{}` on its path is a link of user {owner}, which is not followed: name its target",
                link.display()
            )));
        }
        let target = readlinkat(&opened, "", Vec::new())?.into_bytes();
        Ok(components(Path::new(&OsString::from_vec(target))).collect())
    }
}

fn components(path: &Path) -> impl Iterator<Item = OsString> {
    let parts = path.components();
    let parts = parts.filter(|part| !matches!(part, Component::CurDir));
    parts.map(|part| part.as_os_str().to_owned())
}

/// Whether other users cannot replace the entries of this directory. System groups may, such as
/// that of the log daemon in `/var/log`.
fn is_safe(found: &Stat) -> bool {
    let has = |bits| found.st_mode & bits != 0;
    let is_shared = has(OTHERS) || has(GROUP) && found.st_gid > LAST_SYSTEM_GROUP;
    is_trusted_user(found.st_uid) && (!is_shared || has(STICKY))
}

/// Whether the id is that of root or of the user of this process.
pub fn is_trusted_user(user: u32) -> bool {
    user == 0 || user == geteuid().as_raw()
}

/// Sets the permissions of an open file that belongs to this user and has no other name.
pub fn permit_own(file: &File, mode: u32) -> io::Result<()> {
    let found = fstat(file)?;
    if found.st_uid == geteuid().as_raw() && found.st_nlink == 1 {
        rustix::fs::fchmod(file, Mode::from_raw_mode(mode))?;
    }
    Ok(())
}

pub fn kind(found: &Stat) -> FileType {
    FileType::from_raw_mode(found.st_mode)
}

pub fn id(found: &Stat) -> FileId {
    (found.st_dev, found.st_ino)
}

fn regular(file: File) -> io::Result<File> {
    match kind(&fstat(&file)?) {
        FileType::RegularFile => Ok(file),
        FileType::Directory => Err(io::Error::other("it is a directory; name a file")),
        _ => Err(io::Error::other("it is not a regular file")),
    }
}

/// Opens a file for reading: a regular one, or one that this process got as a descriptor, such as
/// `/dev/stdin`. Fails if it cannot be opened, is of another kind, or its path contains a link of
/// another user.
pub fn open(path: &Path) -> io::Result<File> {
    Place::of(path, true)?.read()
}

/// Reads a file, opened as by [`open`]. Fails if it cannot be read, or exceeds `limit` bytes.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_all(open(path)?, limit)
}

/// Reads a text file, opened as by [`open`].
pub fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    let bytes = read(path, limit)?;
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8"))
}

/// Reads the rest of a file. Fails if it cannot be read, or exceeds `limit` bytes.
pub fn read_all(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let limit = match limit >> 20 {
            0 => format!("{} KiB", limit >> 10),
            mebibytes => format!("{mebibytes} MiB"),
        };
        return Err(io::Error::other(format!("it is larger than {limit}")));
    }
    Ok(bytes)
}

/// The metadata at a path; links are followed. Fails if nothing exists there, or the path contains
/// a link of another user.
pub fn stat(path: &Path) -> io::Result<Stat> {
    let place = Place::of(path, true)?;
    match &place.name {
        None => Ok(fstat(&place.folder.descriptor)?),
        Some(name) if place.is_descriptor => {
            Ok(statat(&place.folder.descriptor, name, AtFlags::empty())?)
        }
        Some(name) => place.folder.stat(name),
    }
}
