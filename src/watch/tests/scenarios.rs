//! A watch of the model, beside a client that makes pods as a kubelet does, in simulated time:
//! restarts, slow and failing calls, pods that are never quiet.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use clap::Parser;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::super::options::WatchOptions;
use super::super::session::Watch;
use super::flaws::Flaw;
use crate::cri::{self, Client, Listener};
use crate::history::codec::StreamDecoder;
use crate::history::{
    ContainerId, ContainerSpec, Labels, PodUid, Reply, Request, SandboxId, SandboxSpec,
};
use crate::host::{Condition, Kernel, Reactor, RuntimeEnd, Simulation};
use crate::model::{Model, NamedFault, fault_named};
use crate::pleg::POD_UID_LABEL;
use crate::run::{Endpoints, Exit, Target};
use crate::verdicts::{Scope, Verdicts};
use crate::{limits, report, workload};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    options: WatchOptions,
}

/// A pod: its sandboxes, and its containers in order.
#[derive(Default)]
struct Pod {
    sandboxes: Vec<(SandboxId, Arc<SandboxSpec>)>,
    containers: Vec<ContainerId>,
    attempts: u32,
}

/// A simulated kubelet, and its runtime.
struct Node {
    model: Arc<Model>,
    client: Client,
    pods: BTreeMap<String, Pod>,
}

impl Node {
    async fn ask(&self, request: Request) -> Reply {
        self.client.call(&request).await.unwrap()
    }

    async fn sandbox(&mut self, name: &str) {
        let pod = self.pods.entry(name.to_owned()).or_default();
        let spec = Arc::new(SandboxSpec {
            name: name.to_owned(),
            namespace: "shop".to_owned(),
            uid: PodUid::from(format!("uid-of-{name}")),
            attempt: u32::try_from(pod.sandboxes.len()).unwrap(),
            log_directory: std::env::temp_dir().display().to_string(),
            ..SandboxSpec::default()
        });
        let Reply::Sandbox(id) = self.ask(Request::RunSandbox(spec.clone())).await else {
            panic!("a sandbox");
        };
        let pod = self.pods.get_mut(name).unwrap();
        pod.sandboxes.push((id, spec));
        self.container(name).await;
    }

    async fn container(&mut self, name: &str) {
        let pod = &self.pods[name];
        let (sandbox, sandbox_spec) = pod.sandboxes.last().unwrap().clone();
        let uid = (POD_UID_LABEL.to_owned(), sandbox_spec.uid.to_string());
        let note = ("note".to_owned(), "x".repeat(3 << 19));
        let spec = ContainerSpec {
            sandbox,
            sandbox_spec,
            binding: name.to_owned(),
            log_path: format!("{}.log", pod.containers.len()),
            image: workload::imported_name(),
            attempt: pod.attempts,
            labels: Labels::from([uid]),
            annotations: (name == "large").then_some(note).into_iter().collect(),
            ..ContainerSpec::default()
        };
        let create = Request::CreateContainer(Arc::new(spec));
        let Reply::Container(id) = self.ask(create).await else {
            panic!("a container");
        };
        self.ask(Request::StartContainer(id.clone())).await;
        let pod = self.pods.get_mut(name).unwrap();
        pod.containers.push(id);
        pod.attempts += 1;
    }

    fn kernel(&self) -> Arc<dyn Simulation> {
        match self.model.kernel() {
            Kernel::Simulated(kernel) => kernel,
            Kernel::Host => panic!("the model has a kernel of its own"),
        }
    }

    fn newest(&self, name: &str) -> &str {
        self.pods[name].containers.last().unwrap().as_str()
    }

    fn exit(&self, name: &str) {
        assert!(self.kernel().kill(self.newest(name)));
    }

    async fn remove(&mut self, name: &str) {
        let pod = self.pods.remove(name).unwrap();
        for (id, _) in &pod.sandboxes {
            self.ask(Request::StopSandbox(id.clone())).await;
        }
        for id in pod.containers {
            self.ask(Request::RemoveContainer(id)).await;
        }
        for (id, _) in pod.sandboxes {
            self.ask(Request::RemoveSandbox(id)).await;
        }
    }

