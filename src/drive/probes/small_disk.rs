//! Whether the runtime's monitors of containers write to a small file system.

use super::Unavailable;
use super::container_pid::look_at_container;
use crate::drive::session::Session;

/// Looks at where the monitor of a trial container writes.
pub(super) async fn probe_small_disk(session: &Session) -> Result<(), Unavailable> {
    let kernel = &session.options().kernel;
    let look = look_at_container(session, "monitored", |trial| kernel.check_disk(trial)).await;
    let lack = match look {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(missing)) => missing.to_string(),
        Err(fault) => fault,
    };
    let lack = format!(
        "the runtime's monitors cannot be left without room, as was measured when the run began: \
         {lack}. Mount a small tmpfs there before the runtime starts: on CRI-O's \
         container_exits_dir, or as containerd's state directory"
    );
    Err(lack.into())
}
