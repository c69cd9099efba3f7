//! Removing what runs have left behind, found by the label that every run puts on what it makes.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;

use super::leftovers::{self, Ended};
use super::pod_cgroup;
use super::recording_client::RecordingClient;
use super::session::{KUBELET_LABELS, PROCESS_LABEL, RUN_LABEL};
use crate::history::{
    CallFault, ContainerId, Labels, Reply, Request, RunId, SandboxId, SandboxListing, SandboxState,
    StatusCode,
};
use crate::host::{Kernel, LogDirectory};
use crate::workload;
use crate::{host, limits};

/// What a sweep found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// Ids of the sandboxes that were removed, with their containers.
    pub sandboxes: Vec<String>,
    /// References of the images that were removed.
    pub images: Vec<String>,
    /// Names of the cgroups that were removed.
    pub cgroups: Vec<String>,
    /// Paths of the log directories that were removed.
    pub logs: Vec<String>,
    /// Processes that the runtime had left of removed containers and sandboxes, and that are ended.
    pub processes: Vec<String>,
    /// Runs that still go on, and were left alone.
    pub alive: BTreeSet<String>,
    /// What could not be removed, one sentence each.
    pub failures: Vec<String>,
}

/// The runtime could not be asked.
#[derive(Debug, thiserror::Error)]
#[error("{method}: {fault}")]
pub struct SweepError {
    /// The call.
    pub method: &'static str,
    /// What it returned.
    pub fault: CallFault,
}

/// Removes the sandboxes, images and cgroups of one run, or of all runs that no longer go on; but
/// not the sandboxes to keep, nor then the image that they use and what cgroups are left.
///
/// # Errors
/// If the runtime cannot list what it has. What it cannot remove is in the result.
pub async fn sweep(
    (client, kernel): (&RecordingClient, &Kernel),
    run: Option<&RunId>,
    keep: &[SandboxId],
) -> Result<Sweep, SweepError> {
    let mut done = Sweep::default();
    let sandboxes = to_remove(client, run, keep, &mut done).await?;
    let containers = containers(client).await;
    thaw(kernel, &sandboxes, containers.as_deref());
    let mut refused = Vec::new();
    let until = Instant::now() + limits::SWEEP_WAIT;
    for id in &sandboxes {
        let inside = containers.iter().flatten();
        let inside = inside.filter(|(_, sandbox)| sandbox == id);
        for (container, _) in inside {
            kill(client, container).await;
        }
        match remove(client, id, until).await {
            Ok(()) => done.sandboxes.push(id.to_string()),
            // Of a runtime that is gone nothing is known; it is asked again when it is back.
            Err(fault) if fault.code == StatusCode::UNAVAILABLE => {
                done.failures.push(format!("sandbox {id}: {fault}"));
            }
            Err(fault) => refused.push((id.clone(), fault)),
        }
    }
    if !done.failures.is_empty() {
        let refused = refused.iter();
        let failures = refused.map(|(id, fault)| format!("sandbox {id}: {fault}"));
        done.failures.extend(failures);
        return Ok(done);
    }
    let of_refused = |sandbox: &SandboxId| refused.iter().any(|(id, _)| id == sandbox);
    let listed = containers.as_deref().unwrap_or_default();
    let ids = Ids::of(&sandboxes, listed, of_refused);
    retry((client, kernel), &ids.refused, refused, &mut done).await;
    let mut removed = ids.removed;
    // What the runtime does not list any more, or never has; but nothing of what is kept.
    if run.is_some() && (keep.is_empty() || containers.is_some()) {
        removed.extend(client.made());
    }
    if keep.is_empty() || containers.is_some() {
        removed.extend(kernel.monitored(|owner| match run {
            Some(run) => run.as_str() == owner.run(),
            None => !host::is_alive(owner.process()),
        }));
        let kept = Ids::of(keep, listed, |_| false);
        removed.retain(|id| !kept.removed.contains(id));
    }
    end_processes(kernel, &removed, true, &mut done).await;
    if keep.is_empty() {
        sweep_images(client, run, &mut done).await?;
        sweep_cgroups(kernel, run, &mut done).await;
    }
    Ok(done)
}

