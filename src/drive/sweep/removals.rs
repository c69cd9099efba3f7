//! The removal of objects by calls of the CRI: several at a time, each tried again while it is
//! refused.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::drive::recording_client::RecordingClient;
use crate::history::{CallFault, ContainerId, Request, SandboxId, StatusCode};
use crate::limits;

/// Removes objects, up to [`limits::REMOVALS_AT_ONCE`] at a time, and hands on the result of each
/// as soon as it ends.
pub(super) async fn remove_all<T: Send + 'static>(
    removals: impl Iterator<Item = impl Future<Output = T> + Send + 'static>,
    mut ended: impl FnMut(T),
) {
    let mut removals = removals.fuse();
    let mut running = JoinSet::new();
    loop {
        while running.len() < limits::REMOVALS_AT_ONCE
            && let Some(removal) = removals.next()
        {
            running.spawn(removal);
        }
        match running.join_next().await {
            Some(Ok(removed)) => ended(removed),
            Some(Err(fault)) if fault.is_panic() => std::panic::resume_unwind(fault.into_panic()),
            Some(Err(_)) => {}
            None => return,
        }
    }
}

/// Stops these containers, and stops and removes their sandbox.
pub(super) async fn remove_sandbox(
    client: RecordingClient,
    id: SandboxId,
    containers: Vec<ContainerId>,
) -> (SandboxId, Result<(), CallFault>) {
    for container in &containers {
        // Where that fails, the removal of the sandbox fails, too.
        let _ = client.brief_call(None, kill(container)).await;
    }
    let removed = remove(&client, removal_of_sandbox(&id)).await;
    (id, removed)
}

/// Stops a container without a grace period, which a runtime would else choose for it: the removal
/// of a sandbox has none to give.
pub(super) fn kill(container: &ContainerId) -> Request {
    Request::StopContainer {
        container: container.clone(),
        grace: Duration::ZERO,
    }
}

/// The calls that stop a sandbox and remove it.
fn removal_of_sandbox(id: &SandboxId) -> [Request; 2] {
    [
        Request::StopSandbox(id.clone()),
        Request::RemoveSandbox(id.clone()),
    ]
}

/// Stops and removes an object. A refused call is tried again for [`limits::SWEEP_WAIT`]: a
/// container that is being started cannot be removed before that has ended, though its client may
/// have left.
pub(super) async fn remove(
    client: &RecordingClient,
    [stop, remove]: [Request; 2],
) -> Result<(), CallFault> {
    let until = Instant::now() + limits::SWEEP_WAIT;
    let mut pace = tokio::time::interval(limits::SWEEP_PACE);
    loop {
        pace.tick().await;
        // The removal tries the same as a failed stop, and fails then, too.
        let _ = client.brief_call(None, stop.clone()).await;
        match client.brief_call(None, remove.clone()).await {
            Ok(_) => return Ok(()),
            Err(fault) if is_refusal(fault.code) && Instant::now() < until => {}
            Err(fault) => return Err(fault),
        }
    }
}

/// Whether the runtime has heard the call, and would not do it.
fn is_refusal(code: StatusCode) -> bool {
    ![
        StatusCode::UNAVAILABLE,
        StatusCode::DEADLINE_EXCEEDED,
        StatusCode::UNIMPLEMENTED,
    ]
    .contains(&code)
}
