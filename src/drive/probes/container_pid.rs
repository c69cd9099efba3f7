//! Whether the containers' processes can be seen on this host.

use std::sync::Arc;
use std::time::Duration;

use super::Unavailable;
use crate::drive::session::Session;
use crate::history::{Reply, Request};
use crate::host::Monitored;
use crate::workload::Workload;

/// Looks for the process of a trial container.
pub(super) async fn probe_container_pid(session: &Session) -> Result<(), Unavailable> {
    let kernel = &session.options().kernel;
    let look = |trial: &Monitored| kernel.has_process(&trial.container);
    let missing = match look_at_container(session, "in-sight", look).await {
        Ok(Ok(true)) => return Ok(()),
        Ok(Ok(false)) => "no process of this host is in a cgroup of one that runs".to_owned(),
        Ok(Err(fault)) => fault.to_string(),
        Err(fault) => fault,
    };
    let lack = format!(
        "the processes of containers are out of sight, as was measured when the run began: \
         {missing}. Run the suite as root in the host's pid namespace, on the runtime's node"
    );
    Err(lack.into())
}

/// Looks at a trial container of this name while it runs.
///
/// # Errors
/// Why none can be run.
pub(super) async fn look_at_container<T>(
    session: &Session,
    name: &str,
    look: impl FnOnce(&Monitored) -> T,
) -> Result<T, String> {
    let (sandbox, pod) = session
        .marker_pod()
        .await
        .map_err(|fault| fault.to_string())?;
    let spec = session.container_spec((&sandbox, &pod), name, 0, &Workload::UntilTerm);
    let create = Request::CreateContainer(Arc::new(spec));
    let refused = |fault| format!("no trial container can be made: {fault}");
    let Reply::Container(container) = session.call(None, create).await.map_err(refused)? else {
        return Err("CreateContainer was answered by something else".to_owned());
    };
    let start = Request::StartContainer(container.clone());
    let failed = |fault| format!("the trial container cannot be started: {fault}");
    session.call(None, start).await.map_err(failed)?;
    let seen = look(&Monitored {
        container: container.to_string(),
        sandbox: sandbox.to_string(),
    });
    let stop = Request::StopContainer {
        container: container.clone(),
        grace: Duration::ZERO,
    };
    // Leftovers are swept at the end of the run.
    let _ = session.call(None, stop).await;
    let _ = session
        .call(None, Request::RemoveContainer(container))
        .await;
    Ok(seen)
}
