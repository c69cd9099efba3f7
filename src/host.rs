//! The host: clocks, processes, cgroups, and facts from `/proc`.
//!
//! The only module that reads a clock or the kernel's files.

mod cgroup;
mod clock;
mod command;
mod container_process;
mod daemon;
mod disturbance;
mod facts;
mod file_tree;
mod interrupts;
mod kubelet;
mod leftovers;
mod logs;
mod paused_kubelet;
mod runtime_process;
mod subscriber_process;

use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource as Limited, getrlimit, setrlimit};

use crate::history::{Holder, Host, HostInstant, Resource, RunId, Signal};
use cgroup::Hierarchies;

pub use cgroup::{CgroupError, PodCgroup};
pub use clock::{BootTicks, Reactor, hold_up, now, step_clock};
pub use command::CommandError;
pub use container_process::{Monitored, ProcessError, SeenProcess};
pub use daemon::{Daemon, daemons, socket_clients};
pub use disturbance::{Disturbance, undo_disturbances};
pub use facts::ResourceError;
pub use file_tree::{FileTree, HIDDEN_HOST, is_host_hidden, run_program_of_host};
pub use interrupts::{InterruptSignals, on_interrupt};
pub use kubelet::{KubeletProcess, KubeletSettings, kubelets};
pub use leftovers::{
    Leftover, OwnId, OwnIds, Owner, is_uuid, unexplained_shims, unrecorded_monitors,
};
pub use logs::{LogDirectory, LogDirectoryError};
pub use paused_kubelet::{PauseError, PausedKubelet, resume_kubelet_at_once};
pub use runtime_process::{
    RuntimeCommands, RuntimeEnd, RuntimeEndError, RuntimeProcess, is_server_trusted,
    is_server_visible, own_cpu_time, start_stopped_runtime,
};
pub use subscriber_process::{SubscriberProcess, connection_to_hold, hold_connection};

/// The kernel under the runtime under test.
#[derive(Clone, Debug, Default)]
pub enum Kernel {
    #[default]
    Host,
    Simulated(Arc<dyn Simulation>),
}

/// A lasting condition of a container on a simulated kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Its processes are frozen.
    Paused,
    /// The runtime's monitor of it is frozen.
    FrozenMonitor,
    /// The file system on which that monitor writes is full.
    FullDisk,
}

/// The kernel under a simulated runtime.
pub trait Simulation: fmt::Debug + Send + Sync {
    /// The number of OOM kills.
    fn oom_kills(&self) -> u64;
    /// Kills the process of a sandbox or a container; returns whether there was one.
    fn kill(&self, id: &str) -> bool;
    /// Sends a signal to a container's process; returns whether there was one.
    fn signal(&self, container: &str, signal: Signal) -> bool;
    /// Kills the runtime's monitor of a container, and the container's process if asked to; returns
    /// whether there was one.
    fn kill_monitor(&self, container: &str, with_container: bool) -> bool;
    /// Begins or ends a condition of a container; returns whether that has the process concerned.
    fn set(&self, container: &str, condition: Condition, begins: bool) -> bool;
    /// Runs and removes a container outside the CRI.
    fn run_outside_cri(&self);
    /// Ends the runtime; its containers keep running. Returns how long that takes.
    fn end_runtime(&self, how: RuntimeEnd) -> Duration;
    fn start_runtime(&self);
    /// Whether a container's process exists.
    fn runs(&self, id: &str) -> bool;
    /// How much of a resource is held; `ids` are those of the pods.
    fn held(&self, resource: Resource, ids: &BTreeSet<String>) -> u64;
}

impl Kernel {
    /// Acts on the host; a simulated kernel has this result instead.
    fn on_host<T>(&self, simulated: T, act: impl FnOnce() -> T) -> T {
        match self {
            Self::Host => act(),
            Self::Simulated(_) => simulated,
        }
    }

    /// The number of OOM kills in all cgroups.
    pub fn oom_kills(&self) -> io::Result<u64> {
        match self {
            Self::Host => oom_kills(),
            Self::Simulated(simulated) => Ok(simulated.oom_kills()),
        }
    }

    /// How much a holder holds of each of its resources; `ids` are those of the pods, and the
    /// runtime is the one at this socket.
    pub async fn resources(
        &self,
        socket: Option<&Path>,
        holder: Holder,
        ids: &BTreeSet<String>,
    ) -> Result<Vec<(Resource, u64)>, ResourceError> {
        match self {
            Self::Host => {
                let socket = socket.ok_or(ResourceError::NoSocket)?;
                facts::count(&RuntimeProcess::find(socket).await?, holder, ids)
            }
            Self::Simulated(simulated) => {
                let held = |resource| (resource, simulated.held(resource, ids));
                Ok(Resource::of(holder).map(held).collect())
            }
        }
    }