/// Lets the processes of these sandboxes run on: a run that was killed may have frozen them, or
/// their monitors, without which nothing can be removed.
fn thaw(kernel: &Kernel, sandboxes: &[SandboxId], containers: Option<&[(String, SandboxId)]>) {
    let ids = Ids::of(sandboxes, containers.unwrap_or_default(), |_| false);
    for process in kernel.leftovers(&ids.removed) {
        // One that cannot be continued may still be removed.
        let _ = process.thaw();
    }
    kernel.resume_containers(&ids.removed);
}

/// The sandboxes of one run, or of all runs that no longer go on, but those to keep.
async fn to_remove(
    client: &RecordingClient,
    run: Option<&RunId>,
    keep: &[SandboxId],
    done: &mut Sweep,
) -> Result<Vec<SandboxId>, SweepError> {
    let mut found = Vec::new();
    for sandbox in listed(client, run).await? {
        let Some(owner) = sandbox.labels.get(RUN_LABEL) else {
            continue;
        };
        let process = sandbox.labels.get(PROCESS_LABEL);
        // A runtime that ignores the filter lists the pods of other runs, too.
        if keep.contains(&sandbox.id) || run.is_some_and(|run| run.as_str() != &**owner) {
            continue;
        }
        if run.is_none() && process.is_some_and(|process| host::is_alive(process)) {
            done.alive.insert(owner.to_string());
            continue;
        }
        found.push(sandbox.id);
    }
    Ok(found)
}

/// All containers that the runtime lists, with their sandboxes; nothing if it does not say.
async fn containers(client: &RecordingClient) -> Option<Vec<(String, SandboxId)>> {
    let all = Request::ListContainers {
        sandbox: None,
        labels: Labels::new(),
    };
    match client.call(None, all).await {
        Ok(Reply::Containers(listed)) => {
            let listed = listed.into_iter();
            let ids = listed.map(|container| (container.id.to_string(), container.sandbox));
            Some(ids.collect())
        }
        Ok(_) | Err(_) => None,
    }
}

/// The ids of sandboxes and their containers.
#[derive(Debug, Default)]
struct Ids {
    removed: BTreeSet<String>,
    /// Of sandboxes that the runtime would not remove.
    refused: BTreeSet<String>,
}

