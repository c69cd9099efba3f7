//! Whether the containers' processes can be seen on this host.

use super::Unavailable;
use super::trial_container::TrialContainer;
use crate::drive::session::Session;
use crate::host::Monitored;

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
pub(super) async fn look_at_container<T>(
    session: &Session,
    name: &str,
    look: impl FnOnce(&Monitored) -> T,
) -> Result<T, String> {
    let trial = TrialContainer::run(session, name).await?;
    let seen = look(&trial.monitored());
    trial.end().await;
    Ok(seen)
}