    /// The number of lines in the runtime's log, which the user's command prints; none without a
    /// command. Fails if the command cannot be run, fails, or does not end within `bound`.
    pub async fn log_lines(
        &self,
        command: Option<&str>,
        bound: Duration,
    ) -> Result<u64, CommandError> {
        match (self, command) {
            (Self::Host, Some(command)) => command::lines(command, bound).await,
            (Self::Host, None) => Ok(0),
            (Self::Simulated(simulated), _) => {
                Ok(simulated.held(Resource::LogLines, &BTreeSet::new()))
            }
        }
    }

    /// The remaining processes of containers and sandboxes with these ids.
    pub fn leftovers(&self, ids: &OwnIds) -> Vec<Leftover> {
        self.on_host(Vec::new(), || leftovers::find(ids))
    }

    /// The ids of containers and sandboxes with a shim or monitor whose log path belongs to one of
    /// these runs, and that began after the run did.
    pub fn monitored(&self, runs: &[Owner]) -> OwnIds {
        self.on_host(OwnIds::default(), || leftovers::monitored(runs))
    }

    /// The ids in the names of all cgroups.
    pub fn ids_of_cgroups(&self) -> BTreeSet<String> {
        match (self, Hierarchies::mounted()) {
            (Self::Host, Ok(hierarchies)) => hierarchies.ids(),
            _ => BTreeSet::new(),
        }
    }

    /// Removes the empty cgroups of containers and sandboxes with these ids; returns whether none
    /// is left.
    pub fn remove_empty_cgroups(&self, ids: &OwnIds) -> bool {
        self.on_host(true, || leftovers::remove_cgroups(ids))
    }

    /// The pattern for core dumps, see `core(5)`.
    pub fn core_pattern(&self) -> io::Result<String> {
        self.on_host(Ok("|simulated".to_owned()), || {
            std::fs::read_to_string("/proc/sys/kernel/core_pattern")
        })
    }

    /// Runs the user's shell command, which runs and removes a container outside the CRI. A
    /// simulated kernel always runs such a container as well. Fails if the command cannot be run,
    /// fails, or does not end within `bound`.
    pub async fn run_outside_cri(
        &self,
        command: &str,
        bound: Duration,
    ) -> Result<(), CommandError> {
        command::run(command, bound).await?;
        if let Self::Simulated(simulated) = self {
            simulated.run_outside_cri();
        }
        Ok(())
    }

    /// Ends the runtime at this socket with one of the user's commands, or kills its process if
    /// there is no command for that. Until [`Self::start_runtime`] is called,
    /// [`start_stopped_runtime`] starts it with another. Fails if the command cannot be run or
    /// fails, if the process cannot be found or killed, or if it takes longer than `bound`.
    pub async fn end_runtime(
        &self,
        socket: Option<&Path>,
        commands: &RuntimeCommands,
        how: RuntimeEnd,
        bound: Duration,
    ) -> Result<(), RuntimeEndError> {
        if let Self::Simulated(simulated) = self {
            let takes = simulated.end_runtime(how);
            let end = tokio::time::Instant::now() + takes.min(bound);
            tokio::time::sleep_until(end).await;
            let output = String::new();
            let slow = (takes > bound).then_some(CommandError::Slow { bound, output });
            return slow.map_or(Ok(()), |slow| Err(slow.into()));
        }
        let command = match how {
            RuntimeEnd::Stop => Some(&commands.stop),
            RuntimeEnd::Kill => commands.kill.as_ref(),
        };
        let Some(command) = command else {
            let process = RuntimeProcess::find(socket.ok_or(RuntimeEndError::NoSocket)?).await?;
            runtime_process::note(Some(&commands.start));
            process.kill(bound).await?;
            return Ok(());
        };
        runtime_process::note(Some(&commands.start));
        Ok(command::run(command, bound).await?)
    }

    /// Starts the runtime with the user's command; processes that it leaves running are not killed.
    /// Fails if the command cannot be run, fails, or does not end within `bound`.
    pub async fn start_runtime(&self, command: &str, bound: Duration) -> Result<(), CommandError> {
        match self {
            Self::Host => {
                let started = command::start(command, bound).await;
                runtime_process::note(None);
                started
            }
            Self::Simulated(simulated) => {
                simulated.start_runtime();
                Ok(())
            }
        }
    }

    /// The visible kubelet that uses the runtime at this socket; none for a runtime without one,
    /// which no other process can use, and on a simulated kernel.
    pub fn kubelet(&self, socket: Option<&Path>) -> Option<KubeletProcess> {
        let socket = socket.filter(|_| !self.is_simulated())?;
        let found = kubelets(&FileTree::host(), socket_clients(socket).as_ref());
        found.into_iter().find(|kubelet| kubelet.uses(socket))
    }

