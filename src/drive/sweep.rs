//! Removing what runs have left behind, found by the label that every run puts on what it makes.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use tokio::time::Instant;

use super::caller::Caller;
use super::pod_cgroup;
use super::session::{PROCESS_LABEL, RUN_LABEL};
use crate::history::{
    CallFault, Labels, Reply, Request, RunId, SandboxId, SandboxListing, StatusCode,
};
use crate::host::Kernel;
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
/// If the runtime cannot list what it has. What it cannot remove is told in the result.
pub async fn sweep(
    (caller, kernel): (&Caller, &Kernel),
    run: Option<&RunId>,
    keep: &[SandboxId],
) -> Result<Sweep, SweepError> {
    let mut done = Sweep::default();
    let until = Instant::now() + limits::SWEEP_WAIT;
    for sandbox in listed(caller, run).await? {
        if keep.contains(&sandbox.id) {
            continue;
        }
        let Some(owner) = sandbox.labels.get(RUN_LABEL) else {
            continue;
        };
        let process = sandbox.labels.get(PROCESS_LABEL);
        if run.is_none() && process.is_some_and(|process| host::is_alive(process)) {
            done.alive.insert(owner.to_string());
            continue;
        }
        let id = &sandbox.id;
        match remove(caller, id, until).await {
            Ok(()) => done.sandboxes.push(id.to_string()),
            Err(fault) => done.failures.push(format!("sandbox {id}: {fault}")),
        }
    }
    if keep.is_empty() {
        sweep_images(caller, run, &mut done).await?;
        sweep_cgroups(kernel, run, &mut done).await;
    }
    Ok(done)
}

/// The same, of a run that has made nothing in this process, or of all.
///
/// # Errors
/// As [`sweep`].
pub async fn sweep_host(caller: &Caller, run: Option<&RunId>) -> Result<Sweep, SweepError> {
    sweep((caller, &Kernel::Host), run, &[]).await
}

/// Removes what was made for pods, which are gone by now.
async fn sweep_cgroups(kernel: &Kernel, run: Option<&RunId>, done: &mut Sweep) {
    for cgroup in kernel.cgroups() {
        let (owner, process) = (cgroup.run(), cgroup.process());
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

/// Stops a sandbox and removes it. What the runtime refuses is tried again until then: a container
/// that is being started cannot be removed before that has ended, though its caller may have left.
async fn remove(caller: &Caller, id: &SandboxId, until: Instant) -> Result<(), CallFault> {
    let mut pace = tokio::time::interval(limits::SWEEP_PACE);
    loop {
        pace.tick().await;
        // A failed stop is told by the removal, which tries the same.
        let _ = caller.call(None, Request::StopSandbox(id.clone())).await;
        match caller.call(None, Request::RemoveSandbox(id.clone())).await {
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

async fn listed(caller: &Caller, run: Option<&RunId>) -> Result<Vec<SandboxListing>, SweepError> {
    let mut labels = Labels::new();
    if let Some(run) = run {
        labels.insert(RUN_LABEL.to_owned(), run.to_string());
    }
    match ask(caller, Request::ListSandboxes(labels)).await? {
        Reply::Sandboxes(listed) => Ok(listed),
        _ => Ok(Vec::new()),
    }
}

async fn sweep_images(
    caller: &Caller,
    run: Option<&RunId>,
    done: &mut Sweep,
) -> Result<(), SweepError> {
    let Reply::Images(images) = ask(caller, Request::ListImages).await? else {
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
        match caller.call(None, Request::RemoveImage(tag.clone())).await {
            Ok(_) => done.images.push(tag.clone()),
            Err(fault) => done.failures.push(format!("image {tag}: {fault}")),
        }
    }
    Ok(())
}

/// The tag of the image that a run serves, which tells whose it is.
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

/// How many sandboxes on the node no run of this suite has made.
///
/// # Errors
/// If the runtime cannot list what it has.
pub async fn foreign_pods(caller: &Caller) -> Result<usize, SweepError> {
    let listed = listed(caller, None).await?;
    Ok(listed
        .iter()
        .filter(|sandbox| !sandbox.labels.contains_key(RUN_LABEL))
        .count())
}

async fn ask(caller: &Caller, request: Request) -> Result<Reply, SweepError> {
    let method = request.method();
    caller
        .call(None, request)
        .await
        .map_err(|fault| SweepError { method, fault })
}
