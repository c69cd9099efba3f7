//! What a runtime and its node are capable of, measured when a run begins, and only what the run's
//! cases need: one file for each need.

mod broadcast;
mod cgroup_v2;
mod checkpoint;
mod clock_steps;
mod container_pid;
mod core_pipe;
mod faulty_handler;
mod handlers;
mod host_pid;
mod memory_limit;
mod monitor;
mod network;
mod no_events;
mod outside_cri;
mod pod_cgroup;
mod restore;
mod runtime_kill;
mod runtime_log;
mod runtime_process;
mod runtime_restart;
mod small_disk;
mod stop_signal;
mod streamed_lists;
mod timestamp;
mod trial_container;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use super::session::Session;
use super::stream_error::StreamError;
use crate::case::{Case, Need};
use crate::history::{FanOut, ProbedCapabilities, Reply, Request, RuntimeStatus};
use crate::host::RuntimeCommands;

pub(super) use runtime_restart::may_restart;

/// Why a runtime, or its node, does not meet a need.
#[derive(Debug)]
enum Unavailable {
    /// It does not have it, or this cannot be measured; with the reason for people.
    Lack(String),
    /// The event stream, which shows it, cannot be relied on.
    Stream(StreamError),
}

impl Unavailable {
    fn because(lack: &str) -> Self {
        Self::Lack(lack.to_owned())
    }
}

impl From<String> for Unavailable {
    fn from(lack: String) -> Self {
        Self::Lack(lack)
    }
}

impl From<StreamError> for Unavailable {
    fn from(fault: StreamError) -> Self {
        Self::Stream(fault)
    }
}

/// The results of the probes of a session.
#[derive(Debug, Default)]
pub(super) struct ProbeResults {
    /// Of what was measured: why it is not available, unless it is.
    lacks: OnceLock<BTreeMap<Need, Option<String>>>,
    /// Why there is no event stream, if the session does without.
    no_events: OnceLock<String>,
    stop_signal_sent: OnceLock<bool>,
}

impl ProbeResults {
    fn set_stop_signal_sent(&self, sent: bool) {
        let _ = self.stop_signal_sent.set(sent);
    }
}

async fn probe(need: Need, session: &Session) -> Result<(), Unavailable> {
    match need {
        Need::Broadcast => broadcast::probe_broadcast(session).await,
        Need::Checkpoint => checkpoint::probe_checkpoint(session).await,
        Need::Restore => restore::probe_restore(session).await,
        Need::CgroupV2 => cgroup_v2::probe_cgroup_v2(session),
        Need::ClockSteps => clock_steps::probe_clock_steps(session),
        Need::ContainerPid => container_pid::probe_container_pid(session).await,
        Need::CorePipe => core_pipe::probe_core_pipe(session),
        Need::FaultyHandler => faulty_handler::probe_faulty_handler(session),
        Need::Handlers => handlers::probe_handlers(session).await,
        Need::HostPid => host_pid::probe_host_pid(session).await,
        Need::MemoryLimit => memory_limit::probe_memory_limit(session),
        Need::Monitor => monitor::probe_monitor(session).await,
        Need::Network => network::probe_network(session).await,
        Need::NoEvents => no_events::probe_no_events(),
        Need::OutsideCri => outside_cri::probe_outside_cri(session),
        Need::PodCgroup => pod_cgroup::probe_pod_cgroup(session).await,
        Need::RuntimeKill => runtime_kill::probe_runtime_kill(session).await,
        Need::RuntimeLog => runtime_log::probe_runtime_log(session).await,
        Need::RuntimeProcess => runtime_process::probe_runtime_process(session).await,
        Need::RuntimeRestart => runtime_restart::probe_runtime_restart(session).await,
        Need::SmallDisk => small_disk::probe_small_disk(session).await,
        Need::StopSignal => stop_signal::probe_stop_signal(session).await,
        Need::StreamedLists => streamed_lists::probe_streamed_lists(session).await,
        Need::Timestamp => timestamp::probe_timestamp(session).await,
    }
}

async fn runtime_status(session: &Session) -> Result<RuntimeStatus, String> {
    match session.call(None, Request::RuntimeStatus).await {
        Ok(Reply::RuntimeStatus(status)) => Ok(status),
        Ok(_) => Err("Status was answered by something else".to_owned()),
        Err(fault) => Err(format!("Status failed: {fault}")),
    }
}

impl Session {
    /// Measures whether the runtime and its node meet these needs.
    pub async fn probe_needs(&self, needs: &BTreeSet<Need>) -> Result<(), StreamError> {
        let mut lacks = BTreeMap::new();
        for need in needs {
            let lack = match probe(*need, self).await {
                Ok(()) => None,
                Err(Unavailable::Lack(lack)) => Some(lack),
                Err(Unavailable::Stream(fault)) => return Err(fault),
            };
            lacks.insert(*need, lack);
        }
        let _ = self.probed.lacks.set(lacks);
        Ok(())
    }

    /// Goes on without an event stream, for the cases alone that are about having none.
    pub fn continue_without_events(&self, reason: String) {
        let met = BTreeMap::from([(Need::NoEvents, None)]);
        let _ = self.probed.lacks.set(met);
        let _ = self.probed.no_events.set(reason);
    }

    /// Why there is no event stream, if the session does without.
    pub fn no_events(&self) -> Option<&str> {
        self.probed.no_events.get().map(String::as_str)
    }

    /// Why a case with these needs cannot run, if that was measured.
    pub fn lack(&self, needs: &[Need]) -> Option<String> {
        if let Some(reason) = self.no_events()
            && !needs.contains(&Need::NoEvents)
        {
            return Some(reason.to_owned());
        }
        let lacks = self.probed.lacks.get()?;
        needs.iter().find_map(|need| lacks.get(need)?.clone())
    }

    /// Which of several subscribers get an event, if that was measured.
    pub fn fan_out(&self) -> Option<FanOut> {
        let lack = self.probed.lacks.get()?.get(&Need::Broadcast)?;
        Some(
            lack.as_ref()
                .map_or(FanOut::Broadcast, |_| FanOut::SingleConsumer),
        )
    }

    /// What else was measured.
    pub fn capabilities(&self) -> ProbedCapabilities {
        let has = |need| Some(self.probed.lacks.get()?.get(&need)?.is_none());
        ProbedCapabilities {
            events: has(Need::NoEvents).map(|none| !none),
            streamed_lists: has(Need::StreamedLists),
            handlers: has(Need::Handlers),
            network: has(Need::Network),
            stop_signal: self.probed.stop_signal_sent.get().copied(),
        }
    }

    /// The commands by which these cases stop and start the host's runtime, if any of them does.
    pub fn restarts<'a>(
        &self,
        mut cases: impl Iterator<Item = &'a Case>,
    ) -> Option<RuntimeCommands> {
        let options = self.options();
        let restarts =
            cases.any(|case| case.restarts_runtime() && self.lack(&case.needs).is_none());
        let commands = options.asked.hooks.runtime_commands();
        commands.filter(|_| restarts && !options.kernel.is_simulated())
    }
}
