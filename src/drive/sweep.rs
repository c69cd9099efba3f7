//! Removes the leftovers of runs, found by the label of all objects that runs create.

mod listing;
mod removals;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use tokio::sync::mpsc::UnboundedSender;

use super::leftovers::{self, Ended, remove_cgroup};
use super::recording_client::RecordingClient;
use super::session::RUN_LABEL;
use crate::history::{
    CallFault, ContainerListing, Labels, Reply, Request, RunId, SandboxId, SandboxListing,
    StatusCode,
};
use crate::host;
use crate::host::{Kernel, LogDirectory, OwnIds, Owner};
use crate::workload;

pub use listing::{ForeignPods, foreign_pods, list_leftovers, listed_ids};
use listing::{Ids, containers, owner_of_sandbox, sweep_orphans};
use removals::{remove_all, remove_sandbox};

#[derive(Clone, Debug, Default)]
pub struct Sweep {
    /// Gets a line for each object that is removed or left alone, as soon as that is known.
    lines: Option<UnboundedSender<String>>,
    /// The objects that were removed, such as `sandbox ID`.
    pub removed: Vec<String>,
    /// Processes that the runtime had left of removed containers and sandboxes, and that are ended.
    pub processes: Vec<String>,
    /// Runs that still go on, and were left alone.
    pub alive: BTreeSet<String>,
    /// Runs that have left something, and of which no record was found.
    pub unrecorded: BTreeSet<String>,
    /// Objects that were left alone for another reason, one sentence each.
    pub skipped: Vec<String>,
    /// Objects that could not be removed, one sentence each.
    pub failures: Vec<String>,
}

/// The runtime could not be asked.
#[derive(Debug, thiserror::Error)]
#[error("{method}: {fault}")]
pub struct SweepError {
    pub method: &'static str,
    pub fault: CallFault,
}

/// The ids, processes and records of the host that belong to the swept runs.
#[derive(Debug)]
struct Owned {
    ids: OwnIds,
    /// The runs whose monitors are theirs.
    runs: Vec<Owner>,
    /// The runs of which records were found.
    recorded: Vec<Owner>,
    elsewhere: BTreeSet<String>,
}

impl Owned {
    /// Why a sandbox stays that is listed as another pod; `None` if no call of a run made it.
    fn left(&self, id: &SandboxId) -> Option<String> {
        self.ids.contains(id.as_str()).then(|| {
            format!(
                "sandbox {id}, which a call of the run has made, is listed with the name or the \
                 labels of another pod: left alone"
            )
        })
    }

    /// Records a run that has left something.
    fn note(&self, owner: &Owner, done: &mut Sweep) {
        let run = owner.run();
        if !self.recorded.contains(owner) && done.unrecorded.insert(run.to_owned()) {
            done.tell(format!(
                "skipped: no record of run {run} was found, so its log directory may be left, and \
                 processes; if it had --log-dir, clean up with the same"
            ));
        }
    }
}

impl Sweep {
    fn tell(&self, line: String) {
        // Without a receiver the lines are not wanted.
        let _ = self.lines.as_ref().map(|lines| lines.send(line));
    }

    fn removed(&mut self, what: &str, id: impl fmt::Display) {
        let removed = format!("{what} {id}");
        self.tell(format!("removed {removed}"));
        self.removed.push(removed);
    }

    fn skip(&mut self, reasons: impl IntoIterator<Item = String>) {
        for reason in reasons {
            self.tell(format!("skipped: {reason}"));
            self.skipped.push(reason);
        }
    }

    fn is_alive(&mut self, run: &str) {
        if self.alive.insert(run.to_owned()) {
            self.tell(format!(
                "skipped: run {run} is still in progress; use --run-id {run} to remove it"
            ));
        }
    }
}

/// Removes the sandboxes, images and cgroups of a run of this process; but not the sandboxes to
/// keep, nor then the image that they use and the other cgroups. Fails if the runtime cannot list
/// its sandboxes. Objects that it cannot remove are in the result.
pub async fn sweep(
    place: (&RecordingClient, &Kernel),
    run: &RunId,
    keep: &[SandboxId],
) -> Result<Sweep, SweepError> {
    let owned = Owned {
        ids: place.0.made(),
        runs: vec![Owner::new(run)],
        recorded: vec![Owner::new(run)],
        elsewhere: BTreeSet::new(),
    };
    let mut done = sweep_owned(place, (Some(run), keep), owned, Sweep::default()).await?;
    if let (Kernel::Host, Ok(listed)) = (place.1, listed_ids(place.0).await) {
        done.skip(host::unexplained_shims(&[Owner::new(run)], &listed));
    }
    Ok(done)
}

