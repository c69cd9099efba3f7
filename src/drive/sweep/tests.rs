//! A refused removal is tried again for a limited time.
//!
//! Long, because one simulated runtime serves all of these tests.

use std::future;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::mpsc::unbounded_channel;
use tokio::time::Instant;
use tokio_stream::Empty;

use super::*;
use crate::cri::{Backend, Client, Listener, serve};
use crate::drive::session::{KUBELET_LABELS, NAMESPACE, PROCESS_LABEL};
use crate::history::{
    ContainerId, ContainerListing, ContainerState, Event, PodUid, RuntimeNanos, RuntimeVersion,
    SandboxMetadata, SandboxSpec, SandboxState, Text,
};
use crate::host::{self, BootTicks, OwnId, Reactor};
use crate::model::{Behaviour, Model};

/// A runtime with a sandbox and a container in it, which it refuses to remove so often, with those
/// of another run, with a container of either run whose sandbox is gone, and with a sandbox of
/// another namespace that has the label of the first run. It lists them for every filter.
struct Refusing {
    name: &'static str,
    refusals: u32,
    asked: AtomicU32,
    code: StatusCode,
    /// The calls that stop and remove.
    changes: Mutex<Vec<String>>,
}

/// The metadata that agrees with these labels.
fn pod_of(labels: &Labels) -> SandboxMetadata {
    let [name, namespace, uid] = KUBELET_LABELS.map(|label| labels.get(label));
    let text = |value: Option<&Text>| value.cloned().unwrap_or_default();
    SandboxMetadata {
        name: text(name),
        namespace: text(namespace),
        uid: PodUid::from(text(uid)),
        attempt: 0,
    }
}

fn listed(id: &str, labels: Labels) -> SandboxListing {
    SandboxListing {
        id: SandboxId::from(id),
        metadata: Some(pod_of(&labels)),
        state: SandboxState::Ready,
        created_at: RuntimeNanos(1),
        labels,
        ..SandboxListing::default()
    }
}

/// The labels of an object of a run whose process has ended.
fn of_run(run: &str) -> Labels {
    let [name, namespace, uid] = KUBELET_LABELS;
    Labels::from([
        (RUN_LABEL, run),
        (PROCESS_LABEL, "1-1"),
        (name, "ord-01-pod-0a1b2c3d"),
        (namespace, NAMESPACE),
        (uid, "0a1b2c3d-0000-4000-8000-000000000000"),
    ])
}

/// These labels with one of another value.
fn with(mut labels: Labels, label: &str, value: &str) -> Labels {
    labels.insert(label, value);
    labels
}

fn inside(id: &str, sandbox: &str, run: &str) -> ContainerListing {
    ContainerListing {
        id: ContainerId::from(id),
        sandbox: SandboxId::from(sandbox),
        metadata: None,
        state: ContainerState::Running,
        created_at: RuntimeNanos(1),
        labels: of_run(run),
        image: None,
        ..ContainerListing::default()
    }
}

impl Backend for Refusing {
    type Events = Empty<Result<Event, CallFault>>;

    async fn call(&self, request: Request) -> Result<Reply, CallFault> {
        let change = match &request {
            Request::StopContainer { container, grace } => {
                Some(format!("stop {container} {grace:?}"))
            }
            Request::RemoveContainer(id) => Some(format!("remove {id}")),
            Request::StopSandbox(id) => Some(format!("stop {id}")),
            Request::RemoveSandbox(id) => Some(format!("remove {id}")),
            _ => None,
        };
        self.changes.lock().unwrap().extend(change);
        match request {
            Request::ListSandboxes { .. } => {
                let forged = with(of_run(RUN), KUBELET_LABELS[1], "prod");
                Ok(Reply::Sandboxes(vec![
                    listed("pod", of_run(RUN)),
                    listed("other", of_run(OTHER)),
                    listed(FORGED, forged),
                ]))
            }
            Request::ListContainers { .. } => {
                let listed = [
                    inside("c", "pod", RUN),
                    inside("theirs", "other", OTHER),
                    inside("orphan", "gone", RUN),
                    inside("their-orphan", "gone", OTHER),
                    ContainerListing {
                        labels: with(of_run(RUN), KUBELET_LABELS[1], "prod"),
                        ..inside("forged-orphan", "gone", RUN)
                    },
                ];
                Ok(Reply::Containers(listed.to_vec()))
            }
            Request::RunSandbox(_) => Ok(Reply::Sandbox(SandboxId::from(ID))),
            Request::Version => Ok(Reply::Version(RuntimeVersion {
                runtime_name: self.name.to_owned(),
                ..RuntimeVersion::default()
            })),
            Request::ListImages => Ok(Reply::Images(Vec::new())),
            Request::RemoveSandbox(_)
                if self.asked.fetch_add(1, Ordering::Relaxed) < self.refusals =>
            {
                Err(CallFault {
                    code: self.code,
                    message: "container is in starting state".to_owned(),
                    deadline: Duration::ZERO,
                })
            }
            _ => Ok(Reply::Done),
        }
    }

