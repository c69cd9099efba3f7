//! The containers that a runtime lists: those in the sandboxes that are removed, and those whose
//! sandbox is gone, which the removal of no sandbox reaches.

use std::collections::BTreeSet;

use tokio::time::Instant;

use super::{Sweep, SweepError, ask, kill, listed, owner_of, remove};
use crate::drive::recording_client::RecordingClient;
use crate::history::{ContainerId, ContainerListing, Labels, Reply, Request, RunId, SandboxId};
use crate::host::OwnIds;
use crate::{host, limits};

pub(super) async fn containers(
    client: &RecordingClient,
) -> Result<Vec<ContainerListing>, SweepError> {
    let all = Request::ListContainers {
        sandbox: None,
        labels: Labels::new(),
    };
    match ask(client, all).await? {
        Reply::Containers(listed) => Ok(listed),
        _ => Ok(Vec::new()),
    }
}

/// The containers of this run, or of all runs that no longer go on, whose sandbox is not listed. A
/// runtime leaves one where a sandbox is removed while a container is created in it.
pub(super) async fn orphans(
    client: &RecordingClient,
    run: Option<&RunId>,
    made: &OwnIds,
) -> Result<Vec<ContainerId>, SweepError> {
    // In this order: a sandbox that is made meanwhile is among the sandboxes.
    let containers = containers(client).await?;
    let sandboxes = listed(client, None).await?;
    let orphans = containers.into_iter().filter(|container| {
        let owner = owner_of(&container.labels, made.contains(container.id.as_str()));
        let is_swept = owner.is_some_and(|owner| match run {
            Some(run) => run.as_str() == owner.run(),
            None => !host::is_alive(owner.process()),
        });
        is_swept && sandboxes.iter().all(|it| it.id != container.sandbox)
    });
    Ok(orphans.map(|container| container.id).collect())
}

/// Removes the containers of this run, or of all runs that no longer go on, whose sandbox is gone;
/// returns them all.
pub(super) async fn sweep_orphans(
    client: &RecordingClient,
    run: Option<&RunId>,
    made: &OwnIds,
    done: &mut Sweep,
) -> Vec<ContainerId> {
    let orphans = orphans(client, run, made).await.unwrap_or_else(|fault| {
        let failure = format!("whether containers are left is unknown: {fault}");
        done.failures.push(failure);
        Vec::new()
    });
    let until = Instant::now() + limits::SWEEP_WAIT;
    for id in &orphans {
        match remove_orphan(client, id, until).await {
            Ok(()) => done.containers.push(id.to_string()),
            Err(reason) => {
                let failure = format!("container {id}, whose sandbox is gone: {reason}");
                done.failures.push(failure);
            }
        }
    }
    orphans
}

/// Removes such a container; returns why it stays. CRI-O reads the sandbox of a container without
/// looking whether there is one, in `container_stop.go` and `container_remove.go` of 1.36.3.
async fn remove_orphan(
    client: &RecordingClient,
    id: &ContainerId,
    until: Instant,
) -> Result<(), String> {
    match client.call(None, Request::Version).await {
        Ok(Reply::Version(version)) if version.runtime_name != "cri-o" => {}
        Ok(_) => {
            let panics = "CRI-O would panic if it were stopped or removed; CRI-O removes it when it \
                          is started anew";
            return Err(panics.to_owned());
        }
        Err(fault) => return Err(format!("Version: {fault}")),
    }
    let calls = [kill(id), Request::RemoveContainer(id.clone())];
    let removed = remove(client, calls, until).await;
    removed.map_err(|fault| fault.to_string())
}

/// The ids of sandboxes and their containers.
#[derive(Debug, Default)]
pub(super) struct Ids {
    pub(super) removed: BTreeSet<String>,
    /// Of sandboxes that the runtime would not remove.
    pub(super) refused: BTreeSet<String>,
}

impl Ids {
    pub(super) fn of(
        sandboxes: &[SandboxId],
        containers: &[ContainerListing],
        is_refused: impl Fn(&SandboxId) -> bool,
    ) -> Self {
        let mut ids = Self::default();
        let own = sandboxes.iter().map(|id| (id.to_string(), id));
        let inside = containers.iter().map(|it| (it.id.to_string(), &it.sandbox));
        let inside = inside.filter(|(_, sandbox)| sandboxes.contains(sandbox));
        for (id, sandbox) in own.chain(inside) {
            if is_refused(sandbox) {
                ids.refused.insert(id);
            } else {
                ids.removed.insert(id);
            }
        }
        ids
    }
}