async fn sweep_owned(
    (client, kernel): (&RecordingClient, &Kernel),
    (run, keep): (Option<&RunId>, &[SandboxId]),
    mut owned: Owned,
    mut done: Sweep,
) -> Result<Sweep, SweepError> {
    let (sandboxes, foreign) = to_remove(client, run, keep, &owned, &mut done).await?;
    let containers = containers(client).await.ok();
    let listed = containers.as_deref().unwrap_or_default();
    let of_others = Ids::new(&foreign, listed, |_| false).removed;
    // Those of a run of this process that no call has returned: one that was given up made them.
    let is_of_this_process = run.is_some_and(|run| owned.runs.contains(&Owner::new(run)));
    if is_of_this_process {
        let ids = Ids::new(&sandboxes, listed, |_| false).removed;
        owned
            .ids
            .extend(ids.iter().filter_map(|id| client.adopt(id)));
    }
    let own = owned.ids.only(|id| !of_others.contains(id));
    thaw(kernel, &own, &sandboxes, listed);
    let mut refused = Vec::new();
    let removals = sandboxes.iter().map(|id| {
        let inside = listed.iter().filter(|it| it.sandbox == *id);
        let inside = inside.map(|container| container.id.clone()).collect();
        remove_sandbox(client.clone(), id.clone(), inside)
    });
    remove_all(removals, |(id, removed)| match removed {
        Ok(()) => done.removed("sandbox", id),
        // Of a runtime that is gone nothing is known; it is asked again when it is back.
        Err(fault) if fault.code == StatusCode::UNAVAILABLE => {
            done.failures.push(format!("sandbox {id}: {fault}"));
        }
        Err(fault) => refused.push((id, fault)),
    })
    .await;
    if !done.failures.is_empty() {
        let refused = refused.iter();
        let failures = refused.map(|(id, fault)| format!("sandbox {id}: {fault}"));
        done.failures.extend(failures);
        return Ok(done);
    }
    let of_refused = |sandbox: &SandboxId| refused.iter().any(|(id, _)| id == sandbox);
    let ids = Ids::new(&sandboxes, listed, of_refused);
    let in_the_way = own.only(|id| ids.refused.contains(id));
    retry((client, kernel), &in_the_way, refused, &mut done).await;
    // What the runtime does not list any more, or never has; but nothing of what is kept.
    let orphans = sweep_orphans(client, run, &owned.ids, &mut done).await;
    if keep.is_empty() || containers.is_some() {
        let kept = Ids::new(keep, listed, |_| false).removed;
        let mut left = own;
        left.extend(kernel.monitored(&owned.runs).iter());
        if is_of_this_process {
            left.extend(orphans.iter().filter_map(|id| client.adopt(id.as_str())));
        }
        let left = left
            .only(|id| !kept.contains(id) && !of_others.contains(id) && !ids.refused.contains(id));
        end_processes(kernel, &left, true, &mut done).await;
    }
    let unnamed = foreign.iter().filter(|id| !keep.contains(id));
    done.failures
        .extend(unnamed.filter_map(|id| owned.left(id)));
    if keep.is_empty() {
        sweep_images(client, run, &owned, &mut done).await?;
        sweep_cgroups(kernel, run, &owned, &mut done).await;
    }
    Ok(done)
}

/// Lets the processes of these sandboxes run on, if they are own ones: a run that was killed may
/// have frozen them, or their monitors, without which nothing can be removed.
fn thaw(kernel: &Kernel, own: &OwnIds, sandboxes: &[SandboxId], containers: &[ContainerListing]) {
    let ids = Ids::new(sandboxes, containers, |_| false);
    let own = own.only(|id| ids.removed.contains(id));
    for process in kernel.leftovers(&own) {
        // One that cannot be continued may still be removed.
        let _ = process.thaw();
    }
    kernel.resume_containers(&own);
}