    async fn subscribe(&self, _: Option<Duration>) -> Result<Self::Events, CallFault> {
        future::pending().await
    }
}

/// How a sweep ends, and how often a removal was asked for. No time passes but by waiting.
fn swept(refusals: u32, code: StatusCode) -> (Sweep, u32) {
    let (done, backend) = swept_from("a-runtime", refusals, code);
    (done, backend.asked.load(Ordering::Relaxed))
}

/// A client of a runtime that refuses nothing if `refusals` is 0.
async fn connected(refusals: u32, code: StatusCode) -> (RecordingClient, Arc<Refusing>) {
    connected_to("a-runtime", refusals, code).await
}

async fn connected_to(
    name: &'static str,
    refusals: u32,
    code: StatusCode,
) -> (RecordingClient, Arc<Refusing>) {
    let backend = Arc::new(Refusing {
        name,
        refusals,
        asked: AtomicU32::new(0),
        code,
        changes: Mutex::default(),
    });
    let (endpoint, mut listener) = Listener::in_process("refusing");
    let served = backend.clone();
    tokio::spawn(async move { serve(served, &mut listener).await });
    let client = Client::connect(&endpoint, &endpoint, Duration::from_secs(60)).await;
    (RecordingClient::new(client.expect("it is served")), backend)
}

fn swept_from(name: &'static str, refusals: u32, code: StatusCode) -> (Sweep, Arc<Refusing>) {
    let reactor = Reactor::simulated().expect("a reactor");
    reactor.runtime().block_on(async {
        let (client, backend) = connected_to(name, refusals, code).await;
        let run = RunId::from(RUN);
        let done = sweep((&client, &Kernel::Host), &run, &[]).await;
        (done.expect("it can list"), backend)
    })
}

#[test]
fn containers_are_killed_before_their_sandbox_is_stopped_and_other_runs_are_left_alone() {
    let (done, backend) = swept_from("a-runtime", 0, StatusCode::UNKNOWN);
    assert_eq!(done.removed, ["sandbox pod", "container orphan"]);
    let skipped = format!(
        "sandbox {FORGED} of the pod prod/ord-01-pod-0a1b2c3d carries the suite's labels, but not \
         its name: left alone"
    );
    assert_eq!(done.skipped[0], skipped);
    let changes = backend.changes.lock().unwrap();
    let of_sandbox = ["stop c 0ns", "stop pod", "remove pod"];
    let of_orphan = ["stop orphan 0ns", "remove orphan"];
    assert_eq!(*changes, [&of_sandbox[..], &of_orphan].concat());
}

/// CRI-O 1.36 would end with a nil pointer.
#[test]
fn a_container_whose_sandbox_is_gone_stays_on_cri_o_and_is_reported() {
    let (done, backend) = swept_from("cri-o", 0, StatusCode::UNKNOWN);
    assert_eq!(done.removed, ["sandbox pod"]);
    let reported = "container orphan, whose sandbox is gone: CRI-O would panic if";
    assert!(
        done.failures[0].starts_with(reported),
        "{:?}",
        done.failures
    );
    let changes = backend.changes.lock().unwrap();
    assert_eq!(*changes, ["stop c 0ns", "stop pod", "remove pod"]);
}

