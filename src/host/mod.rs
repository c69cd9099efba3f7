//! What the suite asks of the host it runs on: the clocks, and facts that the kernel tells.
//!
//! The only module that reads a clock or the kernel's files.

mod cgroup;
mod clock;
mod command;
mod facts;
mod interrupts;
mod kubelet;
mod leftovers;
mod logs;
mod owner;
mod process;
mod slice;
mod stopped_runtime;

use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use cgroup::Hierarchies;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, getrlimit, setrlimit};

pub use cgroup::{CgroupError, PodCgroup};
pub use clock::{Reactor, SteppedClock, hold_up, now, put_clock_right};
pub use command::CommandError;
pub use interrupts::InterruptSignals;
pub use kubelet::KubeletProcess;
pub use leftovers::Leftover;
pub use logs::{LogDirectory, LogDirectoryError};
pub use owner::Owner;
pub use process::ProcessError;
pub use slice::SliceError;
pub use stopped_runtime::start_stopped_runtime;

use crate::history::{Host, HostInstant, RunId};

/// The kernel under the runtime that is tested, as far as it can be asked.
#[derive(Clone, Debug, Default)]
pub enum Kernel {
    /// This host's.
    #[default]
    Host,
    /// One that is simulated.
    Simulated(Arc<dyn Simulation>),
}

/// A kernel that is simulated.
pub trait Simulation: fmt::Debug + Send + Sync {
    /// How many processes it has killed for their memory.
    fn oom_kills(&self) -> u64;
    /// Kills the process of a sandbox or a container; says whether there was one.
    fn kill(&self, id: &str) -> bool;
    /// A container lives and is removed that was not made through the CRI.
    fn live_outside_cri(&self);
    /// Ends the runtime's own process, and no container's.
    fn stop_runtime(&self);
    /// Starts it again.
    fn start_runtime(&self);
    /// Whether a container's process is there.
    fn runs(&self, id: &str) -> bool;
}

impl Kernel {
    /// How many processes the kernel's OOM killer has killed, in all cgroups.
    ///
    /// # Errors
    /// If this host's kernel does not tell it.
    pub fn oom_kills(&self) -> io::Result<u64> {
        match self {
            Self::Host => oom_kills(),
            Self::Simulated(simulated) => Ok(simulated.oom_kills()),
        }
    }
}

impl Kernel {
    /// Whether a sandbox's own process is to be found, and may be signalled.
    ///
    /// # Errors
    /// If it is not, with what is in the way.
    pub fn finds_process_of(&self, sandbox: &str) -> Result<(), ProcessError> {
        match self {
            Self::Host => process::of(sandbox).map(drop),
            Self::Simulated(_) => Ok(()),
        }
    }

    /// Whether a process of a container is there.
    ///
    /// # Errors
    /// If that is not to be found out.
    pub fn has_process_of(&self, container: &str) -> Result<bool, ProcessError> {
        match self {
            Self::Host => process::is_there(container),
            Self::Simulated(simulated) => Ok(simulated.runs(container)),
        }
    }

    /// The processes that live on of containers and sandboxes with these ids.
    #[must_use]
    pub fn leftovers(&self, ids: &BTreeSet<String>) -> Vec<Leftover> {
        match self {
            Self::Host => leftovers::find(ids),
            Self::Simulated(_) => Vec::new(),
        }
    }

    /// The ids of the containers and sandboxes that shims and monitors were started for with logs
    /// of these runs.
    #[must_use]
    pub fn monitored(&self, is_ours: impl Fn(&Owner) -> bool) -> BTreeSet<String> {
        match self {
            Self::Host => leftovers::monitored(is_ours),
            Self::Simulated(_) => BTreeSet::new(),
        }
    }

    /// Removes the cgroups of containers and sandboxes with these ids in which nothing is; returns
    /// whether none is left.
    #[must_use]
    pub fn remove_cgroups_of(&self, ids: &BTreeSet<String>) -> bool {
        match self {
            Self::Host => leftovers::remove_cgroups(ids),
            Self::Simulated(_) => true,
        }
    }

    /// Where the core of a process goes that dies of a fault, in the words of `core(5)`.
    ///
    /// # Errors
    /// If this host's kernel does not tell it.
    pub fn core_pattern(&self) -> io::Result<String> {
        match self {
            Self::Host => std::fs::read_to_string("/proc/sys/kernel/core_pattern"),
            Self::Simulated(_) => Ok("|simulated".to_owned()),
        }
    }

