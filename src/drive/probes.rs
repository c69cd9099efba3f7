//! What a runtime and its node are capable of, measured when a run begins, and only what the run's
//! cases need. A probe returns what is missing, and how to have it.

mod broadcast;
mod node;
mod runtime;
mod trial;
mod user;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::sync::OnceLock;

use super::session::Session;
use super::stream_error::StreamError;
use crate::case::{Case, Need};
use crate::history::{FanOut, ProbedCapabilities};
use crate::host::RuntimeCommands;

pub(super) use user::may_restart;

/// Why a runtime, or its node, does not meet a need.
#[derive(Debug)]
enum Unavailable {
    /// It does not have it, or this cannot be measured; with the reason for people.
    Lack(String),
    /// The event stream, which shows it, cannot be relied on.
    Stream(StreamError),
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
        Need::Broadcast => broadcast::broadcast(session).await?,
        Need::HostPid => node::host_pid(session).await?,
        Need::PodCgroup => node::pod_cgroup(session).await?,
        Need::MemoryLimit => node::memory_limit(session)?,
        Need::CgroupV2 => node::cgroup_v2(session)?,
        Need::CorePipe => node::core_pipe(session)?,
        Need::ContainerPid => node::container_pid(session).await?,
        Need::Monitor => node::monitor(session).await?,
        Need::SmallDisk => node::small_disk(session).await?,
        Need::Handlers => runtime::handlers(session).await?,
        Need::Network => runtime::network(session).await?,
        Need::StreamedLists => runtime::streamed_lists(session).await?,
        Need::Timestamp => runtime::timestamp(session).await?,
        Need::NoEvents => runtime::no_events()?,
        Need::Checkpoint => runtime::checkpoint(session).await?,
        Need::Restore => runtime::restore(session).await?,
        Need::StopSignal => runtime::stop_signal(session).await?,
        Need::ClockSteps => user::clock_steps(session)?,
        Need::FaultyHandler => user::faulty_handler(session)?,
        Need::OutsideCri => user::outside_cri(session)?,
        Need::RuntimeLog => user::runtime_log(session).await?,
        Need::RuntimeProcess => user::runtime_process(session).await?,
        Need::RuntimeKill => user::runtime_kill(session).await?,
        Need::RuntimeRestart => may_restart(session).await?,
    }
    Ok(())
}

/// Explains the lack that a probe has found, and how to mend it.
fn measured(found: Result<(), impl Display>, lack: &str, advice: &str) -> Result<(), String> {
    let explain = |fault| format!("{lack}, as was measured when the run began: {fault}. {advice}");
    found.map_err(explain)
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