/// The leftovers of all runs; a run on another runtime is named with its runtime.
#[test]
fn containers_and_log_directories_are_listed_as_left() {
    let root = tempfile::tempdir().expect("a directory");
    let parent = root.path().join("var/log");
    std::fs::create_dir_all(&parent).expect("a directory");
    let run = RunId::from(RUN);
    let logs = LogDirectory::make(Some(&parent), &run, Some(Path::new(SOCKET)));
    let logs = logs.expect("it is made").path().to_owned();
    // The run of another process, which has ended.
    let ended = |text: &str| text.replace(&host::this_process(), "1-1");
    for records in std::fs::read_dir(&logs).expect("it is there") {
        let records = records.expect("a file").path();
        let text = std::fs::read_to_string(&records).expect("it is there");
        std::fs::write(&records, ended(&text)).expect("it is written");
    }
    let path = ended(logs.to_str().expect("a path"));
    std::fs::rename(&logs, &path).expect("it is moved");
    let listed = |socket: &str| {
        let runtime = tokio::runtime::Runtime::new().expect("a reactor");
        runtime.block_on(async {
            let (client, _) = connected(0, StatusCode::UNKNOWN).await;
            list_leftovers(&client, Some(Path::new(socket)), root.path()).await
        })
    };
    let named = format!("log directory {path}");
    let id = ID.replace("3f0c", "6c3d");
    let (shim, _folder, begins) = unexplained_shim(&id);
    let left = listed(SOCKET).expect("it can list");
    assert!(left.iter().any(|it| it.starts_with(&begins)), "{left:?}");
    let reactor = tokio::runtime::Runtime::new().expect("a reactor");
    let swept = reactor.block_on(async {
        let (client, _) = connected(0, StatusCode::UNKNOWN).await;
        sweep((&client, &Kernel::Host), &run, &[]).await
    });
    let skipped = swept.expect("it can list").skipped;
    assert!(
        skipped.iter().any(|it| it.starts_with(&begins)),
        "{skipped:?}"
    );
    assert!(!was_killed(shim));
    let left = listed(SOCKET).expect("it can list");
    for orphan in ["orphan", "their-orphan"] {
        let orphan = format!("container {orphan}, whose sandbox is gone");
        assert!(left.contains(&orphan), "{left:?}");
    }
    assert!(left.contains(&named), "{left:?}");
    let left = listed("/run/b/runtime.sock").expect("it can list");
    let elsewhere = format!("{named} of a run on unix://{SOCKET}");
    assert!(left.contains(&elsewhere), "{left:?}");
}

#[test]
fn a_pod_is_of_a_run_only_if_its_labels_and_its_metadata_agree() {
    let [name, namespace, uid] = KUBELET_LABELS;
    let own = listed(ID, of_run(RUN));
    let is_own = |pod: &SandboxListing, made: &OwnIds| {
        owner_of_sandbox(pod, made).is_some_and(|owner| owner.run() == RUN)
    };
    let made_by_none = OwnIds::default();
    assert!(is_own(&own, &made_by_none));
    let other = "1a1b2c3d-0000-4000-8000-000000000000";
    let forged = [
        (namespace, "prod"),
        (name, "ord-01-pod"),
        (name, "0a1b2c3d"),
        (uid, other),
        (uid, ""),
        (uid, "0a1b2c3d"),
        (RUN_LABEL, "x"),
        (PROCESS_LABEL, ""),
    ];
    for (label, value) in forged {
        let pod = listed(ID, with(of_run(RUN), label, value));
        assert!(!is_own(&pod, &made_by_none), "{label}: {value}");
    }
    for (label, value) in [
        (namespace, "shop"),
        (name, "prod-db"),
        (uid, other),
        (uid, ""),
    ] {
        let pod = pod_of(&with(own.labels.clone(), label, value));
        let pod = SandboxListing {
            metadata: Some(pod),
            ..own.clone()
        };
        assert!(!is_own(&pod, &made_by_none), "{label}: {value}");
    }
    let nameless = SandboxListing {
        metadata: None,
        ..own.clone()
    };
    assert!(!is_own(&nameless, &made_by_none));
    let labels = Labels::from([(RUN_LABEL, RUN), (PROCESS_LABEL, "1-1")]);
    assert!(!is_own(&listed(ID, labels), &made_by_none));
    // A case leaves the UID out: only the record of its call shows whose the pod is.
    let without_uid = listed(ID, with(of_run(RUN), uid, ""));
    let (id, since) = (ID.to_owned(), BootTicks::now());
    assert!(is_own(
        &without_uid,
        &[OwnId { id, since }].into_iter().collect()
    ));
}

