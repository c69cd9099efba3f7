//! Faults of the host: killed and signalled processes, and disturbances that last while a test
//! takes its steps, such as paused containers, frozen monitors and a full file system.
//!
//! Only a small file system is filled, such as a tmpfs that the user has mounted there: a large one
//! belongs to the node. The filler is a file without a name, so that the kernel frees the room
//! however this process ends.

use std::error::Error;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use std::{fmt, io};

use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, fstatvfs, open};
use rustix::io::Errno;
use tokio::time::Instant;

use super::cgroup::{CgroupError, Hierarchies};
use super::container_process::{self, Monitor, ProcessError};
use super::{Condition, Kernel, Monitored, OwnId, OwnIds, Simulation, clock};
use crate::history::{HostInstant, Signal};
use crate::limits;

/// The disturbances of the host.
static OF_HOST: Mutex<Vec<Weak<Slot>>> = Mutex::new(Vec::new());
/// The size of the largest file system that is filled: one that was mounted for this, and not one
/// that a node lives on.
const LARGEST_BYTES: u64 = 64 << 20;

/// A disturbance, such as a paused container. Dropping it undoes it.
#[must_use = "it is undone when this is dropped"]
pub struct Disturbance {
    name: String,
    undo: Arc<Slot>,
}

/// How to undo a disturbance, unless that is done.
type Slot = Mutex<Option<Box<dyn FnOnce() -> Undone + Send>>>;

/// Why a disturbance cannot be undone. It is no error if the disturbed thing is gone.
type Undone = Result<(), Box<dyn Error + Send + Sync>>;

impl Disturbance {
    /// A disturbance of the host, which is about to begin: `undo` does nothing where it has not.
    pub(super) fn new<E>(name: &str, undo: impl FnOnce() -> Result<(), E> + Send + 'static) -> Self
    where
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let disturbance = Self::simulated(name, || undo().map_err(E::into));
        let mut all = OF_HOST.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(&disturbance.undo));
        disturbance
    }

    /// One that ends with this process.
    pub(super) fn simulated(name: &str, undo: impl FnOnce() -> Undone + Send + 'static) -> Self {
        Self {
            name: name.to_owned(),
            undo: Arc::new(Mutex::new(Some(Box::new(undo)))),
        }
    }

    /// Begins a condition of a simulated container.
    fn of_simulated(
        kernel: &Arc<dyn Simulation>,
        container: &OwnId,
        condition: Condition,
    ) -> Result<Self, ProcessError> {
        if !kernel.set(&container.id, condition, true) {
            return Err(ProcessError::Missing(container.to_string()));
        }
        let (kernel, container) = (kernel.clone(), container.id.clone());
        Ok(Self::simulated("1", move || {
            kernel.set(&container, condition, false);
            Ok(())
        }))
    }

    /// The disturbed thing, such as a process.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn undo(self) -> Undone {
        undo(&self.undo)
    }
}

impl Drop for Disturbance {
    fn drop(&mut self) {
        // Callers that handle errors have called `undo`.
        let _ = undo(&self.undo);
    }
}

impl fmt::Debug for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Disturbance").field(&self.name).finish()
    }
}

impl Kernel {
    /// Checks that a sandbox's own process can be found and signalled.
    pub fn check_process(&self, sandbox: &OwnId) -> Result<(), ProcessError> {
        self.on_host(Ok(()), || container_process::find(sandbox).map(drop))
    }

    /// Whether a container has a process.
    pub fn has_process(&self, container: &OwnId) -> Result<bool, ProcessError> {
        match self {
            Self::Host => container_process::exists(container),
            Self::Simulated(simulated) => Ok(simulated.runs(&container.id)),
        }
    }

    /// Kills the process of a sandbox or a container and waits for its end; returns its pid.
    pub async fn kill_process(&self, own: &OwnId, bound: Duration) -> Result<u32, ProcessError> {
        match self {
            Self::Host => container_process::find(own)?.kill(bound).await,
            Self::Simulated(simulated) if simulated.kill(&own.id) => Ok(1),
            Self::Simulated(_) => Err(ProcessError::Missing(own.to_string())),
        }
    }

    /// Kills the only process of a container; returns when the kernel had ended it. A thread that
    /// waits for nothing else reads that time, so that no task delays it. Fails if the process
    /// cannot be found or killed, or does not end within `bound`.
    pub async fn end_process(
        &self,
        container: &OwnId,
        bound: Duration,
    ) -> Result<HostInstant, ProcessError> {
        match self {
            Self::Host => {
                let own = container.clone();
                let end = move || container_process::find_newest(&own)?.end(bound);
                let ended = tokio::task::spawn_blocking(end).await;
                ended.map_err(io::Error::from)?
            }
            Self::Simulated(simulated) if simulated.kill(&container.id) => Ok(clock::now()),
            Self::Simulated(_) => Err(ProcessError::Missing(container.to_string())),
        }
    }

