//! The overhead of the suite: its wall time compared with that of the bare calls.
//!
//! `cargo bench --bench overhead -- OPTIONS` takes the options of a run. The suite runs once on the
//! runtime and records its history. Then a bare loop sends the calls of every case again, to the
//! same runtime and with as many parallel cases and rounds: no stream, no markers, no relists, no
//! verdicts. Between two calls it pauses for the recorded duration of the case's wait: the life of
//! a container that exits on its own, a time without events, an event that never came. The rest of
//! the difference is the suite's own overhead.
//!
//! `ci/bench overhead` does it on a containerd of its own.

#![expect(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "this is a program for developers"
)]

mod script;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use cri_event_conformance::testing::cli::Cli;
use cri_event_conformance::testing::cri::Client;
use cri_event_conformance::testing::drive::{self, RecordingClient};
use cri_event_conformance::testing::history::{
    CaseRun, ContainerId, ContainerSpec, Reply, Request, RunId, SandboxId, SandboxSpec, codec,
};
use cri_event_conformance::testing::host::{self, LogDirectory};
use cri_event_conformance::testing::run::{self, Endpoints, RunError, RunOptions, Target};
use tokio::runtime::Runtime;
use tokio::sync::{Mutex, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use script::{Recorded, Script, scripts};

/// The argument that Cargo itself passes to a benchmark.
const OF_CARGO: &str = "--bench";

fn main() -> ExitCode {
    let given: Vec<String> = std::env::args().filter(|word| word != OF_CARGO).collect();
    if given.len() < 2 {
        // As under `cargo bench` and `cargo test --benches`, which are to make no containers.
        println!("overhead: not measured; name a runtime, as with --runtime-endpoint");
        return ExitCode::SUCCESS;
    }
    let cli = Cli::parse_from(given);
    match cli.run_options() {
        Ok(options) => match overhead(options) {
            Ok(()) => ExitCode::SUCCESS,
            Err(fault) => {
                eprintln!("error: {fault}");
                ExitCode::FAILURE
            }
        },
        Err(fault) => fault.report(),
    }
}

/// Runs the suite, then its bare calls, and prints both times and their ratio.
fn overhead(mut options: RunOptions) -> Result<(), Box<dyn Error>> {
    let Target::Runtime(endpoints) = options.target.clone() else {
        return Err(RunError::Unserved.into());
    };
    let cases = run::read_cases(options.cases.as_deref())?;
    let planned = options.selection.plan(cases.clone(), options.repeat);
    let exclusive: BTreeSet<CaseRun> = (0..)
        .map(CaseRun)
        .zip(&planned)
        .filter_map(|(run, planned)| planned.case.exclusive.then_some(run))
        .collect();
    let path = std::env::temp_dir().join(format!("{}.binpb", uuid::Uuid::new_v4()));
    options.history = Some(path.clone());
    let ran = run::run(&options, cases);
    let entries = std::fs::read(&path).map(|bytes| codec::decode_file(&bytes).entries);
    // Gone already if the run did not begin.
    let _ = std::fs::remove_file(&path);
    ran?;
    let entries = entries?;
    let suite = match &entries[..] {
        [first, .., last] => last.at.since(first.at),
        _ => return Err("the run has recorded nothing".into()),
    };
    let (exclusive, shared): (Vec<_>, Vec<_>) = scripts(&entries)
        .into_iter()
        .partition(|script| exclusive.contains(&script.case));
    let scripts = exclusive.iter().chain(&shared);
    let calls: usize = scripts.map(|script| script.calls.len()).sum();
    let bare = Runtime::new()?.block_on(bare_loop(&options, &endpoints, exclusive, shared))?;
    let (suite, bare) = (suite.as_secs_f64(), bare.as_secs_f64());
    println!(
        "overhead: suite {suite:.2} s, bare loop of the same {calls} calls and waits {bare:.2} s, \
         ratio {:.2} ({} cases at once)",
        suite / bare,
        options.threads()
    );
    Ok(())
}

/// Sends the scripts' calls and returns their duration.
async fn bare_loop(
    options: &RunOptions,
    endpoints: &Endpoints,
    exclusive: Vec<Script>,
    shared: Vec<Script>,
) -> Result<Duration, Box<dyn Error>> {
    let client = Client::connect(&endpoints.runtime, &endpoints.images, endpoints.deadline).await?;
    let caller = RecordingClient::new(client.clone());
    let run = RunId::from(uuid::Uuid::new_v4().to_string());
    let (image, _registry) = run::image(&options.drive, &caller, &run, &mut None).await?;
    let socket = endpoints.runtime.socket();
    let logs = LogDirectory::make(options.drive.pods.log_dir.as_deref(), &run, socket)?;
    let replay = || Replay::new(client.clone(), run.clone(), image.clone(), logs.path());
    let places = Arc::new(Semaphore::new(options.threads()));
    let began = host::now();
    let mut running = JoinSet::new();
    for script in shared {
        let place = places.clone().acquire_owned().await;
        let replay = replay();
        running.spawn(async move {
            replay.script(script).await;
            drop(place);
        });
    }
    running.join_all().await;
    for script in exclusive {
        replay().script(script).await;
    }
    let took = host::elapsed(began);
    let log_parent = options.drive.pods.log_dir.as_deref();
    let directories = LogDirectory::found(log_parent)?;
    let (lines, _) = tokio::sync::mpsc::unbounded_channel();
    drive::sweep_host((&caller, socket), Some(&run), directories, lines).await?;
    Ok(took)
}

/// Sends one script's calls, with the new ids of the runtime.
#[derive(Clone, Debug)]
struct Replay {
    client: Client,
    run: RunId,
    image: String,
    log_directory: String,
    ids: Arc<Mutex<BTreeMap<String, String>>>,
    specs: Arc<Mutex<BTreeMap<String, Arc<SandboxSpec>>>>,
}

impl Replay {
    fn new(client: Client, run: RunId, image: String, logs: &Path) -> Self {
        Self {
            client,
            run,
            image,
            log_directory: logs.display().to_string(),
            ids: Arc::default(),
            specs: Arc::default(),
        }
    }

    /// A sandbox's own calls in sequence; between them, each container's calls in sequence, with as
    /// many parallel containers as in the recording.
    async fn script(&self, script: Script) {
        let mut stretch = Vec::new();
        for call in script.calls {
            if script::is_about_sandbox(&call.request) {
                self.stretch(std::mem::take(&mut stretch)).await;
                self.send(call).await;
            } else {
                stretch.push(call);
            }
        }
        self.stretch(stretch).await;
    }

    async fn stretch(&self, calls: Vec<Recorded>) {
        let chains = script::chains(calls);
        let places = Arc::new(Semaphore::new(script::most_at_once(&chains)));
        let mut running = JoinSet::new();
        for chain in chains {
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
        if !call.pause.is_zero() {
            // Only the time has to pass.
            sleep_until(Instant::now() + call.pause).await;
        }
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

    /// The request with this run's labels, its own UID, and the new ids. A stop that succeeded by
    /// its signal has no grace period this time: so soon after its start, a program may miss the
    /// signal, and waiting for the kill would slow the bare loop down.
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
                // A cgroup of its own would be the recorded run's, which is gone.
                cgroup_parent: match spec.memory_bytes {
                    Some(_) => String::new(),
                    None => spec.cgroup_parent.clone(),
                },
                memory_bytes: None,
                // That of the recorded run is gone, too.
                log_directory: self.log_directory.clone(),
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
