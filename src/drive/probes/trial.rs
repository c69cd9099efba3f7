//! Containers and sandboxes that a probe runs to look at them. Leftovers are swept at the end of
//! the run.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use crate::drive::session::Session;
use crate::history::{ContainerId, ContainerSpec, Reply, Request, SandboxId, SandboxSpec};
use crate::host::Monitored;
use crate::workload::Workload;

/// A container that runs, in the pod of the run's markers.
pub(super) struct TrialContainer<'s> {
    session: &'s Session,
    pub(super) id: ContainerId,
    pod: (SandboxId, Arc<SandboxSpec>),
}

impl<'s> TrialContainer<'s> {
    /// Runs one of this name.
    pub(super) async fn run(session: &'s Session, name: &str) -> Result<Self, String> {
        let pod = session.marker_pod().await;
        let pod = pod.map_err(|fault| fault.to_string())?;
        let spec = session.container_spec((&pod.0, &pod.1), name, 0, &Workload::UntilTerm);
        Self::run_as(session, pod, spec).await
    }

    /// Runs one from the checkpoint at this place in the pod of this one, under this name.
    pub(super) async fn restore(&self, name: &str, location: String) -> Result<Self, String> {
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
        if let Err(fault) = session.call(None, start).await {
            trial.end().await;
            return Err(format!("the trial container cannot be started: {fault}"));
        }
        Ok(trial)
    }

    /// Makes a checkpoint of it; returns where it is.
    pub(super) async fn checkpoint(&self) -> Result<String, String> {
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
    pub(super) async fn end(self) {
        let location = self.session.checkpoint_location(&self.id);
        self.session.options().kernel.remove_checkpoint(&location);
        let stop = Request::StopContainer {
            container: self.id.clone(),
            grace: Duration::ZERO,
        };
        let _ = self.session.call(None, stop).await;
        let remove = Request::RemoveContainer(self.id);
        let _ = self.session.call(None, remove).await;
    }
}

/// Looks at a trial container of this name while it runs.
pub(super) async fn look_at_container<E: Display>(
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

pub(super) async fn run_sandbox(session: &Session, spec: SandboxSpec) -> Result<SandboxId, String> {
    match session
        .call(None, Request::RunSandbox(Arc::new(spec)))
        .await
    {
        Ok(Reply::Sandbox(sandbox)) => Ok(sandbox),
        Ok(_) => Err("RunPodSandbox was answered by something else".to_owned()),
        Err(fault) => Err(fault.to_string()),
    }
}

pub(super) async fn end_sandbox(session: &Session, sandbox: SandboxId) {
    let stop = Request::StopSandbox(sandbox.clone());
    let _ = session.call(None, stop).await;
    let _ = session.call(None, Request::RemoveSandbox(sandbox)).await;
}