/// It is no leftover, and a case that would harm other pods sees it.
#[test]
fn a_pod_of_another_namespace_with_a_forged_label_is_foreign() {
    let reactor = Reactor::simulated().expect("a reactor");
    let nowhere = tempfile::tempdir().expect("a directory");
    let (foreign, left) = reactor.runtime().block_on(async {
        let (client, _) = connected(0, StatusCode::UNKNOWN).await;
        let foreign = foreign_pods(&client).await.expect("it can list");
        (foreign, list_leftovers(&client, None, nowhere.path()).await)
    });
    assert_eq!(foreign.all, 1);
    let left = left.expect("it can list");
    assert!(left.contains(&"sandbox pod".to_owned()), "{left:?}");
    assert!(left.iter().all(|left| !left.contains("forged")), "{left:?}");
}

#[test]
fn a_start_that_goes_on_is_waited_for() {
    let (done, asked) = swept(3, StatusCode::UNKNOWN);
    assert_eq!(
        (done.removed[0].as_str(), done.failures),
        ("sandbox pod", vec![])
    );
    assert_eq!(asked, 4);
}

#[test]
fn constant_refusal_is_reported_after_a_while() {
    let (done, asked) = swept(u32::MAX, StatusCode::UNKNOWN);
    assert_eq!(
        done.failures,
        ["sandbox pod: UNKNOWN: container is in starting state"]
    );
    assert!((2..=501).contains(&asked), "{asked} times in five seconds");
}

#[test]
fn a_runtime_that_is_gone_refuses_nothing() {
    let (done, asked) = swept(1, StatusCode::UNAVAILABLE);
    assert_eq!(done.failures.len(), 1);
    assert_eq!(asked, 1);
}

#[test]
fn processes_are_looked_for_of_the_sandboxes_to_remove_and_their_containers() {
    let [one, two, other] = ["one", "two", "other"].map(SandboxId::from);
    let containers = [("a", &one), ("b", &two), ("c", &other)];
    let containers = containers.map(|(id, of)| inside(id, of.as_str(), RUN));
    let ids = Ids::new(&[one, two.clone()], &containers, |id| *id == two);
    let set = |ids: [&str; 2]| ids.map(str::to_owned).into();
    assert_eq!(
        (ids.removed, ids.refused),
        (set(["a", "one"]), set(["b", "two"]))
    );
}

const RUN: &str = "6f1c2f0e-0f6a-4c1e-9b52-9a256f2f3c1d";
const OTHER: &str = "7a1c2f0e-0f6a-4c1e-9b52-9a256f2f3c1d";
const ID: &str = "3f0c2a9b7d5e4816a2c4e6f8091b3d5f7a9c1e3052647f8e9dacbf1d2e3f4a5b";
const SOCKET: &str = "/run/a/runtime.sock";
const FORGED: &str = "forged-2a9b7d5e4816a2c4e6f8091b3d5f7a9c";

/// A shell that waits for its input, in the guise of an OCI runtime that creates this container.
fn guise(id: &str) -> Child {
    let mut process = Command::new("sh");
    let process = process.arg0("crun").args(["-s", "create", "-b", "/b", id]);
    process.stdin(Stdio::piped()).spawn().expect("a shell")
}

/// Whether the process was killed.
fn was_killed(mut process: Child) -> bool {
    // Without its input it ends by itself.
    drop(process.stdin.take());
    process.wait().expect("its end").signal() == Some(9)
}

/// Waits until a process that begins now has a later start time than earlier ones.
fn later() -> BootTicks {
    let before = BootTicks::now();
    loop {
        let now = BootTicks::now();
        if now > before {
            return now;
        }
        std::thread::yield_now();
    }
}

/// The clean-up at a socket of a run that has noted the id at this time, and whether its log
/// directory is still there.
fn cleaned(since: BootTicks, socket: &str) -> (Sweep, bool) {
    cleaned_of(ID, since, socket)
}

