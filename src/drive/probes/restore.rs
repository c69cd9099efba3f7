//! Whether the runtime creates containers from checkpoints.

use super::Unavailable;
use super::checkpoint::checkpoint;
use super::trial_container::TrialContainer;
use crate::drive::session::Session;

/// Restores a trial container beside the one that its checkpoint was made of.
pub(super) async fn probe_restore(session: &Session) -> Result<(), Unavailable> {
    let trial = TrialContainer::run(session, "original").await?;
    let restored = async {
        let location = checkpoint(session, &trial).await?;
        trial.restore("restored", location).await
    };
    let restored = restored.await;
    trial.end().await;
    match restored {
        Ok(restored) => {
            restored.end().await;
            Ok(())
        }
        Err(fault) => Err(format!(
            "the runtime restores no container from a checkpoint, as was measured when the run \
             began: {fault}. containerd 2.3 does with enable_experimental_restore_via_create = true, \
             and 2.4 no more"
        )
        .into()),
    }
}
