//! Finding, killing and freezing the processes of sandboxes and containers, and their monitors.

use std::io;
use std::time::Duration;

use super::container_process::{self, ProcessError};
use super::monitor::Monitor;
use super::{FillError, FilledDisk, FrozenMonitor, Kernel, Monitored, OwnId, clock};
use crate::history::{HostInstant, Signal};

impl Kernel {
    /// Checks that a sandbox's own process can be found and signalled.
    pub fn check_process(&self, sandbox: &OwnId) -> Result<(), ProcessError> {
        match self {
            Self::Host => container_process::find(sandbox).map(drop),
            Self::Simulated(_) => Ok(()),
        }
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
        match self {
            Self::Host => Monitor::find(of).map(drop),
            Self::Simulated(_) => Ok(()),
        }
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
        match self {
            Self::Host => FilledDisk::find(of).map(drop),
            Self::Simulated(_) => Ok(()),
        }
    }

    /// Fills the file system on which the runtime's monitor of a container writes, until the result
    /// is dropped.
    pub fn fill_disk(&self, of: &Monitored) -> Result<FilledDisk, FillError> {
        match self {
            Self::Host => FilledDisk::fill(of),
            Self::Simulated(simulated) if simulated.fill_disk(&of.container.id) => {
                Ok(FilledDisk::simulated(simulated.clone(), &of.container.id))
            }
            Self::Simulated(_) => Err(ProcessError::Missing(of.container.to_string()).into()),
        }
    }

    /// Freezes the runtime's monitor of a container until the result is dropped.
    pub fn freeze_monitor(&self, of: &Monitored) -> Result<FrozenMonitor, ProcessError> {
        let container = of.container.to_string();
        match self {
            Self::Host => Ok(Monitor::find(of)?.freeze()?),
            Self::Simulated(simulated) if simulated.freeze_monitor(&container) => {
                Ok(FrozenMonitor::simulated(simulated.clone(), container))
            }
            Self::Simulated(_) => Err(ProcessError::Missing(container)),
        }
    }
}
