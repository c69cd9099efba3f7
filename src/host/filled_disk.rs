//! Fills the file system on which a runtime's monitor of a container writes.
//!
//! Only a small one is filled, such as a tmpfs that the user has mounted there: a large one belongs
//! to the node. What fills it is a file without a name, so that the kernel gives the room back
//! however this process ends.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, fstatvfs, open};
use rustix::io::Errno;

use super::container_process::ProcessError;
use super::monitor::Monitor;
use super::{Monitored, Simulation};

/// The size of the largest file system that is filled: one that was mounted for this, and not one
/// that a node lives on.
const LARGEST_BYTES: u64 = 64 << 20;

/// Why the file system on which a monitor writes cannot be filled.
#[derive(Debug, thiserror::Error)]
pub enum FillError {
    /// The monitor is out of reach.
    #[error(transparent)]
    Monitor(#[from] ProcessError),
    /// It is too large: others use it, too.
    #[error(
        "{monitor} writes to {directory}, whose file system has {mib} MiB, and only one of at most \
         {largest} MiB is filled"
    )]
    Large {
        monitor: String,
        /// Where it writes.
        directory: PathBuf,
        /// The size of the file system.
        mib: u64,
        largest: u64,
    },
    #[error("fill the file system of {0}: {1}")]
    System(PathBuf, #[source] io::Error),
}

/// A file system that is full, until this is dropped.
#[derive(Debug)]
pub struct FilledDisk {
    name: String,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Host(File),
    Simulated(Arc<dyn Simulation>, String),
}

impl FilledDisk {
    /// The small file system on which a monitor writes, not yet filled.
    pub(super) fn find(of: &Monitored) -> Result<Self, FillError> {
        let monitor = Monitor::find(of)?;
        let (name, directory) = monitor.place();
        let filler = filler(directory, name)?;
        Ok(Self {
            name: format!("{name} ({})", directory.display()),
            place: Place::Host(filler),
        })
    }

    /// Fills the file system on which a monitor writes.
    pub(super) fn fill(of: &Monitored) -> Result<Self, FillError> {
        let found = Self::find(of)?;
        if let Place::Host(filler) = &found.place {
            let system = |fault| FillError::System(PathBuf::from(&found.name), fault);
            fill(filler).map_err(system)?;
        }
        Ok(found)
    }

    pub(super) fn simulated(kernel: Arc<dyn Simulation>, container: &str) -> Self {
        Self {
            name: "1".to_owned(),
            place: Place::Simulated(kernel, container.to_owned()),
        }
    }

    /// The monitor, and where it writes.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for FilledDisk {
    fn drop(&mut self) {
        if let Place::Simulated(kernel, container) = &self.place {
            kernel.free_disk(container);
        }
    }
}

/// A file without a name on the file system of a directory, if that is small.
fn filler(directory: &Path, monitor: &str) -> Result<File, FillError> {
    let system = |fault: Errno| FillError::System(directory.to_owned(), fault.into());
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let filler = open(directory, flags, Mode::RUSR | Mode::WUSR).map_err(system)?;
    let stated = fstatvfs(&filler).map_err(system)?;
    let size = stated.f_blocks.saturating_mul(stated.f_frsize);
    if size > LARGEST_BYTES {
        return Err(FillError::Large {
            monitor: monitor.to_owned(),
            directory: directory.to_owned(),
            mib: size >> 20,
            largest: LARGEST_BYTES >> 20,
        });
    }
    Ok(filler.into())
}

/// Lets a file grow until its file system has no room left.
fn fill(filler: &File) -> io::Result<()> {
    let block = fstatvfs(filler)?.f_frsize.max(1);
    let (mut length, mut step) = (0, LARGEST_BYTES);
    while step >= block {
        match fallocate(filler, FallocateFlags::empty(), length, step) {
            Ok(()) => length += step,
            Err(Errno::NOSPC) => step /= 2,
            Err(Errno::INTR) => {}
            Err(fault) => return Err(fault.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_file_system_is_left_alone() {
        let fault = filler(Path::new("/dev/shm"), "1 (conmon)").unwrap_err();
        let message = fault.to_string();
        let expected = "1 (conmon) writes to /dev/shm, whose file system has ";
        assert!(message.starts_with(expected), "{message}");
    }

    #[test]
    fn a_monitor_that_is_not_there_fills_nothing() {
        let own = |id: &str| crate::host::OwnId {
            id: id.to_owned(),
            since: crate::host::BootTicks::NEVER,
        };
        let of = Monitored {
            container: own("no-container-has-such-an-id-at-all"),
            sandbox: own("no-sandbox-has-such-an-id-at-all"),
        };
        let fault = FilledDisk::fill(&of).unwrap_err();
        assert!(matches!(fault, FillError::Monitor(_)), "{fault}");
    }
}
