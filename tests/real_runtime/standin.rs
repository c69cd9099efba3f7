//! `watch` beside a simulated kubelet, which creates pods over the CRI with a kubelet's labels:
//! they crash, complete, and are removed and recreated, while the runtime restarts and is killed.

use std::sync::Arc;
use std::time::Duration;

use cri_event_conformance::testing::history::{
    CallFault, ContainerId, ContainerSpec, ContainerState, Labels, POD_UID_LABEL, PodUid, Reply,
    Request, SandboxId, SandboxSpec,
};
use cri_event_conformance::testing::workload::Workload;

use crate::node::Node;
use crate::suite::Running;
use crate::tests::json;
use crate::watch::ASKED;

/// Much longer than the simulated kubelet needs, so that its last pod is idle before the end.
const WATCHED: &str = "45s";
const AT_MOST: Duration = Duration::from_secs(70);
/// Four such annotations make lists of 6 MB: containerd's shims accept requests of 4 MB.
const LONG: usize = 3 << 19;

/// Each is judged separately. Consumers other than kubelets may miss events.
const PROFILES: [&str; 2] = ["cache", "hint"];

/// A pod, with its sandboxes and containers in order.
struct Pod<'a> {
    kubelet: &'a Kubelet<'a>,
    name: String,
    uid: String,
    annotations: Labels,
    sandboxes: Vec<(SandboxId, Arc<SandboxSpec>)>,
    containers: Vec<ContainerId>,
    attempts: u32,
}

struct Kubelet<'a> {
    node: &'a Node,
    image: String,
    logs: String,
}

impl Kubelet<'_> {
    /// Runs a pod with one container.
    fn run(&self, name: &str, workload: &Workload, annotation: usize) -> Pod<'_> {
        let filler = ("filler".to_owned(), "x".repeat(annotation));
        let mut pod = Pod {
            kubelet: self,
            name: name.to_owned(),
            uid: uuid::Uuid::new_v4().to_string(),
            annotations: Labels::from([filler]),
            sandboxes: Vec::new(),
            containers: Vec::new(),
            attempts: 0,
        };
        pod.sandbox();
        pod.container(workload);
        pod
    }
}

impl Pod<'_> {
    fn ask(&self, request: &Request) -> Reply {
        self.kubelet.node.ask(request)
    }

    fn labels(&self) -> Vec<(String, String)> {
        let labels = [
            ("io.kubernetes.pod.name", &*self.name),
            ("io.kubernetes.pod.namespace", "standin"),
            (POD_UID_LABEL, &*self.uid),
        ];
        labels
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into()
    }

    fn sandbox(&mut self) {
        let spec = Arc::new(SandboxSpec {
            name: self.name.clone(),
            namespace: "standin".to_owned(),
            uid: PodUid::from(self.uid.clone()),
            attempt: u32::try_from(self.sandboxes.len()).unwrap(),
            labels: self.labels().into_iter().collect(),
            log_directory: self.kubelet.logs.clone(),
            ..SandboxSpec::default()
        });
        let Reply::Sandbox(id) = self.ask(&Request::RunSandbox(spec.clone())) else {
            unreachable!("RunPodSandbox is answered by a sandbox");
        };
        self.sandboxes.push((id, spec));
    }

    /// Creates and starts a container in the newest sandbox. A kubelet keeps a dead one.
    fn container(&mut self, workload: &Workload) {
        let id = self.create(workload.command()).unwrap();
        self.ask(&Request::StartContainer(id));
        if self.containers.len() > 2 {
            let oldest = self.containers.remove(0);
            self.ask(&Request::RemoveContainer(oldest));
        }
    }

    /// Creates a container that cannot run: CRI-O refuses to create it, containerd to start it.
    fn cannot_start(&mut self) {
        let created = self.create(vec!["/no/such/program".to_owned()]);
        let started = created.map(Request::StartContainer);
        let started = started.and_then(|start| self.kubelet.node.try_to(&start));
        started.unwrap_err();
    }

    fn create(&mut self, command: Vec<String>) -> Result<ContainerId, CallFault> {
        let (sandbox, sandbox_spec) = self.sandboxes.last().unwrap().clone();
        let name = ("io.kubernetes.container.name".to_owned(), "app".to_owned());
        let spec = ContainerSpec {
            sandbox,
            sandbox_spec,
            binding: "app".to_owned(),
            attempt: self.attempts,
            image: self.kubelet.image.clone(),
            command,
            labels: self.labels().into_iter().chain([name]).collect(),
            annotations: self.annotations.clone(),
            log_path: format!("{}-{}.log", self.name, self.attempts),
            ..ContainerSpec::default()
        };
        self.attempts += 1;
        let create = Request::CreateContainer(Arc::new(spec));
        let Reply::Container(id) = self.kubelet.node.try_to(&create)? else {
            unreachable!("CreateContainer is answered by a container");
        };
        self.containers.push(id.clone());
        Ok(id)
    }

    /// Waits for the end of the newest container.
    fn ends(&self) {
        let id = self.containers.last().unwrap();
        self.kubelet
            .node
            .wait_until(&Request::ContainerStatus(id.clone()), |reply| {
                matches!(reply, Reply::ContainerStatus(report)
                if report.status.state == ContainerState::Exited)
            });
    }

    /// Crashes and is restarted this many times.
    fn crashes(&mut self, times: usize) {
        for _ in 0..times {
            self.ends();
            self.container(&crash());
        }
    }

    /// Recreates its sandbox.
    fn renew(&mut self, workload: &Workload) {
        let (id, _) = self.sandboxes.last().unwrap().clone();
        self.ask(&Request::StopSandbox(id));
        self.sandbox();
        self.container(workload);
    }

    fn remove(self) {
        for (id, _) in &self.sandboxes {
            self.ask(&Request::StopSandbox(id.clone()));
        }
        for id in &self.containers {
            self.ask(&Request::RemoveContainer(id.clone()));
        }
        for (id, _) in &self.sandboxes {
            self.ask(&Request::RemoveSandbox(id.clone()));
        }
    }
}