    async fn step(&mut self, step: &str) {
        match step.split_whitespace().collect::<Vec<_>>()[..] {
            ["run", pod] => self.sandbox(pod).await,
            ["exit", pod] => self.exit(pod),
            // The monitor of a container, which notices its exit.
            [word @ ("freeze" | "thaw"), pod] => {
                let (condition, begins) = (Condition::FrozenMonitor, word == "freeze");
                let runs = self.kernel().set(self.newest(pod), condition, begins);
                assert!(runs || !begins);
            }
            ["crash", pod] => {
                self.exit(pod);
                pass("300ms").await;
                self.container(pod).await;
                let pod = self.pods.get_mut(pod).unwrap();
                if pod.containers.len() > 2 {
                    let oldest = pod.containers.remove(0);
                    self.ask(Request::RemoveContainer(oldest)).await;
                }
            }
            ["renew", pod] => {
                let (id, _) = self.pods[pod].sandboxes.last().unwrap().clone();
                self.ask(Request::StopSandbox(id)).await;
                self.sandbox(pod).await;
            }
            ["remove", pod] => self.remove(pod).await,
            ["down"] => self.model.stop_daemon(),
            ["kill"] => drop(self.kernel().end_runtime(RuntimeEnd::Kill)),
            ["up"] => self.model.start_daemon(),
            [time] => pass(time).await,
            _ => panic!("no step: {step}"),
        }
    }

    /// Takes steps: `run a, 3s; 20 * crash a, 2s`.
    async fn follow(&mut self, script: &str) {
        for part in script.split(';') {
            let (times, steps) = part.split_once('*').unwrap_or(("1", part));
            for _ in 0..times.trim().parse().unwrap() {
                for step in steps.split(',') {
                    self.step(step.trim()).await;
                }
            }
        }
    }
}

async fn pass(time: &str) {
    let time = limits::duration(time).unwrap();
    tokio::time::sleep_until(tokio::time::Instant::now() + time).await;
}

/// Watches the model while the script runs, from `|` on if present; returns the end of the watch
/// and the JSON report, followed by the recorded history.
pub(super) fn watched(flaw: Flaw, inject: &[&str], args: &str, script: &str) -> (Exit, Value) {
    let folder = tempfile::tempdir().unwrap();
    let [json, history] = ["report.json", "h.binpb"].map(|name| folder.path().join(name));
    let reactor = Reactor::simulated().unwrap();
    let exit = reactor.runtime().block_on(async {
        let (endpoint, mut listener) = Listener::in_process("model");
        let model = Arc::new(Model::start(flaw.behaviour(), 0));
        let served = model.clone();
        tokio::spawn(async move { cri::serve(served, &mut listener).await });
        let deadline = limits::CALL_DEADLINE;
        let client = Client::connect(&endpoint, &endpoint, deadline)
            .await
            .unwrap();
        let defects: Vec<NamedFault> = inject.iter().map(|it| fault_named(it).unwrap()).collect();
        let target = Target::Relayed {
            endpoints: Endpoints {
                runtime: endpoint.clone(),
                images: endpoint,
                deadline,
            },
            defects,
        };
        let kernel = model.kernel();
        let mut node = Node {
            model,
            client,
            pods: BTreeMap::new(),
        };
        let (before, script) = script.split_once('|').unwrap_or(("1ms", script));
        node.follow(before).await;
        let options = options(args, &json, &history);
        let watch = Watch::begin(&target, kernel, &options, CancellationToken::new())
            .await
            .unwrap();
        let script = async {
            node.follow(&format!("3s; {script}")).await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            ended = watch.run() => ended.unwrap(),
            () = script => unreachable!("it never ends"),
        }
    });
    let report = std::fs::read_to_string(&json).unwrap();
    let report = serde_json::from_str(&report).unwrap();
    assert_eq!(judged_again(&history), report, "{args} {script}");
    (exit, report)
}

/// The JSON report on a recorded history.
fn judged_again(history: &Path) -> Value {
    let mut verdicts = Verdicts::new(Scope::default());
    for entry in StreamDecoder::new(BufReader::new(File::open(history).unwrap())) {
        verdicts.push(&Arc::new(entry.unwrap()));
    }
    let mut json = Vec::new();
    report::json::write(&verdicts.report(None), &mut json).unwrap();
    serde_json::from_slice(&json).unwrap()
}

fn options(args: &str, json: &Path, history: &Path) -> WatchOptions {
    let [json, history] = [json, history].map(|path| path.to_str().unwrap());
    let words = ["watch", "--json", json, "--history", history].into_iter();
    Line::parse_from(words.chain(args.split_whitespace())).options
}

/// The violations, and the errors of the watch.
fn found(report: &Value) -> String {
    let outcomes = report["outcomes"].as_array().unwrap().iter();
    let failed = outcomes.filter(|outcome| outcome["verdict"] == "fail");
    let failed: Vec<String> = failed.map(|outcome| outcome["id"].to_string()).collect();
    format!("{} {}", failed.join(" "), report["faults"])
}

/// A pod that changes constantly, for some ten minutes.
const NEVER_QUIET: &str = "run a; run b; 200 * crash a, 2700ms";

