//! The objects on a node that runs have made, and foreign ones: sandboxes, and containers, with
//! those whose sandbox is gone, which the removal of no sandbox reaches.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::removals::{kill, remove, remove_all};
use super::{Sweep, SweepError, ask, listed, owner_of_image};
use crate::drive::recording_client::RecordingClient;
use crate::drive::session::{KUBELET_LABELS, NAMESPACE, PROCESS_LABEL, RUN_LABEL, UID_IN_NAME};
use crate::history::{
    ContainerId, ContainerListing, Labels, Reply, Request, RunId, SandboxId, SandboxListing,
    SandboxState,
};
use crate::host;
use crate::host::{Kernel, LogDirectory, OwnIds, Owner, is_uuid};

/// The run that made a sandbox. Its labels alone prove nothing, as anyone may give them to a pod:
/// name, namespace and UID in its metadata must be the labelled ones.
pub(super) fn owner_of_sandbox(sandbox: &SandboxListing, made: &OwnIds) -> Option<Owner> {
    let owner = owner_of(&sandbox.labels, made.contains(sandbox.id.as_str()))?;
    let pod = sandbox.metadata.as_ref()?;
    let given = [&*pod.name, &*pod.namespace, pod.uid.as_str()];
    let labelled = KUBELET_LABELS.map(|label| sandbox.labels.get(label).map(|value| &**value));
    (labelled == given.map(Some)).then_some(owner)
}

/// The run that made a sandbox or container with these labels: a pod of a run has the namespace of
/// the suite and a name that ends with the beginning of its UID. Only one that a call of the run is
/// known to have made may lack the UID, as a case leaves it out.
fn owner_of(labels: &Labels, is_made: bool) -> Option<Owner> {
    let value = |label| labels.get(label).map(|value| &**value);
    let [name, namespace, uid] = KUBELET_LABELS.map(value);
    let (name, uid) = (name?, uid?);
    let is_without_uid = is_made && uid.is_empty();
    let is_named = is_uuid(uid) && name.ends_with(&format!("-{}", &uid[..UID_IN_NAME]));
    let owner = Owner::parse(value(RUN_LABEL)?, value(PROCESS_LABEL)?);
    owner.filter(|_| (is_named || is_without_uid) && namespace == Some(NAMESPACE))
}

/// The ids of all sandboxes and containers that the runtime lists.
pub async fn listed_ids(client: &RecordingClient) -> Result<BTreeSet<String>, SweepError> {
    let sandboxes = listed(client, None).await?.into_iter();
    let sandboxes = sandboxes.map(|sandbox| sandbox.id.to_string());
    let containers = containers(client).await.unwrap_or_default().into_iter();
    let containers = containers.map(|container| container.id.to_string());
    Ok(sandboxes.chain(containers).collect())
}