    /// Kills the process of a sandbox or a container and waits for its end, so long at most;
    /// returns its number.
    ///
    /// # Errors
    /// As [`finds_process_of`](Self::finds_process_of), or if it does not end.
    pub async fn kill_process_of(&self, id: &str, bound: Duration) -> Result<u32, ProcessError> {
        match self {
            Self::Host => process::of(id)?.kill(bound).await,
            Self::Simulated(simulated) if simulated.kill(id) => Ok(1),
            Self::Simulated(_) => Err(ProcessError::Missing(id.to_owned())),
        }
    }

    /// Sets the wall clock under the runtime by so many nanoseconds, until that is dropped.
    ///
    /// # Errors
    /// If the system does not let us.
    pub fn step_clock(&self, by_ns: i64) -> io::Result<SteppedClock> {
        SteppedClock::by(by_ns)
    }

    /// Runs a shell's command that makes a container outside the CRI, waits for its end and removes
    /// it, so long at most. Whatever it is where the kernel is simulated, there lives one, too.
    ///
    /// # Errors
    /// If it cannot be run, fails, or does not end.
    pub async fn live_outside_cri(
        &self,
        command: &str,
        bound: Duration,
    ) -> Result<(), CommandError> {
        command::run(command, bound).await?;
        if let Self::Simulated(simulated) = self {
            simulated.live_outside_cri();
        }
        Ok(())
    }

    /// Stops the runtime by the user's command `stop`, so long at most. Until
    /// [`Self::start_runtime`] has been called, [`start_stopped_runtime`] starts it by `start`.
    ///
    /// # Errors
    /// If the command cannot be run, fails, or does not end.
    pub async fn stop_runtime(
        &self,
        (stop, start): (&str, &str),
        bound: Duration,
    ) -> Result<(), CommandError> {
        match self {
            Self::Host => {
                stopped_runtime::note(Some(start));
                command::run(stop, bound).await
            }
            Self::Simulated(simulated) => {
                simulated.stop_runtime();
                Ok(())
            }
        }
    }

    /// Starts the runtime by the user's command, so long at most, and lets live on what that has
    /// started.
    ///
    /// # Errors
    /// If the command cannot be run, fails, or does not end.
    pub async fn start_runtime(&self, command: &str, bound: Duration) -> Result<(), CommandError> {
        match self {
            Self::Host => {
                let started = command::start(command, bound).await;
                stopped_runtime::note(None);
                started
            }
            Self::Simulated(simulated) => {
                simulated.start_runtime();
                Ok(())
            }
        }
    }

    /// A kubelet that lives on it; none if none can be seen, or if it is simulated.
    #[must_use]
    pub fn kubelet(&self) -> Option<KubeletProcess> {
        match self {
            Self::Host => kubelet::find(),
            Self::Simulated(_) => None,
        }
    }

    /// Makes the directory for the logs of a run's containers, below the parent that the user
    /// names or a usual one. Where the kernel is simulated nothing is written, and so none is made.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn make_log_directory(
        &self,
        parent: Option<&Path>,
        run: &RunId,
    ) -> Result<LogDirectory, LogDirectoryError> {
        match self {
            Self::Host => LogDirectory::make(parent, run),
            Self::Simulated(_) => Ok(LogDirectory::new(parent.unwrap_or(Path::new("/")), run)),
        }
    }

    /// Whether it is simulated.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        matches!(self, Self::Simulated(_))
    }

    /// Looks whether a runtime may be given a cgroup of ours for a pod: by where it has put the
    /// process of this sandbox.
    ///
    /// # Errors
    /// If not, with what is in the way.
    pub fn suits_pod_cgroups(&self, sandbox: &str) -> Result<(), CgroupError> {
        match self {
            Self::Host => {
                let held = process::of(sandbox)?;
                Hierarchies::of_host()?.suit(held.number(), &held.cgroups())
            }
            Self::Simulated(_) => Ok(()),
        }
    }

    /// Makes a cgroup whose processes may use so much memory together, and no swap.
    ///
    /// # Errors
    /// If it cannot be made, or not be limited.
    pub fn make_cgroup(&self, cgroup: &PodCgroup, memory_bytes: u64) -> Result<(), CgroupError> {
        match self {
            Self::Host => Hierarchies::of_host()?.make(cgroup, memory_bytes),
            Self::Simulated(_) => Ok(()),
        }
    }

    /// Looks whether a sandbox's own process is in this cgroup.
    ///
    /// # Errors
    /// If not, or if that is not to be found out.
    pub fn is_in_cgroup(&self, cgroup: &PodCgroup, sandbox: &str) -> Result<(), CgroupError> {
        match self {
            Self::Host => {
                let told = process::of(sandbox)?.cgroups();
                let is_in = Hierarchies::of_host()?.holds(cgroup, &told);
                let elsewhere = || CgroupError::Elsewhere(told);
                is_in.then_some(()).ok_or_else(elsewhere)
            }
            Self::Simulated(_) => Ok(()),
        }
    }

    /// Removes a cgroup that a run of this suite has made, if nothing is left in it.
    ///
    /// # Errors
    /// If it cannot be removed. That there is none is none.
    pub fn remove_cgroup(&self, cgroup: &PodCgroup) -> Result<(), CgroupError> {
        match self {
            Self::Host => Hierarchies::of_host()?.remove(cgroup),
            Self::Simulated(_) => Ok(()),
        }
    }

    /// The cgroups that runs of this suite have made on this host and not removed.
    #[must_use]
    pub fn cgroups(&self) -> BTreeSet<PodCgroup> {
        match self {
            Self::Host => Hierarchies::of_host().map_or_else(|_| BTreeSet::new(), |it| it.made()),
            Self::Simulated(_) => BTreeSet::new(),
        }
    }

    /// The host under the runtime as it is now; none under one that is simulated.
    #[must_use]
    pub fn host(&self) -> Option<Host> {
        match self {
            Self::Host => Some(facts::host()),
            Self::Simulated(_) => None,
        }
    }
}