/// A name, the flaw of calls, the options, the script, the end, and a part of the findings.
const SCENARIOS: &[(&str, Flaw, &str, &str, Exit, &str)] = &[
    (
        "a quick restart",
        Flaw::None,
        "--for 60s",
        "run a; run b; 3s; exit a; down; 200ms; up; crash b; 10s",
        Exit::Conformant,
        "",
    ),
    (
        "a restart of 2 s",
        Flaw::None,
        "--for 60s",
        "run a; run b; 3s; crash a; down; 2s; up; crash b; 10s",
        Exit::Conformant,
        "",
    ),
    (
        "a slow restart",
        Flaw::None,
        "--for 120s",
        "run a; run b; 3s; crash a; down; 30s; up; crash b; 10s",
        Exit::Conformant,
        "",
    ),
    (
        "five restarts in a burst",
        Flaw::None,
        "--for 120s",
        "run a; run b; run c; 5 * crash a, crash b, down, 1500ms, up, crash c, 5s",
        Exit::Conformant,
        "",
    ),
    (
        "pods that are never quiet",
        Flaw::None,
        "--for 11m",
        NEVER_QUIET,
        Exit::Conformant,
        "",
    ),
    (
        "a sandbox made anew",
        Flaw::None,
        "--for 90s",
        "run a; 15s; renew a; 15s; remove a; run b; 2s; renew b; 2s; remove b; 20s",
        Exit::Conformant,
        "",
    ),
    (
        "lists that fail for ever",
        Flaw::ListsFail,
        "--for 40s",
        "run a; crash a; 10s; remove a",
        Exit::Undecided,
        "only 0 relists succeeded",
    ),
    (
        "lists that take 6 s",
        Flaw::ListsTake6s,
        "--for 180s",
        "run a; 20s; crash a; 40s; remove a",
        Exit::Conformant,
        "",
    ),
    (
        "a status that hangs",
        Flaw::StatusHangs,
        "--for 90s",
        "run a; run stuck; 10s; exit stuck",
        Exit::Undecided,
        "ContainerStatus",
    ),
    (
        "kill -9 of the runtime",
        Flaw::None,
        "--for 60s",
        "run a; run b; 10s; crash a; kill; exit b; 2s; up; 5s; crash a",
        Exit::Conformant,
        "",
    ),
    (
        "lists of 6 MB",
        Flaw::LongLists,
        "--for 20s",
        "run a; 5s; crash a",
        Exit::Conformant,
        "",
    ),
    (
        "events and statuses of 1.5 MB",
        Flaw::None,
        "--for 30s",
        "run large; 5 * crash large, 2s; remove large",
        Exit::Conformant,
        "",
    ),
    (
        "a dead process that is reported as running",
        Flaw::None,
        "--for 60s",
        "run a; 10s; freeze a; exit a",
        Exit::NonConformant,
        "INV-11",
    ),
    (
        "a process that was never seen",
        Flaw::None,
        "--for 60s",
        "run a; freeze a; exit a | run b",
        Exit::Conformant,
        "",
    ),
    (
        "an exit that is noticed within 4 s",
        Flaw::None,
        "--for 60s",
        "run a; 10s; freeze a; exit a; 4s; thaw a",
        Exit::Conformant,
        "",
    ),
    (
        "an exit while the runtime is away",
        Flaw::None,
        "--for 60s",
        "run a; 10s; down; exit a; 7s; up",
        Exit::Conformant,
        "",
    ),
    (
        "a container that is UNKNOWN after a restart",
        Flaw::Unknown,
        "--for 60s",
        "run lost; 10s; down; exit lost; 2s; up",
        Exit::NonConformant,
        "INV-11",
    ),
    (
        "one that was never seen otherwise",
        Flaw::Unknown,
        "--for 60s",
        "run stray; run a | 10s; exit a",
        Exit::Conformant,
        "",
    ),
    (
        "nothing is wrong",
        Flaw::None,
        "--for 40s",
        "run a; crash a; 10s; remove a",
        Exit::Conformant,
        "",
    ),
];

#[test]
fn no_alarm_is_false_and_no_pass() {
    use Exit::NonConformant;
    let mut wrong = Vec::new();
    let mut check = |name, (ended, report): (Exit, Value), exit, text: &str| {
        let found = found(&report);
        if ended != exit || !found.contains(text) {
            wrong.push(format!("{name}: {ended:?}, {found}"));
        }
    };
    for (name, flaw, args, script, exit, found_of_it) in SCENARIOS {
        check(*name, watched(*flaw, &[], args, script), *exit, found_of_it);
    }
    let ended = watched(Flaw::None, &["drop-stopped"], "--for 11m", NEVER_QUIET);
    check(
        "STOPPED lost by pods that are never quiet",
        ended,
        NonConformant,
        "INV-11",
    );
    let slow = "run a; 20s; crash a; 40s";
    let ended = watched(Flaw::ListsTake6s, &["drop-stopped"], "--for 180s", slow);
    check(
        "STOPPED lost beside slow lists",
        ended,
        NonConformant,
        "INV-11",
    );
    assert_eq!(wrong, Vec::<String>::new());
}