/// The leftovers of runs that have ended, a line each: sandboxes, containers whose sandbox is gone,
/// images, cgroups, and log directories below `/var/log` of a root directory. Nothing is changed. A
/// run on another runtime than that at this socket is named with its own.
pub async fn list_leftovers(
    client: &RecordingClient,
    socket: Option<&Path>,
    root: &Path,
) -> Result<Vec<String>, SweepError> {
    let mut found = Vec::new();
    let directories = LogDirectory::found_inside(root);
    let records: Vec<_> = directories.iter().map(LogDirectory::records).collect();
    let made: OwnIds = records.iter().flat_map(|it| it.made.iter()).collect();
    for sandbox in listed(client, None).await? {
        let owner = owner_of_sandbox(&sandbox, &made);
        if owner.is_some_and(|owner| !host::is_alive(owner.process())) {
            found.push(format!("sandbox {}", sandbox.id));
        }
    }
    match orphans(client, None, &made).await {
        Ok(orphans) => {
            let orphans = orphans.into_iter();
            found.extend(orphans.map(|id| format!("container {id}, whose sandbox is gone")));
        }
        Err(fault) => found.push(format!(
            "perhaps containers, which cannot be listed: {fault}"
        )),
    }
    if let Reply::Images(images) = ask(client, Request::ListImages).await? {
        let tags = images.iter().flat_map(|image| &image.tags);
        let is_dead = |owner: Owner| !host::is_alive(owner.process());
        let dead = tags.filter(|tag| owner_of_image(tag).is_some_and(is_dead));
        found.extend(dead.map(|tag| format!("image {tag}")));
    }
    let (mut elsewhere, mut ended) = (BTreeMap::new(), Vec::new());
    for (logs, records) in directories.iter().zip(records) {
        let owner = logs.owner();
        if host::is_alive(owner.process()) {
            continue;
        }
        if let (false, Some(other)) = (records.are_of(socket), &records.socket) {
            let of = format!(" of a run on unix://{}", other.display());
            elsewhere.insert(owner.run().to_owned(), of);
        } else {
            ended.push(owner.clone());
        }
        let of = elsewhere.get(owner.run()).map_or("", String::as_str);
        found.push(format!("log directory {}{of}", logs.path().display()));
    }
    found.extend(host::unexplained_shims(&ended, &listed_ids(client).await?));
    let cgroups = Kernel::Host.cgroups().into_iter();
    let dead = cgroups.filter(|cgroup| !host::is_alive(cgroup.owner().process()));
    found.extend(dead.map(|cgroup| {
        let of = elsewhere.get(cgroup.owner().run());
        format!("cgroup {cgroup}{}", of.map_or("", String::as_str))
    }));
    Ok(found)
}

/// Sandboxes on the node that no run of this suite has made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForeignPods {
    pub all: usize,
    /// Those of them that are ready and have the labels that a kubelet gives.
    pub kubelets: BTreeSet<SandboxId>,
}

/// The sandboxes on the node that no run of this suite has made.
pub async fn foreign_pods(client: &RecordingClient) -> Result<ForeignPods, SweepError> {
    let listed = listed(client, None).await?;
    let made = client.made();
    let is_foreign = |sandbox: &&SandboxListing| owner_of_sandbox(sandbox, &made).is_none();
    let is_kubelets = |sandbox: &&SandboxListing| {
        let labelled = KUBELET_LABELS
            .iter()
            .all(|label| sandbox.labels.contains_key(*label));
        labelled && sandbox.state == SandboxState::Ready
    };
    let foreign = listed.iter().filter(is_foreign);
    Ok(ForeignPods {
        all: foreign.clone().count(),
        kubelets: foreign
            .filter(is_kubelets)
            .map(|sandbox| sandbox.id.clone())
            .collect(),
    })
}

pub(super) async fn containers(
    client: &RecordingClient,
) -> Result<Vec<ContainerListing>, SweepError> {
    let all = Request::containers(None, Labels::new());
    match ask(client, all).await? {
        Reply::Containers(listed) => Ok(listed),
        _ => Ok(Vec::new()),
    }
}

/// The containers of this run, or of all runs that no longer go on, whose sandbox is not listed. A
/// runtime leaves one where a sandbox is removed while a container is created in it.
async fn orphans(
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
    let removals = orphans.iter().cloned().map(|id| {
        let client = client.clone();
        async move {
            let removed = remove_orphan(&client, &id).await;
            (id, removed)
        }
    });
    remove_all(removals, |(id, removed)| match removed {
        Ok(()) => done.removed("container", id),
        Err(reason) => {
            let failure = format!("container {id}, whose sandbox is gone: {reason}");
            done.failures.push(failure);
        }
    })
    .await;
    orphans
}

/// Removes such a container; returns why it stays. CRI-O reads the sandbox of a container without
/// looking whether there is one, in `container_stop.go` and `container_remove.go` of 1.36.3.
async fn remove_orphan(client: &RecordingClient, id: &ContainerId) -> Result<(), String> {
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
    let removed = remove(client, calls).await;
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
    pub(super) fn new(
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