    /// Sends a signal to a container's process; returns its pid.
    pub fn signal_process(&self, container: &OwnId, signal: Signal) -> Result<u32, ProcessError> {
        match self {
            Self::Host => {
                let process = container_process::find(container)?;
                process.signal(signal)?;
                Ok(process.number())
            }
            Self::Simulated(simulated) if simulated.signal(&container.id, signal) => Ok(1),
            Self::Simulated(_) => Err(ProcessError::Missing(container.to_string())),
        }
    }

    /// Checks that the runtime's monitor of a container can be found.
    pub fn check_monitor(&self, of: &Monitored) -> Result<(), ProcessError> {
        self.on_host(Ok(()), || Monitor::find(of).map(drop))
    }

    /// Kills the runtime's monitor of a container and waits for its end; before it the container's
    /// process if asked to, without its notice. Returns the monitor's pid and program.
    pub async fn kill_monitor(
        &self,
        of: &Monitored,
        with_container: bool,
        bound: Duration,
    ) -> Result<String, ProcessError> {
        match self {
            Self::Host => Monitor::find(of)?.kill(with_container, bound).await,
            Self::Simulated(simulated) => simulated
                .kill_monitor(&of.container.id, with_container)
                .then(|| "1".to_owned())
                .ok_or_else(|| ProcessError::Missing(of.container.to_string())),
        }
    }

    /// Checks that the file system on which the runtime's monitor of a container writes can be
    /// filled.
    pub fn check_disk(&self, of: &Monitored) -> Result<(), FillError> {
        self.on_host(Ok(()), || find_disk(of).map(drop))
    }

    /// Fills the file system on which the runtime's monitor of a container writes.
    pub fn fill_disk(&self, of: &Monitored) -> Result<Disturbance, FillError> {
        match self {
            Self::Host => fill(of),
            Self::Simulated(kernel) => {
                let container = &of.container;
                Ok(Disturbance::of_simulated(
                    kernel,
                    container,
                    Condition::FullDisk,
                )?)
            }
        }
    }

    /// Freezes the runtime's monitor of a container by SIGSTOP.
    pub fn freeze_monitor(&self, of: &Monitored) -> Result<Disturbance, ProcessError> {
        match self {
            Self::Host => Ok(Monitor::find(of)?.freeze()?),
            Self::Simulated(kernel) => {
                Disturbance::of_simulated(kernel, &of.container, Condition::FrozenMonitor)
            }
        }
    }

    /// Pauses a container, as `runc pause` does: by the freezer of its cgroup. Returns also whether
    /// all of its processes are frozen, for which it waits at most for `bound`.
    pub async fn pause_container(
        &self,
        container: &OwnId,
        bound: Duration,
    ) -> Result<(Disturbance, bool), CgroupError> {
        let kernel = match self {
            Self::Host => return pause(container, bound).await,
            Self::Simulated(kernel) => kernel,
        };
        let paused = Disturbance::of_simulated(kernel, container, Condition::Paused)?;
        Ok((paused, true))
    }

    /// Lets these containers run on if they are paused.
    pub fn resume_containers(&self, ids: &OwnIds) {
        if let (Self::Host, Ok(hierarchies)) = (self, Hierarchies::mounted()) {
            hierarchies.thaw_by_ids(ids);
        }
    }
}

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

/// Undoes all disturbances of the host, before the process ends.
pub fn undo_disturbances() {
    let all = std::mem::take(&mut *OF_HOST.lock().unwrap_or_else(PoisonError::into_inner));
    for slot in all.iter().filter_map(Weak::upgrade) {
        // The process is ending, so the error cannot be handled.
        let _ = undo(&slot);
    }
}

fn undo(slot: &Slot) -> Undone {
    // Under the lock, so that the process does not end meanwhile.
    let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
    slot.take().map_or(Ok(()), |undo| undo())
}

async fn pause(container: &OwnId, bound: Duration) -> Result<(Disturbance, bool), CgroupError> {
    let cgroups = container_process::find(container)?.cgroups();
    let freezer = Hierarchies::mounted()?.freezer_of(&container.id, &cgroups)?;
    let freezer = Arc::new(freezer);
    let name = freezer.path().display().to_string();
    let thawed = freezer.clone();
    // What is frozen halfway is let go when this is dropped.
    let paused = Disturbance::new(&name, move || thawed.thaw());
    freezer.freeze()?;
    let until = Instant::now() + bound;
    let mut pace = tokio::time::interval(limits::PROCESS_LOOK);
    loop {
        pace.tick().await;
        let is_frozen = freezer.is_frozen()?;
        if is_frozen || Instant::now() >= until {
            return Ok((paused, is_frozen));
        }
    }
}

/// Fills the file system on which a monitor writes.
fn fill(of: &Monitored) -> Result<Disturbance, FillError> {
    let (name, filler) = find_disk(of)?;
    let system = |fault| FillError::System(PathBuf::from(&name), fault);
    grow(&filler).map_err(system)?;
    Ok(Disturbance::new(&name, || {
        drop(filler);
        io::Result::Ok(())
    }))
}

/// Finds the small file system on which a monitor writes. Returns the name of the monitor with the
/// directory, and an empty file without a name there, which is to fill the file system.
fn find_disk(of: &Monitored) -> Result<(String, File), FillError> {
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
