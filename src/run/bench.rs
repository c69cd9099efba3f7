//! What the suite costs: its wall time beside that of the same calls, sent back to back.
//!
//! The suite runs once and records its history. Then a bare loop sends the calls of every case
//! again, to the same runtime and with as many cases and rounds at once, but waits for nothing but
//! the calls themselves: no stream, no events, no markers, no verdicts.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::{Mutex, Semaphore};
use tokio::task::JoinSet;

use super::outputs::{Outputs, Places};
use super::{Exit, RunError, RunOptions, Shown, Target, Tested, plan, prepare, run_plan};
use crate::case::Case;
use crate::cri::Client;
use crate::drive::{self, Caller};
use crate::history::{
    Body, CallId, CaseRun, ContainerId, ContainerSpec, Entry, Reply, Request, RunId, SandboxId,
    SandboxSpec, codec,
};
use crate::host;
use crate::recorder::Recorder;

/// The calls of one case, in the order in which they began.
#[derive(Debug, Default)]
struct Script {
    alone: bool,
    calls: Vec<Recorded>,
}

/// One recorded call.
#[derive(Clone, Debug)]
struct Recorded {
    request: Request,
    made: Option<String>,
    began: u64,
    ended: u64,
}

/// Runs the suite, then its bare calls, and prints both times and their ratio.
///
/// # Errors
/// If the suite comes to no report, or the runtime is lost between the two.
pub fn bench_overhead(
    options: &RunOptions,
    cases: Vec<Case>,
    out: &mut dyn Write,
) -> Result<Exit, RunError> {
    let Tested::Runtime(target) = &options.tested else {
        return Err(RunError::Unserved);
    };
    let planned = plan(cases, &options.selection)?;
    let alone: Vec<bool> = planned
        .iter()
        .map(|planned| planned.case.exclusive)
        .collect();
    let path = std::env::temp_dir().join(format!("{}.binpb", uuid::Uuid::new_v4()));
    let mut outputs = Outputs::open(Places {
        history: Some(&path),
        ..Places::default()
    })?;
    let report = run_plan(options, None, planned, &mut outputs, Shown::OnConsole);
    let entries = std::fs::read(&path).map(|bytes| codec::decode(&bytes).entries);
    // Gone already if the run did not begin.
    let _ = std::fs::remove_file(&path);
    let (report, entries) = (report?, entries?);
    let runtime = Runtime::new()?;
    let scripts = scripts(&entries, &alone);
    let calls: usize = scripts.iter().map(|script| script.calls.len()).sum();
    let bare = runtime.block_on(bare_loop(options, target, scripts))?;
    let ratio = report.duration.as_secs_f64() / bare.as_secs_f64();
    writeln!(
        out,
        "overhead: suite {:.2} s, bare loop of the same {calls} calls {:.2} s, ratio {ratio:.2} \
         ({} cases at once)",
        report.duration.as_secs_f64(),
        bare.as_secs_f64(),
        options.threads
    )?;
    Ok(Exit::Conformant)
}

/// The cases' calls out of a history, in the order in which the cases began.
fn scripts(entries: &[Entry], alone: &[bool]) -> Vec<Script> {
    let mut scripts = BTreeMap::<CaseRun, Script>::new();
    let mut open = BTreeMap::<CallId, (CaseRun, Request, u64)>::new();
    for entry in entries {
        let at = entry.at.monotonic_ns;
        match &entry.body {
            Body::CallBegan {
                call,
                case: Some(case),
                request,
            } if !is_relist(request) => {
                open.insert(*call, (*case, request.clone(), at));
            }
            Body::CallEnded { call, result } => {
                let Some((case, request, began)) = open.remove(call) else {
                    continue;
                };
                let made = match result {
                    Ok(Reply::Sandbox(id)) => Some(id.to_string()),
                    Ok(Reply::Container(id)) => Some(id.to_string()),
                    _ => None,
                };
                let call = Recorded {
                    request,
                    made,
                    began,
                    ended: at,
                };
                scripts.entry(case).or_default().calls.push(call);
            }
            _ => {}
        }
    }
    let mut scripts: Vec<Script> = scripts.into_values().collect();
    for (script, alone) in scripts.iter_mut().zip(alone) {
        script.alone = *alone;
        script.calls.sort_by_key(|call| call.began);
    }
    scripts
}

/// Sends the scripts' calls and returns how long they took.
async fn bare_loop(
    options: &RunOptions,
    target: &Target,
    scripts: Vec<Script>,
) -> Result<Duration, RunError> {
    let client = Client::connect(&target.runtime, &target.images, target.deadline).await;
    let caller = Caller {
        client: client.map_err(prepare::PrepareError::from)?,
        recorder: Recorder::new(),
    };
    let client = caller.client.clone();
    let run = RunId::from(uuid::Uuid::new_v4().to_string());
    let image = prepare::image(options, &caller, &run, &mut None).await?;
    let places = Arc::new(Semaphore::new(options.threads));
    let began = host::now();
    let (alone, beside): (Vec<Script>, Vec<Script>) =
        scripts.into_iter().partition(|script| script.alone);
    let mut running = JoinSet::new();
    for script in beside {
        let place = places.clone().acquire_owned().await;
        let replay = Replay::new(client.clone(), run.clone(), image.clone());
        running.spawn(async move {
            replay.script(script).await;
            drop(place);
        });
    }
    running.join_all().await;
    for script in alone {
        Replay::new(client.clone(), run.clone(), image.clone())
            .script(script)
            .await;
    }
    let took = host::elapsed(began);
    drive::sweep(&caller, Some(&run), &[])
        .await
        .map_err(prepare::PrepareError::from)?;
    Ok(took)
}

