//! Whether the runtime's monitors of containers can be found on this host.

use super::Unavailable;
use super::container_pid::look_at_container;
use crate::drive::session::Session;

/// Looks for the monitor of a trial container.
pub(super) async fn probe_monitor(session: &Session) -> Result<(), Unavailable> {
    let kernel = &session.options().kernel;
    let look = look_at_container(session, "monitored", |trial| kernel.check_monitor(trial)).await;
    let missing = match look {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(missing)) => missing.to_string(),
        Err(fault) => fault,
    };
    let lack = format!(
        "the runtime's monitors of containers are out of reach, as was measured when the run \
         began: {missing}. Run the suite as root in the host's pid namespace, on the runtime's \
         node; containerd-shim and conmon are known"
    );
    Err(lack.into())
}
