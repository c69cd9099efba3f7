//! A real runtime for the tests: its objects, and which of them belong to a run.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cri_event_conformance::testing::cri::{Client, Endpoint};
use cri_event_conformance::testing::drive::{NAMESPACE, RUN_LABEL};
use cri_event_conformance::testing::history::{
    CallFault, ContainerState, Labels, PodUid, Reply, Request, SandboxId, SandboxListing,
    SandboxSpec, SandboxState,
};
use cri_event_conformance::testing::workload::{self, Image, Registry};
use tokio::runtime::Runtime;

use crate::Needs;
use crate::suite::{Running, Suite, suite};

/// The timeout of all waits.
const BOUND: Duration = Duration::from_secs(20);
const TICK: Duration = Duration::from_millis(20);

/// A runtime, and its endpoint.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) endpoint: String,
    runtime: Runtime,
    own: Option<Own>,
}

/// A runtime started for one test, by `ci/containerd` or `ci/crio`.
#[derive(Debug)]
struct Own {
    ctl: PathBuf,
    name: String,
}

impl Node {
    /// The runtime that a test needs, or the variable that would name it.
    pub(crate) fn find(needs: Needs) -> Result<Self, &'static str> {
        let variable = |name| std::env::var(name).map_err(|_| name);
        let (endpoint, own) = match needs {
            Needs::Shared => (variable("CRI_TEST_ENDPOINT")?, None),
            Needs::Old => (variable("CRI_TEST_ENDPOINT_1_6")?, None),
            Needs::Prometheus => {
                variable("CRI_TEST_PROMETHEUS")?;
                (variable("CRI_TEST_ENDPOINT")?, None)
            }
            Needs::Own => {
                let ctl = PathBuf::from(variable("CRI_TEST_CONTAINERD_CTL")?);
                let (endpoint, own) = Own::up(ctl, &["2.1"]);
                (endpoint, Some(own))
            }
            Needs::Crio => {
                let bin = variable("CRI_TEST_CRIO_BIN")?;
                let ctl = PathBuf::from(variable("CRI_TEST_CONTAINERD_CTL")?);
                let (endpoint, own) = Own::up(ctl.with_file_name("crio"), &["--bin", &bin]);
                (endpoint, Some(own))
            }
        };
        Ok(Self {
            endpoint,
            runtime: Runtime::new().unwrap(),
            own,
        })
    }

    /// Runs a test next to a foreign pod, and checks that the pod is unchanged.
    pub(crate) fn next_to_a_foreign_pod(&self, test: fn(&Self)) {
        let uid = uuid::Uuid::new_v4().to_string();
        let spec = SandboxSpec {
            binding: "foreign".to_owned(),
            name: format!("foreign-{uid}"),
            // Even in our namespace it is not ours: it has not all labels.
            namespace: NAMESPACE.to_owned(),
            uid: PodUid::from(uid),
            labels: Labels::from([("app".to_owned(), "somebody-elses".to_owned())]),
            ..SandboxSpec::default()
        };
        let Reply::Sandbox(id) = self.ask(&Request::RunSandbox(Arc::new(spec))) else {
            unreachable!("RunPodSandbox is answered by a sandbox");
        };
        let before = self.sandbox(&id);
        assert!(before.is_some());
        let tested = catch_unwind(AssertUnwindSafe(|| test(self)));
        let after = self.sandbox(&id);
        self.ask(&Request::StopSandbox(id.clone()));
        self.ask(&Request::RemoveSandbox(id));
        tested.unwrap_or_else(|panic| resume_unwind(panic));
        assert_eq!(after, before, "somebody else's pod");
    }

    /// The program with these arguments, at this runtime.
    pub(crate) fn suite(&self, args: &[&str]) -> Suite {
        suite(args.iter().chain(&["-r", &self.endpoint]))
    }

    /// Calls the runtime on a new connection: it may have been restarted.
    pub(crate) fn ask(&self, request: &Request) -> Reply {
        self.try_to(request).unwrap()
    }

    /// The same, if the runtime may refuse.
    pub(crate) fn try_to(&self, request: &Request) -> Result<Reply, CallFault> {
        let endpoint: Endpoint = self.endpoint.parse().unwrap();
        let asked = async {
            let client = Client::connect(&endpoint, &endpoint, BOUND).await.unwrap();
            client.call(request).await
        };
        self.runtime.block_on(asked)
    }

    /// Whether the sandbox exists, and is ready.
    pub(crate) fn is_ready(&self, id: &SandboxId) -> bool {
        let listed = self.sandbox(id);
        listed.is_some_and(|sandbox| sandbox.state == SandboxState::Ready)
    }

    fn sandbox(&self, id: &SandboxId) -> Option<SandboxListing> {
        self.sandboxes(Labels::new())
            .into_iter()
            .find(|sandbox| sandbox.id == *id)
    }

    fn sandboxes(&self, labels: Labels) -> Vec<SandboxListing> {
        let Reply::Sandboxes(listed) = self.ask(&Request::sandboxes(labels)) else {
            unreachable!("ListPodSandbox is answered by sandboxes");
        };
        listed
    }

    pub(crate) fn images(&self) -> Vec<String> {
        let Reply::Images(images) = self.ask(&Request::ListImages) else {
            unreachable!("ListImages is answered by images");
        };
        images.into_iter().flat_map(|image| image.tags).collect()
    }

    /// The sandboxes, containers and images of a run, each as a line.
    pub(crate) fn left_of(&self, run: &str) -> Vec<String> {
        let labels = Labels::from([(RUN_LABEL.to_owned(), run.to_owned())]);
        let sandboxes = self.sandboxes(labels.clone()).into_iter();
        let mut left: Vec<_> = sandboxes
            .map(|sandbox| format!("sandbox {}", sandbox.id))
            .collect();
        let request = Request::containers(None, labels);
        if let Reply::Containers(containers) = self.ask(&request) {
            left.extend(containers.iter().map(|c| format!("container {}", c.id)));
        }
        let images = self.images().into_iter().filter(|tag| tag.contains(run));
        left.extend(images.map(|tag| format!("image {tag}")));
        left
    }

    /// The sandboxes and images of all runs.
    pub(crate) fn left_of_all(&self) -> Vec<String> {
        let mut sandboxes = self.sandboxes(Labels::new());
        sandboxes.retain(|sandbox| sandbox.labels.contains_key(RUN_LABEL));
        let mut left: Vec<_> = sandboxes
            .into_iter()
            .map(|sandbox| sandbox.id.to_string())
            .collect();
        let images = self.images().into_iter();
        left.extend(images.filter(|tag| tag.contains(workload::REPOSITORY)));
        left
    }

    /// Waits until a container of the run is running, and returns the run's id.
    #[track_caller]
    pub(crate) fn wait_for_a_container(&self, running: &Running) -> String {
        let run = run_id(&running.wait_for("\nrun "));
        let request =
            Request::containers(None, Labels::from([(RUN_LABEL.to_owned(), run.clone())]));
        self.wait_until(&request, |reply| {
            let Reply::Containers(listed) = reply else {
                unreachable!("ListContainers is answered by containers");
            };
            let mut states = listed.iter().map(|container| container.state);
            states.any(|state| state == ContainerState::Running)
        });
        run
    }

    /// Repeats a call until the reply is the wanted one.
    #[track_caller]
    pub(crate) fn wait_until(&self, request: &Request, is_wanted: impl Fn(&Reply) -> bool) {
        let endpoint: Endpoint = self.endpoint.parse().unwrap();
        let seen = async {
            let client = Client::connect(&endpoint, &endpoint, BOUND).await.unwrap();
            let mut tick = tokio::time::interval(TICK);
            while !is_wanted(&client.call(request).await.unwrap()) {
                tick.tick().await;
            }
        };
        let seen = self
            .runtime
            .block_on(async { tokio::time::timeout(BOUND, seen).await });
        assert!(seen.is_ok(), "{request:?} is not answered as expected");
    }

    /// Pulls the suite's image; returns its reference.
    pub(crate) fn pull_workload(&self) -> String {
        let (labels, tag) = (BTreeMap::new(), uuid::Uuid::new_v4().to_string());
        let registry = Registry::serve(Image::build(&labels), workload::REPOSITORY, &tag);
        let registry = self.runtime.block_on(registry).unwrap();
        let Reply::Pulled(image) = self.ask(&Request::PullImage(registry.reference())) else {
            unreachable!("PullImage is answered by an image");
        };
        image
    }

    /// The commands for a shell that stop and start the runtime's own process.
    pub(crate) fn restart_commands(&self) -> [String; 2] {
        let own = self.own.as_ref().unwrap();
        // The program has an environment of its own.
        let runtimes = std::env::var("CRI_CI_DIR");
        let runtimes = runtimes.map(|folder| format!("CRI_CI_DIR='{folder}' "));
        let runtimes = runtimes.unwrap_or_default();
        ["stop", "start"]
            .map(|verb| format!("{runtimes}'{}' {verb} {}", own.ctl.display(), own.name))
    }

    /// Ends the runtime's own process, but not its containers, by TERM or KILL, and starts it
    /// again.
    pub(crate) fn restart(&self, signal: &str) {
        let own = self.own.as_ref().unwrap();
        own.command(&["restart", &own.name, "--signal", signal]);
    }
}

/// The id in the output of a run.
#[track_caller]
pub(crate) fn run_id(err: &str) -> String {
    let id = err.lines().find_map(|line| line.strip_prefix("run "));
    id.unwrap_or_else(|| panic!("no run is named:\n{err}"))
        .to_owned()
}

impl Own {
    fn up(ctl: PathBuf, which: &[&str]) -> (String, Self) {
        // Tests run at once, and the beginnings of their names may be equal.
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        // The path of a socket is short.
        let name = format!("own-{}-{count}", std::process::id());
        let own = Self { ctl, name };
        let endpoint = own.command(&[&["up", "--name", &own.name], which].concat());
        (endpoint.trim().to_owned(), own)
    }

    fn command(&self, args: &[&str]) -> String {
        let done = Command::new(&self.ctl).args(args).output().unwrap();
        assert!(done.status.success(), "{args:?}: {done:?}");
        String::from_utf8(done.stdout).unwrap()
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.command(&["down", &self.name, "--wipe"]);
    }
}