/// The sandboxes of one run, or of all runs that no longer go on, but those to keep; and those that
/// no run has made.
async fn to_remove(
    client: &RecordingClient,
    run: Option<&RunId>,
    keep: &[SandboxId],
    known: &Owned,
    done: &mut Sweep,
) -> Result<(Vec<SandboxId>, Vec<SandboxId>), SweepError> {
    let (mut found, mut foreign) = (Vec::new(), Vec::new());
    for sandbox in listed(client, None).await? {
        let Some(owner) = owner_of_sandbox(&sandbox, &known.ids) else {
            if sandbox.labels.contains_key(RUN_LABEL) {
                let pod = sandbox.metadata.unwrap_or_default();
                done.skip([format!(
                    "sandbox {} of the pod {}/{} carries the suite's labels, but not its name: \
                     left alone",
                    sandbox.id, pod.namespace, pod.name
                )]);
            }
            foreign.push(sandbox.id);
            continue;
        };
        if keep.contains(&sandbox.id) || run.is_some_and(|run| run.as_str() != owner.run()) {
            continue;
        }
        if run.is_none() && host::is_alive(owner.process()) {
            done.is_alive(owner.run());
            continue;
        }
        known.note(&owner, done);
        found.push(sandbox.id);
    }
    // A runtime may take an abbreviation for the id that begins with it.
    let is_foreign = |id: &SandboxId| {
        foreign
            .iter()
            .any(|it| it.as_str().starts_with(id.as_str()))
    };
    let (abbreviated, found): (Vec<_>, _) = found.into_iter().partition(is_foreign);
    done.skip(abbreviated.into_iter().map(|id| {
        format!("sandbox {id} is listed by a part of the id of another pod: left alone")
    }));
    Ok((found, foreign))
}

/// Ends the processes of sandboxes that the runtime has refused to remove, and tries again.
async fn retry(
    (client, kernel): (&RecordingClient, &Kernel),
    ids: &OwnIds,
    refused: Vec<(SandboxId, CallFault)>,
    done: &mut Sweep,
) {
    let ended = done.processes.len();
    end_processes(kernel, ids, false, done).await;
    let any_ended = done.processes.len() > ended;
    let again = refused.into_iter().map(|(id, fault)| {
        let client = client.clone();
        async move {
            if any_ended {
                remove_sandbox(client, id, Vec::new()).await
            } else {
                (id, Err(fault))
            }
        }
    });
    remove_all(again, |(id, removed)| match removed {
        Ok(()) => done.removed("sandbox", id),
        Err(fault) => done.failures.push(format!("sandbox {id}: {fault}")),
    })
    .await;
}

async fn end_processes(kernel: &Kernel, ids: &OwnIds, removed: bool, done: &mut Sweep) {
    let Ended { ended, left } = leftovers::end(kernel, ids, removed).await;
    for process in &ended {
        done.tell(format!("killed {process}"));
    }
    done.processes.extend(ended);
    done.failures.extend(left);
}

/// Sweeps a run of another process, or all runs that have ended, on the runtime at this socket,
/// with those of the log directories that are theirs. On the host only processes of ids in their
/// records are ended. A line for each object is sent as soon as it is removed or left alone.
pub async fn sweep_host(
    (client, socket): (&RecordingClient, Option<&Path>),
    run: Option<&RunId>,
    directories: Vec<LogDirectory>,
    lines: UnboundedSender<String>,
) -> Result<Sweep, SweepError> {
    let mut done = Sweep {
        lines: Some(lines),
        ..Sweep::default()
    };
    let (directories, owned) = log_directories(run, (socket, directories), &mut done);
    let (runs, recorded) = (owned.runs.clone(), owned.recorded.clone());
    let mut done = sweep_owned((client, &Kernel::Host), (run, &[]), owned, done).await?;
    done.skip(host::unexplained_shims(&runs, &listed_ids(client).await?));
    done.skip(host::unrecorded_monitors(&recorded, run));
    // Where a process is left, the next attempt needs the records.
    if done.failures.is_empty() {
        sweep_logs(&directories, &mut done);
    }
    done.lines = None;
    Ok(done)
}

/// The log directories of one run, or of all runs that have ended, on the runtime at this socket;
/// and the ids in their records.
fn log_directories(
    run: Option<&RunId>,
    (socket, mut found): (Option<&Path>, Vec<LogDirectory>),
    done: &mut Sweep,
) -> (Vec<LogDirectory>, Owned) {
    let mut of_runs = Owned {
        ids: OwnIds::default(),
        runs: Vec::new(),
        recorded: found.iter().map(|logs| logs.owner().clone()).collect(),
        elsewhere: BTreeSet::new(),
    };
    let mut other_sockets = BTreeMap::<_, Vec<String>>::new();
    found.retain(|logs| {
        let owner = logs.owner();
        if run.is_some_and(|run| run.as_str() != owner.run()) {
            return false;
        }
        let records = logs.records();
        if !records.are_of(socket) {
            let (run, path) = (owner.run().to_owned(), logs.path().display());
            let there = other_sockets.entry(records.socket.clone()).or_default();
            there.push(format!("{run} ({path})"));
            of_runs.elsewhere.insert(owner.run().to_owned());
            return false;
        }
        if run.is_none() && host::is_alive(owner.process()) {
            done.is_alive(owner.run());
            return false;
        }
        of_runs.ids.extend(records.made.iter());
        of_runs.runs.push(owner.clone());
        true
    });
    let other_sockets = other_sockets.iter();
    done.skip(other_sockets.map(|(socket, runs)| elsewhere(runs, socket.as_deref())));
    (found, of_runs)
}

