//! A container that a probe runs to look at it.

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
    pub(super) pod: (SandboxId, Arc<SandboxSpec>),
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

    pub(super) fn monitored(&self) -> Monitored {
        let client = self.session.client();
        Monitored {
            container: client.own(self.id.as_str()),
            sandbox: client.own(self.pod.0.as_str()),
        }
    }

    /// Ends and removes it. Leftovers are swept at the end of the run.
    pub(super) async fn end(self) {
        let stop = Request::StopContainer {
            container: self.id.clone(),
            grace: Duration::ZERO,
        };
        let _ = self.session.call(None, stop).await;
        let remove = Request::RemoveContainer(self.id);
        let _ = self.session.call(None, remove).await;
    }
}