fn cleaned_of(id: &str, since: BootTicks, socket: &str) -> (Sweep, bool) {
    let parent = tempfile::tempdir().expect("a directory");
    let run = RunId::from(RUN);
    let logs = LogDirectory::make(Some(parent.path()), &run, Some(Path::new(SOCKET)));
    let logs = logs.expect("it is made");
    let id = id.to_owned();
    logs.note(&OwnId { id, since }).expect("it is written");
    let runtime = tokio::runtime::Runtime::new().expect("a reactor");
    let done = runtime.block_on(async {
        let (client, _) = connected(0, StatusCode::UNKNOWN).await;
        let place = (&client, Some(Path::new(socket)));
        let directories = LogDirectory::found(Some(parent.path())).expect("it is there");
        let (lines, _) = unbounded_channel();
        sweep_host(place, Some(&run), directories, lines).await
    });
    (done.expect("it can list"), logs.path().exists())
}

/// As after a killed run: the process of a container that the runtime no longer lists. Each of its
/// neighbours is left alone: an older process, and that of a run on another runtime.
#[test]
fn cleanup_ends_only_processes_of_removed_objects() {
    let before = later();
    let process = guise(ID);
    let (done, is_left) = cleaned(before, SOCKET);
    assert!(was_killed(process));
    assert_eq!(
        (done.processes.len(), done.failures, is_left),
        (1, vec![], false)
    );

    let older = guise(ID);
    let (done, is_left) = cleaned(later(), SOCKET);
    assert!(!was_killed(older));
    assert_eq!((done.processes, is_left), (vec![], false));

    let elsewhere = guise(ID);
    let (done, is_left) = cleaned(before, "/run/b/runtime.sock");
    assert!(!was_killed(elsewhere));
    assert_eq!((done.processes, is_left), (vec![], true));
    let skipped = done.skipped.join("\n");
    let there = "on unix:///run/a/runtime.sock: the log directories and processes of ";
    assert!(skipped.contains(&format!("{there}{RUN} (")), "{skipped}");
    let gone = "if that runtime will not be back, remove ";
    assert!(skipped.contains(gone), "{skipped}");
}

/// A process in the guise of a shim of this sandbox, its directory, and how it is named.
fn unexplained_shim(id: &str) -> (Child, tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a directory");
    let mut shim = Command::new("sh");
    let shim = shim.arg0("containerd-shim-runc-v2").current_dir(&folder);
    let words = ["-s", "--", "-namespace", "k8s.io", "-id", id];
    let shim = shim.args(words).stdin(Stdio::piped()).spawn().expect("sh");
    let named = format!(
        "process {} (containerd-shim-runc-v2) of sandbox {id} stays",
        shim.id()
    );
    (shim, folder, named)
}

/// As after a run that was killed while the runtime made a sandbox, and removed its files.
#[test]
fn a_shim_of_which_nothing_shows_who_made_it_is_named_and_left_alone() {
    let id = ID.replace("3f0c", "4a1d");
    // Of the run, without a process.
    let of_nothing = ID.replace("3f0c", "5b2e");
    let (mut shim, folder, begins) = unexplained_shim(&id);
    let is_named = |sweep: &Sweep| sweep.skipped.iter().any(|it| it.starts_with(&begins));
    let (done, _) = cleaned_of(&of_nothing, later(), SOCKET);
    assert!(is_named(&done), "{:?}", done.skipped);
    std::fs::write(folder.path().join("config.json"), "{}").expect("it is written");
    let (done, _) = cleaned_of(&of_nothing, later(), SOCKET);
    assert!(!is_named(&done), "{:?}", done.skipped);
    assert_eq!(shim.try_wait().expect("its state"), None);
    assert!(!was_killed(shim));
}

/// A runtime that answers with the id of something that was there before.
#[test]
fn the_processes_of_an_id_that_a_runtime_only_names_are_left_alone() {
    let process = guise(ID);
    later();
    let reactor = tokio::runtime::Runtime::new().expect("a reactor");
    let (answer, again, done) = reactor.block_on(async {
        let (client, _) = connected(0, StatusCode::UNKNOWN).await;
        let make = || Request::RunSandbox(Arc::default());
        let answer = client.call(None, make()).await;
        client.know_foreign([ID.to_owned()]);
        let (other, _) = connected(0, StatusCode::UNKNOWN).await;
        other.know_foreign([ID.to_owned()]);
        let again = other.call(None, make()).await;
        let run = RunId::from(RUN);
        (
            answer,
            again,
            sweep((&client, &Kernel::Host), &run, &[]).await,
        )
    });
    assert_eq!(answer, Ok(Reply::Sandbox(SandboxId::from(ID))));
    assert!(!was_killed(process), "it is older than the call");
    assert_eq!(done.expect("it can list").processes, Vec::<String>::new());
    let message = again.expect_err("it is foreign").message;
    let expected = format!(
        "the answer is {ID}, which the call has not created: the runtime listed it when the run \
         began"
    );
    assert_eq!(message, expected);
}

