//! Capabilities of a runtime and its node, measured when a run begins, as far as its cases need
//! them. A probe returns the reason for which a need is not met, and how to meet it.

mod node;
mod runtime;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::options::ListStreaming;
use super::session::Session;
use super::stream_error::StreamError;
use crate::case::{Case, Need};
use crate::history::{
    ContainerId, ContainerSpec, FanOut, ProbedCapabilities, Reply, Request, SandboxId, SandboxSpec,
};
use crate::host::{Monitored, RuntimeCommands};
use crate::workload::Workload;

pub(super) use node::may_restart;

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
    /// The measured needs: why each is not met; none if it is.
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
        Need::Broadcast => runtime::broadcast(session).await?,
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
        Need::ClockSteps => node::clock_steps(session)?,
        Need::FaultyHandler => node::faulty_handler(session)?,
        Need::OutsideCri => node::outside_cri(session)?,
        Need::RuntimeLog => node::runtime_log(session).await?,
        Need::RuntimeProcess => node::runtime_process(session).await?,
        Need::RuntimeKill => node::runtime_kill(session).await?,
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
    /// Measures whether the runtime and its node meet these needs. From then on, lists are streamed
    /// if the user asks for it, as far as the runtime can.
    pub async fn probe_needs(&mut self, needs: &BTreeSet<Need>) -> Result<(), StreamError> {
        let list_streaming = self.options().asked.list_streaming;
        let lists = (list_streaming != ListStreaming::Off).then_some(Need::StreamedLists);
        let needs: BTreeSet<Need> = needs.iter().copied().chain(lists).collect();
        let mut lacks = BTreeMap::new();
        for need in needs {
            let lack = match probe(need, self).await {
                Ok(()) => None,
                Err(Unavailable::Lack(lack)) => Some(lack),
                Err(Unavailable::Stream(fault)) => return Err(fault),
            };
            lacks.insert(need, lack);
        }
        let _ = self.probed.lacks.set(lacks);
        if self.lack(&[Need::StreamedLists]).is_none() {
            self.client.list_streaming = list_streaming;
        }
        Ok(())
    }

    /// Why lists are not streamed though the user asks for it.
    pub fn lists_unstreamed(&self) -> Option<String> {
        let asked = self.options().asked.list_streaming != ListStreaming::Off;
        let lack = self.lack(&[Need::StreamedLists]).filter(|_| asked);
        lack.map(|lack| format!("lists are not streamed: {lack}"))
    }

    /// Continues without an event stream, for the cases alone that are about its absence.
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

    /// The other measured capabilities.
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

/// A container that runs, in the pod of the run's markers.
struct TrialContainer<'s> {
    session: &'s Session,
    id: ContainerId,
    pod: (SandboxId, Arc<SandboxSpec>),
}

impl<'s> TrialContainer<'s> {
    /// Runs one of this name.
    async fn run(session: &'s Session, name: &str) -> Result<Self, String> {
        let pod = session.marker_pod().await;
        let pod = pod.map_err(|fault| fault.to_string())?;
        let spec = session.container_spec((&pod.0, &pod.1), name, 0, &Workload::UntilTerm);
        Self::run_as(session, pod, spec).await
    }

    /// Runs one from the checkpoint at this place in the pod of this one, under this name.
    async fn restore(&self, name: &str, location: String) -> Result<Self, String> {
        let (sandbox, pod) = &self.pod;
        let workload = Workload::UntilTerm;
        let spec = self
            .session
            .container_spec((sandbox, pod), name, 0, &workload);
        let spec = ContainerSpec {
            image: location,
            ..spec
        };
        Self::run_as(self.session, self.pod.clone(), spec).await
    }

    async fn run_as(
        session: &'s Session,
        pod: (SandboxId, Arc<SandboxSpec>),
        spec: ContainerSpec,
    ) -> Result<Self, String> {
        let create = Request::CreateContainer(Arc::new(spec));
        let refused = |fault| format!("no trial container can be made: {fault}");
        let Reply::Container(id) = session.call(None, create).await.map_err(refused)? else {
            return Err("CreateContainer was answered by something else".to_owned());
        };
        let trial = Self { session, id, pod };
        let start = Request::StartContainer(trial.id.clone());
        if let Err(fault) = session.client().brief_call(None, start).await {
            trial.end().await;
            return Err(format!("the trial container cannot be started: {fault}"));
        }
        Ok(trial)
    }

    /// Makes a checkpoint of it; returns where it is.
    async fn checkpoint(&self) -> Result<String, String> {
        let location = self.session.checkpoint_location(&self.id);
        let request = Request::CheckpointContainer {
            container: self.id.clone(),
            location: location.clone(),
        };
        let made = self.session.call(None, request).await;
        made.map_err(|fault| fault.to_string())?;
        Ok(location)
    }

    /// Ends and removes it, and its checkpoint.
    async fn end(self) {
        let location = self.session.checkpoint_location(&self.id);
        self.session.options().kernel.remove_checkpoint(&location);
        let stop = Request::StopContainer {
            container: self.id.clone(),
            grace: Duration::ZERO,
        };
        let _ = self.session.client().brief_call(None, stop).await;
        let remove = Request::RemoveContainer(self.id);
        let _ = self.session.client().brief_call(None, remove).await;
    }
}

/// Looks at a trial container of this name while it runs.
async fn look_at_container<E: Display>(
    session: &Session,
    name: &str,
    look: impl FnOnce(&Monitored) -> Result<(), E>,
) -> Result<(), String> {
    let trial = TrialContainer::run(session, name).await?;
    let client = session.client();
    let seen = look(&Monitored {
        container: client.own(trial.id.as_str()),
        sandbox: client.own(trial.pod.0.as_str()),
    });
    trial.end().await;
    seen.map_err(|fault| fault.to_string())
}

async fn run_sandbox(session: &Session, spec: SandboxSpec) -> Result<SandboxId, String> {
    match session
        .call(None, Request::RunSandbox(Arc::new(spec)))
        .await
    {
        Ok(Reply::Sandbox(sandbox)) => Ok(sandbox),
        Ok(_) => Err("RunPodSandbox was answered by something else".to_owned()),
        Err(fault) => Err(fault.to_string()),
    }
}

async fn end_sandbox(session: &Session, sandbox: SandboxId) {
    let stop = Request::StopSandbox(sandbox.clone());
    let _ = session.call(None, stop).await;
    let _ = session.call(None, Request::RemoveSandbox(sandbox)).await;
}