/// Why the log directories of runs on another runtime stay, each run with its directory.
fn elsewhere(runs: &[String], socket: Option<&Path>) -> String {
    let runs = match runs {
        [first, more @ ..] if more.len() > 1 => format!("{first}, and {} more", more.len()),
        few => few.join(" and "),
    };
    match socket {
        Some(socket) => {
            let endpoint = format!("unix://{}", socket.display());
            let gone = match socket.try_exists() {
                Ok(false) => "; if that runtime will not be back, remove them yourself",
                _ => "",
            };
            format!(
                "on {endpoint}: the log directories and processes of {runs} stay; clean up there with \
                 cri-event-conformance cleanup --runtime-endpoint {endpoint}{gone}"
            )
        }
        None => format!("on an unknown runtime: the log directories of {runs} stay; remove them"),
    }
}

/// Removes the log directories of containers, which are gone by now.
fn sweep_logs(directories: &[LogDirectory], done: &mut Sweep) {
    for logs in directories {
        let path = logs.path().display();
        match logs.remove() {
            Ok(()) => done.removed("log directory", path),
            Err(fault) => done.failures.push(format!("log directory {path}: {fault}")),
        }
    }
}

/// Removes the cgroups of pods, which are removed by now.
async fn sweep_cgroups(kernel: &Kernel, run: Option<&RunId>, known: &Owned, done: &mut Sweep) {
    for cgroup in kernel.cgroups() {
        let (owner, process) = (cgroup.owner().run(), cgroup.owner().process());
        if run.is_some_and(|run| run.as_str() != owner) || known.elsewhere.contains(owner) {
            continue;
        }
        if run.is_none() && host::is_alive(process) {
            done.is_alive(owner);
            continue;
        }
        known.note(cgroup.owner(), done);
        match remove_cgroup(kernel, &cgroup).await {
            Ok(()) => done.removed("cgroup", &cgroup),
            Err(fault) => done.failures.push(format!("cgroup {cgroup}: {fault}")),
        }
    }
}

async fn listed(
    client: &RecordingClient,
    run: Option<&RunId>,
) -> Result<Vec<SandboxListing>, SweepError> {
    let mut labels = Labels::new();
    if let Some(run) = run {
        labels.insert(RUN_LABEL.to_owned(), run.to_string());
    }
    match ask(client, Request::sandboxes(labels)).await? {
        Reply::Sandboxes(listed) => Ok(listed),
        _ => Ok(Vec::new()),
    }
}

async fn sweep_images(
    client: &RecordingClient,
    run: Option<&RunId>,
    known: &Owned,
    done: &mut Sweep,
) -> Result<(), SweepError> {
    let Reply::Images(images) = ask(client, Request::ListImages).await? else {
        return Ok(());
    };
    for tag in images.iter().flat_map(|image| &image.tags) {
        let Some(owner) = owner_of_image(tag) else {
            continue;
        };
        let is_dead = || !host::is_alive(owner.process());
        let ours = run.map_or_else(is_dead, |run| run.as_str() == owner.run());
        if !ours {
            continue;
        }
        known.note(&owner, done);
        match client.call(None, Request::RemoveImage(tag.clone())).await {
            Ok(_) => done.removed("image", tag),
            Err(fault) => done.failures.push(format!("image {tag}: {fault}")),
        }
    }
    Ok(())
}

/// The tag of the image that a run serves, by which its run is known.
pub fn image_tag(run: &RunId) -> String {
    format!("{run}.{}", host::this_process())
}

/// The run of a reference that ends in [`image_tag`].
fn owner_of_image(reference: &str) -> Option<Owner> {
    let (repository, tag) = reference.rsplit_once(':')?;
    let ours = repository.starts_with("127.0.0.1:") && repository.ends_with(workload::REPOSITORY);
    let (run, process) = tag.split_once('.').filter(|_| ours)?;
    Owner::parse(run, process)
}

async fn ask(client: &RecordingClient, request: Request) -> Result<Reply, SweepError> {
    let method = request.method();
    client
        .call(None, request)
        .await
        .map_err(|fault| SweepError { method, fault })
}