/// The runtime lists what a call has made with the namespace of another pod.
#[test]
fn a_made_sandbox_that_is_listed_as_another_pod_keeps_the_records() {
    let parent = tempfile::tempdir().expect("a directory");
    let run = RunId::from(RUN);
    let logs = LogDirectory::make(Some(parent.path()), &run, Some(Path::new(SOCKET)));
    let logs = logs.expect("it is made");
    let (id, since) = (FORGED.to_owned(), BootTicks::now());
    logs.note(&OwnId { id, since }).expect("it is noted");
    let found = LogDirectory::found(Some(parent.path())).expect("it can be listed");
    let reactor = Reactor::simulated().expect("a reactor");
    let done = reactor.runtime().block_on(async {
        let (client, _) = connected(0, StatusCode::UNKNOWN).await;
        let place = (&client, Some(Path::new(SOCKET)));
        let (lines, _) = unbounded_channel();
        sweep_host(place, Some(&run), found, lines).await
    });
    let done = done.expect("it can list");
    let left = format!(
        "sandbox {FORGED}, which a call of the run has made, is listed with the name or the labels \
         of another pod: left alone"
    );
    assert_eq!(done.failures, [left]);
    assert!(!done.removed.iter().any(|it| it.contains(FORGED)));
    assert!(logs.path().exists());
}

/// The model never answers the first stop of a sandbox.
#[test]
fn one_call_that_hangs_holds_up_no_other_object() {
    static STOPS: AtomicU32 = AtomicU32::new(0);
    const PODS: u32 = 12;
    let mut behaviour = Behaviour::default();
    behaviour.replies.push(|request, answer| {
        let stops = matches!(request, Request::StopSandbox(_));
        if stops && STOPS.fetch_add(1, Ordering::Relaxed) == 0 {
            answer.after = None;
        }
    });
    let reactor = Reactor::simulated().expect("a reactor");
    let removed_after = reactor.runtime().block_on(async {
        let (endpoint, mut listener) = Listener::in_process("hanging");
        let model = Arc::new(Model::start(behaviour, 0));
        tokio::spawn(async move { serve(model, &mut listener).await });
        let bound = Duration::from_secs(60);
        let client = Client::connect(&endpoint, &endpoint, bound).await;
        let client = RecordingClient::new(client.expect("it is served"));
        for pod in 0..PODS {
            let uid = format!("0a1b2c3d-0000-4000-8000-{pod:012}");
            let labels = with(of_run(RUN), KUBELET_LABELS[2], &uid);
            let pod = pod_of(&labels);
            let spec = SandboxSpec {
                name: pod.name.to_string(),
                namespace: pod.namespace.to_string(),
                uid: pod.uid,
                labels,
                ..SandboxSpec::default()
            };
            let made = client.call(None, Request::RunSandbox(Arc::new(spec))).await;
            made.expect("it is made");
        }
        let began = Instant::now();
        let (lines, mut received) = unbounded_channel();
        let run = RunId::from(RUN);
        let sweeping = sweep_host((&client, None), Some(&run), Vec::new(), lines);
        let removed = async {
            let mut removed = Vec::new();
            while let Some(line) = received.recv().await {
                removed.extend(line.starts_with("removed ").then(|| began.elapsed()));
            }
            removed
        };
        tokio::join!(sweeping, removed).1
    });
    let soon = |after: &&Duration| **after < Duration::from_secs(5);
    let counts = (
        removed_after.len(),
        removed_after.iter().filter(soon).count(),
    );
    assert_eq!(
        counts,
        (PODS as usize, PODS as usize - 1),
        "{removed_after:?}"
    );
}