    /// Creates the directory for the logs of a run's containers, below the given parent or a
    /// default one; `socket` is that of the runtime. With a simulated kernel none is created, since
    /// nothing is written.
    pub fn make_log_directory(
        &self,
        parent: Option<&Path>,
        run: &RunId,
        socket: Option<&Path>,
    ) -> Result<LogDirectory, LogDirectoryError> {
        match self {
            Self::Host => LogDirectory::make(parent, run, socket),
            Self::Simulated(_) => Ok(LogDirectory::new(parent.unwrap_or(Path::new("/")), run)),
        }
    }
    pub fn is_simulated(&self) -> bool {
        matches!(self, Self::Simulated(_))
    }

    /// Checks whether the runtime can use a cgroup of ours for a pod, by the cgroup of this
    /// sandbox's process.
    pub fn check_pod_cgroups(&self, sandbox: &OwnId) -> Result<(), CgroupError> {
        self.on_host(Ok(()), || {
            let held = container_process::find(sandbox)?;
            Hierarchies::mounted()?.check_visible(held.number(), &held.cgroups())
        })
    }

    /// Creates a cgroup with a memory limit and without swap.
    pub fn make_cgroup(&self, cgroup: &PodCgroup, memory_bytes: u64) -> Result<(), CgroupError> {
        self.on_host(Ok(()), || {
            Hierarchies::mounted()?.make(cgroup, memory_bytes)
        })
    }

    /// Checks that a sandbox's own process is in this cgroup.
    pub fn is_in_cgroup(&self, cgroup: &PodCgroup, sandbox: &OwnId) -> Result<(), CgroupError> {
        self.on_host(Ok(()), || {
            let cgroups = container_process::find(sandbox)?.cgroups();
            let is_in = Hierarchies::mounted()?.contains(cgroup, &cgroups);
            let elsewhere = || CgroupError::Elsewhere(cgroups);
            is_in.then_some(()).ok_or_else(elsewhere)
        })
    }

    /// Removes a cgroup that a run of this suite has created, if it is empty.
    pub fn remove_cgroup(&self, cgroup: &PodCgroup) -> Result<(), CgroupError> {
        self.on_host(Ok(()), || Hierarchies::mounted()?.remove(cgroup))
    }

    /// The cgroups that runs of this suite have left on this host.
    pub fn cgroups(&self) -> BTreeSet<PodCgroup> {
        self.on_host(BTreeSet::new(), || {
            Hierarchies::mounted().map_or_else(|_| BTreeSet::new(), |it| it.list_own())
        })
    }

    /// Facts about the host; none for a simulated kernel.
    pub fn host(&self) -> Option<Host> {
        self.on_host(None, || Some(facts::host()))
    }
}

/// The number of OOM kills since boot, in all cgroups. Fails if `/proc/vmstat` cannot be read or
/// lacks the count, as under some sandboxed kernels.
fn oom_kills() -> io::Result<u64> {
    let vmstat = std::fs::read_to_string("/proc/vmstat")?;
    vmstat
        .lines()
        .find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "/proc/vmstat has no oom_kill line"))
}

/// The name of this host, which a pod on the host's network shares; empty if it cannot be read.
pub fn name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    name.unwrap_or_default().trim().to_owned()
}

/// Identifies this process uniquely, even if the pid is reused: pid and start time.
pub fn this_process() -> String {
    let pid = std::process::id();
    let began = container_process::began(Path::new("/proc/self"));
    format!("{pid}-{}", began.unwrap_or(BootTicks::NEVER))
}

/// Raises the soft limit of open files (`RLIMIT_NOFILE`) to this number if it is lower.
pub fn allow_open_files(needed: u64) -> Result<(), u64> {
    let mut limit = getrlimit(Limited::Nofile);
    let allowed = limit.current.unwrap_or(u64::MAX);
    if allowed >= needed {
        return Ok(());
    }
    limit.current = Some(needed);
    setrlimit(Limited::Nofile, limit).map_err(|_| allowed)
}

/// Whether the process identified by [`this_process`] is still running.
pub fn is_alive(process: &str) -> bool {
    let Some((pid, ticks)) = process.split_once('-') else {
        return false;
    };
    let (Ok(pid), Ok(ticks)) = (pid.parse::<u32>(), ticks.parse()) else {
        return false;
    };
    container_process::began(&Path::new("/proc").join(pid.to_string())) == Some(ticks)
}

/// Whether the reading end of this pipe is still open. True for anything other than a pipe.
pub fn is_read(end: &impl AsFd) -> bool {
    let mut watched = [PollFd::new(end, PollFlags::empty())];
    let polled = poll(&mut watched, Some(&Timespec::default()));
    polled.is_err() || !watched[0].revents().contains(PollFlags::ERR)
}

/// The time since an instant, by the monotonic clock.
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
        // A process that another test starts holds a copy of the reader until it executes its
        // program.
        let dropped = now();
        while is_read(&writer) && elapsed(dropped) < Duration::from_secs(60) {
            std::thread::yield_now();
        }
        assert!(!is_read(&writer));
        assert!(is_read(&std::fs::File::open("/dev/null").unwrap()));
    }

    #[test]
    fn the_kernel_counts_oom_kills() {
        assert!(oom_kills().is_ok());
    }
}