/// Sends one script's calls, with the ids that the runtime gives this time.
#[derive(Clone, Debug)]
struct Replay {
    client: Client,
    run: RunId,
    image: String,
    ids: Arc<Mutex<BTreeMap<String, String>>>,
    specs: Arc<Mutex<BTreeMap<String, Arc<SandboxSpec>>>>,
}

impl Replay {
    fn new(client: Client, run: RunId, image: String) -> Self {
        Self {
            client,
            run,
            image,
            ids: Arc::default(),
            specs: Arc::default(),
        }
    }

    /// A sandbox's own calls one after the other; between them, each container's calls one after
    /// the other, with as many containers at once as in the recording.
    async fn script(&self, script: Script) {
        let mut stretch = Vec::new();
        for call in script.calls {
            if is_about_sandbox(&call.request) {
                self.stretch(std::mem::take(&mut stretch)).await;
                self.send(call).await;
            } else {
                stretch.push(call);
            }
        }
        self.stretch(stretch).await;
    }

    async fn stretch(&self, calls: Vec<Recorded>) {
        let places = Arc::new(Semaphore::new(most_at_once(&calls)));
        let mut chains: Vec<(String, Vec<Recorded>)> = Vec::new();
        for call in calls {
            let id = container_of(&call);
            match chains.iter_mut().find(|(chain, _)| *chain == id) {
                Some((_, chain)) => chain.push(call),
                None => chains.push((id, vec![call])),
            }
        }
        let mut running = JoinSet::new();
        for (_, chain) in chains {
            let place = places.clone().acquire_owned().await;
            let this = self.clone();
            running.spawn(async move {
                for call in chain {
                    this.send(call).await;
                }
                drop(place);
            });
        }
        running.join_all().await;
    }

    async fn send(&self, call: Recorded) {
        let Some(request) = self.renamed(&call).await else {
            return;
        };
        // A call that failed when it was recorded fails again; either way it took its time.
        let made = match self.client.call(&request).await {
            Ok(Reply::Sandbox(id)) => Some(id.to_string()),
            Ok(Reply::Container(id)) => Some(id.to_string()),
            Ok(_) | Err(_) => None,
        };
        if let (Some(old), Some(new)) = (call.made, made) {
            if let Request::RunSandbox(spec) = request {
                self.specs.lock().await.insert(new.clone(), spec);
            }
            self.ids.lock().await.insert(old, new);
        }
    }

    /// The request with this run's labels, a UID of its own, and the new ids. A stop that was
    /// obeyed has no grace period this time: so soon after its start, a program may miss the
    /// signal, and waiting for the kill would make the bare loop look slow.
    async fn renamed(&self, call: &Recorded) -> Option<Request> {
        let request = &call.request;
        let took = Duration::from_nanos(call.ended - call.began);
        let ids = self.ids.lock().await.clone();
        let sandbox = |id: &SandboxId| ids.get(id.as_str()).cloned().map(SandboxId::from);
        let container = |id: &ContainerId| ids.get(id.as_str()).cloned().map(ContainerId::from);
        Some(match request {
            Request::RunSandbox(spec) => Request::RunSandbox(Arc::new(SandboxSpec {
                uid: uuid::Uuid::new_v4().to_string().as_str().into(),
                labels: drive::run_labels(&self.run),
                ..SandboxSpec::clone(spec)
            })),
            Request::StopSandbox(id) => Request::StopSandbox(sandbox(id)?),
            Request::RemoveSandbox(id) => Request::RemoveSandbox(sandbox(id)?),
            Request::CreateContainer(spec) => {
                let sandbox = sandbox(&spec.sandbox)?;
                let sandbox_spec = self.specs.lock().await.get(sandbox.as_str())?.clone();
                Request::CreateContainer(Arc::new(ContainerSpec {
                    sandbox,
                    sandbox_spec,
                    image: self.image.clone(),
                    labels: drive::run_labels(&self.run),
                    ..ContainerSpec::clone(spec)
                }))
            }
            Request::StartContainer(id) => Request::StartContainer(container(id)?),
            Request::StopContainer {
                container: id,
                grace,
            } => Request::StopContainer {
                container: container(id)?,
                grace: if took < *grace {
                    Duration::ZERO
                } else {
                    *grace
                },
            },
            Request::RemoveContainer(id) => Request::RemoveContainer(container(id)?),
            Request::ExecSync {
                container: id,
                command,
                timeout,
            } => Request::ExecSync {
                container: container(id)?,
                command: command.clone(),
                timeout: *timeout,
            },
            other => other.clone(),
        })
    }
}

fn is_about_sandbox(request: &Request) -> bool {
    matches!(
        request,
        Request::RunSandbox(_) | Request::StopSandbox(_) | Request::RemoveSandbox(_)
    )
}

/// Relists belong to the suite's watching, not to what the cases do.
fn is_relist(request: &Request) -> bool {
    matches!(
        request,
        Request::ListSandboxes(_)
            | Request::FindSandboxes(_)
            | Request::FindContainers(_)
            | Request::SandboxStatus(_)
            | Request::ListContainers { .. }
            | Request::ContainerStatus(_)
    )
}

/// The recorded id of the container that a call is about.
fn container_of(call: &Recorded) -> String {
    match &call.request {
        Request::StartContainer(id)
        | Request::RemoveContainer(id)
        | Request::StopContainer { container: id, .. } => id.to_string(),
        _ => call.made.clone().unwrap_or_default(),
    }
}

/// How many of these calls were under way at once.
fn most_at_once(calls: &[Recorded]) -> usize {
    let at_once = |at: u64| {
        calls
            .iter()
            .filter(|call| call.began <= at && at < call.ended)
            .count()
    };
    calls
        .iter()
        .map(|call| at_once(call.began))
        .max()
        .unwrap_or(0)
        .max(1)
}
