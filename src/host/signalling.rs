//! Finding, killing and freezing the processes of sandboxes and containers, and their monitors.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::cgroup::{CgroupError, Hierarchies};
use super::container_process::{self, ProcessError};
use super::monitor::Monitor;
use super::{
    Disturbance, FillError, Kernel, Monitored, OwnId, OwnIds, Simulation, clock, filled_disk,
};
use crate::history::{HostInstant, Signal};
use crate::limits;

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
        self.on_host(Ok(()), || filled_disk::find(of).map(drop))
    }

    /// Fills the file system on which the runtime's monitor of a container writes.
    pub fn fill_disk(&self, of: &Monitored) -> Result<Disturbance, FillError> {
        match self {
            Self::Host => filled_disk::fill(of),
            Self::Simulated(kernel) => {
                let (fill, free) = (<dyn Simulation>::fill_disk, <dyn Simulation>::free_disk);
                let container = &of.container;
                Ok(Disturbance::of_simulated(kernel, container, fill, free)?)
            }
        }
    }

    /// Freezes the runtime's monitor of a container by SIGSTOP.
    pub fn freeze_monitor(&self, of: &Monitored) -> Result<Disturbance, ProcessError> {
        match self {
            Self::Host => Ok(Monitor::find(of)?.freeze()?),
            Self::Simulated(kernel) => {
                let freeze = <dyn Simulation>::freeze_monitor;
                let thaw = <dyn Simulation>::thaw_monitor;
                Disturbance::of_simulated(kernel, &of.container, freeze, thaw)
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
        let (pause, resume) = (<dyn Simulation>::pause, <dyn Simulation>::resume);
        let paused = Disturbance::of_simulated(kernel, container, pause, resume)?;
        Ok((paused, true))
    }

    /// Lets these containers run on if they are paused.
    pub fn resume_containers(&self, ids: &OwnIds) {
        if let (Self::Host, Ok(hierarchies)) = (self, Hierarchies::mounted()) {
            hierarchies.thaw_by_ids(ids);
        }
    }
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