impl Ids {
    fn of(
        sandboxes: &[SandboxId],
        containers: &[(String, SandboxId)],
        is_refused: impl Fn(&SandboxId) -> bool,
    ) -> Self {
        let mut ids = Self::default();
        let own = sandboxes.iter().map(|id| (id.to_string(), id));
        let inside = containers.iter().map(|(id, sandbox)| (id.clone(), sandbox));
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

/// Ends the processes of what could not be removed, for they may be in the way, and tries again.
async fn retry(
    (client, kernel): (&RecordingClient, &Kernel),
    ids: &BTreeSet<String>,
    refused: Vec<(SandboxId, CallFault)>,
    done: &mut Sweep,
) {
    let ended = done.processes.len();
    end_processes(kernel, ids, false, done).await;
    let any_ended = done.processes.len() > ended;
    let until = Instant::now() + limits::SWEEP_WAIT;
    for (id, fault) in refused {
        let again = if any_ended {
            remove(client, &id, until).await
        } else {
            Err(fault)
        };
        match again {
            Ok(()) => done.sandboxes.push(id.to_string()),
            Err(fault) => done.failures.push(format!("sandbox {id}: {fault}")),
        }
    }
}

async fn end_processes(kernel: &Kernel, ids: &BTreeSet<String>, removed: bool, done: &mut Sweep) {
    let Ended { ended, left } = leftovers::end(kernel, ids, removed).await;
    done.processes.extend(ended);
    done.failures.extend(left);
}

/// The same, of a run that has made nothing in this process, or of all; and their log directories
/// below this one, or below the usual ones.
///
/// # Errors
/// As [`sweep`].
pub async fn sweep_host(
    client: &RecordingClient,
    run: Option<&RunId>,
    log_parent: Option<&Path>,
) -> Result<Sweep, SweepError> {
    let mut done = sweep((client, &Kernel::Host), run, &[]).await?;
    let directories = log_directories(run, log_parent, &mut done);
    let noted = directories.iter().flat_map(LogDirectory::noted).collect();
    let failures = done.failures.len();
    end_processes(&Kernel::Host, &noted, true, &mut done).await;
    // Where a process is left, the next attempt needs the notes.
    if done.failures.len() == failures {
        sweep_logs(&directories, &mut done);
    }
    Ok(done)
}

/// The log directories of one run, or of all runs that no longer go on.
fn log_directories(
    run: Option<&RunId>,
    parent: Option<&Path>,
    done: &mut Sweep,
) -> Vec<LogDirectory> {
    let mut found = LogDirectory::found(parent);
    found.retain(|logs| {
        let owner = logs.owner();
        let is_alive = run.is_none() && host::is_alive(owner.process());
        if is_alive {
            done.alive.insert(owner.run().to_owned());
        }
        !is_alive && run.is_none_or(|run| run.as_str() == owner.run())
    });
    found
}

/// Removes the log directories of containers, which are gone by now.
fn sweep_logs(directories: &[LogDirectory], done: &mut Sweep) {
    for logs in directories {
        let path = logs.path().display();
        match logs.remove() {
            Ok(()) => done.logs.push(path.to_string()),
            Err(fault) => done.failures.push(format!("log directory {path}: {fault}")),
        }
    }
}

/// Removes what was made for pods, which are gone by now.
async fn sweep_cgroups(kernel: &Kernel, run: Option<&RunId>, done: &mut Sweep) {
    for cgroup in kernel.cgroups() {
        let (owner, process) = (cgroup.owner().run(), cgroup.owner().process());
        if run.is_some_and(|run| run.as_str() != owner) {
            continue;
        }
        if run.is_none() && host::is_alive(process) {
            done.alive.insert(owner.to_owned());
            continue;
        }
        match pod_cgroup::remove(kernel, &cgroup).await {
            Ok(()) => done.cgroups.push(cgroup.to_string()),
            Err(fault) => done.failures.push(format!("cgroup {cgroup}: {fault}")),
        }
    }
}

/// Stops a container without a grace period, which a runtime would else choose for it: the removal
/// of a sandbox has none to give. Where that fails, the removal of the sandbox fails, too.
async fn kill(client: &RecordingClient, container: &str) {
    let stop = Request::StopContainer {
        container: ContainerId::from(container),
        grace: Duration::ZERO,
    };
    let _ = client.call(None, stop).await;
}

/// Stops a sandbox and removes it. What the runtime refuses is tried again until then: a container
/// that is being started cannot be removed before that has ended, though its client may have left.
async fn remove(client: &RecordingClient, id: &SandboxId, until: Instant) -> Result<(), CallFault> {
    let mut pace = tokio::time::interval(limits::SWEEP_PACE);
    loop {
        pace.tick().await;
        // The removal tries the same as a failed stop, and fails then, too.
        let _ = client.call(None, Request::StopSandbox(id.clone())).await;
        match client.call(None, Request::RemoveSandbox(id.clone())).await {
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

async fn listed(
    client: &RecordingClient,
    run: Option<&RunId>,
) -> Result<Vec<SandboxListing>, SweepError> {
    let mut labels = Labels::new();
    if let Some(run) = run {
        labels.insert(RUN_LABEL.to_owned(), run.to_string());
    }
    match ask(client, Request::ListSandboxes(labels)).await? {
        Reply::Sandboxes(listed) => Ok(listed),
        _ => Ok(Vec::new()),
    }
}

async fn sweep_images(
    client: &RecordingClient,
    run: Option<&RunId>,
    done: &mut Sweep,
) -> Result<(), SweepError> {
    let Reply::Images(images) = ask(client, Request::ListImages).await? else {
        return Ok(());
    };
    for tag in images.iter().flat_map(|image| &image.tags) {
        let Some((owner, process)) = owner_of_image(tag) else {
            continue;
        };
        let ours = run.map_or_else(|| !host::is_alive(process), |run| run.as_str() == owner);
        if !ours {
            continue;
        }
        match client.call(None, Request::RemoveImage(tag.clone())).await {
            Ok(_) => done.images.push(tag.clone()),
            Err(fault) => done.failures.push(format!("image {tag}: {fault}")),
        }
    }
    Ok(())
}

/// What runs that no longer go on have left, a line each: sandboxes, images, cgroups, and log
/// directories below this one. Nothing is changed.
///
/// # Errors
/// If the runtime cannot list what it has.
pub async fn list_leftovers(
    client: &RecordingClient,
    log_parent: &Path,
) -> Result<Vec<String>, SweepError> {
    let mut found = Vec::new();
    for sandbox in listed(client, None).await? {
        let process = sandbox.labels.get(PROCESS_LABEL);
        let is_alive = process.is_some_and(|process| host::is_alive(process));
        if sandbox.labels.contains_key(RUN_LABEL) && !is_alive {
            found.push(format!("sandbox {}", sandbox.id));
        }
    }
    if let Reply::Images(images) = ask(client, Request::ListImages).await? {
        let tags = images.iter().flat_map(|image| &image.tags);
        let dead = tags
            .filter(|tag| owner_of_image(tag).is_some_and(|(_, process)| !host::is_alive(process)));
        found.extend(dead.map(|tag| format!("image {tag}")));
    }
    let cgroups = Kernel::Host.cgroups().into_iter();
    let dead = cgroups.filter(|cgroup| !host::is_alive(cgroup.owner().process()));
    found.extend(dead.map(|cgroup| format!("cgroup {cgroup}")));
    let logs = LogDirectory::found(Some(log_parent)).into_iter();
    let dead = logs.filter(|logs| !host::is_alive(logs.owner().process()));
    found.extend(dead.map(|logs| format!("log directory {}", logs.path().display())));
    Ok(found)
}

/// The tag of the image that a run serves, by which its run is known.
#[must_use]
pub fn image_tag(run: &RunId) -> String {
    format!("{run}.{}", host::this_process())
}

/// The run and the process of a reference that ends in [`image_tag`].
fn owner_of_image(reference: &str) -> Option<(&str, &str)> {
    let (repository, tag) = reference.rsplit_once(':')?;
    let ours = repository.starts_with("127.0.0.1:") && repository.ends_with(workload::REPOSITORY);
    if ours { tag.split_once('.') } else { None }
}

/// Sandboxes on the node that no run of this suite has made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForeignPods {
    /// How many there are.
    pub all: usize,
    /// How many of them are ready and have the labels that a kubelet gives.
    pub kubelets: usize,
}

/// The sandboxes on the node that no run of this suite has made.
///
/// # Errors
/// If the runtime cannot list what it has.
pub async fn foreign_pods(client: &RecordingClient) -> Result<ForeignPods, SweepError> {
    let listed = listed(client, None).await?;
    let is_foreign = |sandbox: &&SandboxListing| !sandbox.labels.contains_key(RUN_LABEL);
    let is_kubelets = |sandbox: &&SandboxListing| {
        let labelled = KUBELET_LABELS
            .iter()
            .all(|label| sandbox.labels.contains_key(*label));
        labelled && sandbox.state == SandboxState::Ready
    };
    let foreign = listed.iter().filter(is_foreign);
    Ok(ForeignPods {
        all: foreign.clone().count(),
        kubelets: foreign.filter(is_kubelets).count(),
    })
}

async fn ask(client: &RecordingClient, request: Request) -> Result<Reply, SweepError> {
    let method = request.method();
    client
        .call(None, request)
        .await
        .map_err(|fault| SweepError { method, fault })
}
