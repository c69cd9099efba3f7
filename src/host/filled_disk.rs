//! Fills the file system on which a runtime's monitor of a container writes.
//!
//! Only a small one is filled, such as a tmpfs that the user has mounted there: a large one belongs
//! to the node. What fills it is a file without a name, so that the kernel gives the room back
//! however this process ends.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, fstatvfs, open};
use rustix::io::Errno;

use super::container_process::ProcessError;
use super::monitor::Monitor;
use super::{Disturbance, Monitored};

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

/// Fills the file system on which a monitor writes.
pub(super) fn fill(of: &Monitored) -> Result<Disturbance, FillError> {
    let (name, filler) = find(of)?;
    let system = |fault| FillError::System(PathBuf::from(&name), fault);
    grow(&filler).map_err(system)?;
    Ok(Disturbance::new(&name, || {
        drop(filler);
        io::Result::Ok(())
    }))
}

/// What fills the small file system on which a monitor writes, still empty, with the name of the
/// monitor and where it writes.
pub(super) fn find(of: &Monitored) -> Result<(String, File), FillError> {
    let monitor = Monitor::find(of)?;
    let (name, directory) = monitor.place();
    let filler = filler(directory, name)?;
    Ok((format!("{name} ({})", directory.display()), filler))
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
fn grow(filler: &File) -> io::Result<()> {
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
        let fault = fill(&of).unwrap_err();
        assert!(matches!(fault, FillError::Monitor(_)), "{fault}");
    }
}