fn crash() -> Workload {
    let after = Duration::from_millis(300);
    Workload::Exit { code: 3, after }
}

pub(crate) fn a_watch_beside_a_kubelet_raises_no_false_alarm_and_misses_no_loss(node: &Node) {
    let folder = tempfile::tempdir().unwrap();
    let watch = |profile: &str, fault: &[&str]| {
        let report = format!("{profile}-{}.json", fault.len());
        let args = [
            "watch",
            "--for",
            WATCHED,
            "--expectations",
            "builtin",
            "--profile",
            profile,
            "--json",
            &report,
        ];
        let watch = node
            .suite(&[&args, fault].concat())
            .inside(folder.path())
            .start();
        watch.wait_for("the first relist is done");
        watch
    };
    let image = node.pull_workload();
    let faults: [&[&str]; 2] = [&[], &["--inject", "drop-stopped"]];
    let of_profile = |profile| faults.map(|fault| watch(profile, fault));
    let watches = PROFILES.map(of_profile);
    let logs = folder.path().display().to_string();
    live(&Kubelet { node, image, logs }, watches.as_flattened());
    for (profile, watches) in PROFILES.into_iter().zip(watches) {
        let [kept, lost] = watches.map(|watch: Running| watch.end_within(AT_MOST));
        assert_eq!(kept.code, 0, "{profile}: {kept:#?}");
        let report = json(&folder.path().join(format!("{profile}-0.json")));
        let at_least = |what: &str, count: u64| {
            let seen = report["watch"][what].as_u64().unwrap();
            assert!(seen >= count, "{what}: {seen}, {kept:#?}");
        };
        at_least("outages", 2);
        at_least("containers", 15);
        lost.fails(1, &["INV-11", "STOPPED has not come"]);
    }
}

/// The life of the pods. After each restart it waits until the streams are open again.
fn live(kubelet: &Kubelet<'_>, watches: &[Running]) {
    let Kubelet { node, .. } = kubelet;
    let complete = Workload::Exit {
        code: 0,
        after: Duration::ZERO,
    };
    let mut web = kubelet.run("web", &Workload::Pause, 0);
    let mut job = kubelet.run("job", &complete, 0);
    let mut crashing = kubelet.run("crashing", &crash(), 0);
    job.ends();
    job.cannot_start();
    crashing.crashes(2);
    for (times, signal) in [(2, "TERM"), (3, "KILL")] {
        node.restart(signal);
        for watch in watches {
            watch.wait_for_times(ASKED, times);
        }
        crashing.crashes(3);
    }
    web.renew(&Workload::Pause);
    web.remove();
    let long = ["a", "b", "c", "d"].map(|name| kubelet.run(name, &Workload::Pause, LONG));
    crashing.crashes(5);
    long.into_iter().for_each(Pod::remove);
    job.remove();
    crashing.ends();
    crashing.remove();
}
