//! Whether the runtime makes checkpoints of containers.

use super::Unavailable;
use super::trial_container::TrialContainer;
use crate::drive::session::Session;
use crate::history::Request;

/// Makes a checkpoint of a trial container.
pub(super) async fn probe_checkpoint(session: &Session) -> Result<(), Unavailable> {
    let trial = TrialContainer::run(session, "checkpointed").await?;
    let made = checkpoint(session, &trial).await;
    remove_checkpoint(session, &trial);
    trial.end().await;
    made.map(drop).map_err(|fault| {
        format!(
            "the runtime makes no checkpoint of a container, as was measured when the run began: \
             {fault}. It needs CRIU on its PATH, and CRI-O also enable_criu_support = true"
        )
        .into()
    })
}

/// Makes a checkpoint of a trial container; returns where it is.
pub(super) async fn checkpoint(
    session: &Session,
    trial: &TrialContainer<'_>,
) -> Result<String, String> {
    let location = session.checkpoint_location(&trial.id);
    let request = Request::CheckpointContainer {
        container: trial.id.clone(),
        location: location.clone(),
    };
    let made = session.call(None, request).await;
    made.map_err(|fault| fault.to_string())?;
    Ok(location)
}

pub(super) fn remove_checkpoint(session: &Session, trial: &TrialContainer<'_>) {
    let location = session.checkpoint_location(&trial.id);
    session.options().kernel.remove_checkpoint(&location);
}