/// How many processes the host's OOM killer has killed since boot, in all cgroups.
///
/// # Errors
/// If `/proc/vmstat` cannot be read or lacks the count, as under some sandboxed kernels.
fn oom_kills() -> io::Result<u64> {
    let vmstat = std::fs::read_to_string("/proc/vmstat")?;
    vmstat
        .lines()
        .find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "/proc/vmstat has no oom_kill line"))
}

/// Which process this is, in a way that outlives its number: pid and start time.
#[must_use]
pub fn this_process() -> String {
    let pid = std::process::id();
    format!("{pid}-{}", start_ticks(pid).unwrap_or(0))
}

/// Raises this process's soft limit of open files (`RLIMIT_NOFILE`) to this number if it is lower.
///
/// # Errors
/// The present soft limit, if the hard limit does not allow that.
pub fn allow_open_files(needed: u64) -> Result<(), u64> {
    let mut limit = getrlimit(Resource::Nofile);
    let allowed = limit.current.unwrap_or(u64::MAX);
    if allowed >= needed {
        return Ok(());
    }
    limit.current = Some(needed);
    setrlimit(Resource::Nofile, limit).map_err(|_| allowed)
}

/// Whether the process that [`this_process`] named still runs on this host.
#[must_use]
pub fn is_alive(process: &str) -> bool {
    let Some((pid, ticks)) = process.split_once('-') else {
        return false;
    };
    let (Ok(pid), Ok(ticks)) = (pid.parse(), ticks.parse::<u64>()) else {
        return false;
    };
    start_ticks(pid) == Some(ticks)
}

/// Field 22 of `/proc/PID/stat`; none for a process that is gone or a zombie.
fn start_ticks(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    if fields.starts_with('Z') {
        return None;
    }
    fields.split(' ').nth(19)?.parse().ok()
}

/// Whether somebody can still read what is written to this end of a pipe. True of all that is no
/// pipe.
#[must_use]
pub fn is_read(end: &impl AsFd) -> bool {
    let mut watched = [PollFd::new(end, PollFlags::empty())];
    let polled = poll(&mut watched, Some(&Timespec::default()));
    polled.is_err() || !watched[0].revents().contains(PollFlags::ERR)
}

/// A span of the monotonic clock that began at a moment.
#[must_use]
pub fn elapsed(began: HostInstant) -> Duration {
    now().since(began)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_start_and_not_by_its_number_alone() {
        assert!(is_alive(&this_process()));
        assert!(!is_alive(&format!("{}-1", std::process::id())));
        assert!(!is_alive("nonsense"));
    }

    #[test]
    fn a_pipe_is_read_until_its_reader_goes() {
        let (reader, writer) = std::io::pipe().unwrap();
        assert!(is_read(&writer));
        drop(reader);
        assert!(!is_read(&writer));
        assert!(is_read(&std::fs::File::open("/dev/null").unwrap()));
    }

    #[test]
    fn the_kernel_counts_oom_kills() {
        assert!(oom_kills().is_ok());
    }
}
