//! `watch` at a real runtime, with another client that creates and removes pods.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use cri_event_conformance::testing::history::{
    ContainerId, ContainerSpec, PodUid, Reply, Request, SandboxId, SandboxSpec,
};
use rustix::process::Signal;
use serde_json::Value;

use crate::node::Node;

const AT_ONCE: Duration = Duration::from_secs(5);
pub(crate) const ASKED: &str = "the event stream is requested";

/// A pod of another client.
pub(crate) fn run_pod(node: &Node) -> (SandboxId, Arc<SandboxSpec>) {
    let uid = uuid::Uuid::new_v4().to_string();
    let spec = Arc::new(SandboxSpec {
        name: format!("watched-{uid}"),
        namespace: "watched".to_owned(),
        uid: PodUid::from(uid),
        log_directory: std::env::temp_dir().display().to_string(),
        ..SandboxSpec::default()
    });
    let Reply::Sandbox(id) = node.ask(&Request::RunSandbox(spec.clone())) else {
        unreachable!("RunPodSandbox is answered by a sandbox");
    };
    (id, spec)
}

pub(crate) fn remove_pod(node: &Node, id: &SandboxId) {
    node.ask(&Request::StopSandbox(id.clone()));
    node.ask(&Request::RemoveSandbox(id.clone()));
}

/// A container in the pod whose start fails, of any existing image.
fn fail_to_start(node: &Node, (pod, spec): (&SandboxId, &Arc<SandboxSpec>)) -> ContainerId {
    let container = ContainerSpec {
        sandbox: pod.clone(),
        sandbox_spec: spec.clone(),
        binding: "broken".to_owned(),
        log_path: format!("{pod}.log"),
        image: node.images().into_iter().next().unwrap(),
        command: vec!["/no/such/program".to_owned()],
        ..ContainerSpec::default()
    };
    let create = Request::CreateContainer(Arc::new(container));
    let Reply::Container(id) = node.ask(&create) else {
        unreachable!("CreateContainer is answered by a container");
    };
    node.try_to(&Request::StartContainer(id.clone()))
        .unwrap_err();
    id
}

pub(crate) fn a_watch_sees_the_pods_of_others_and_outlives_its_runtime(node: &Node) {
    let running = node
        .suite(&["watch", "-o", "json", "--within", "1s"])
        .start();
    running.wait_for(ASKED);
    let (pod, spec) = run_pod(node);
    running.wait_for("the event stream is live");
    // The first list after the stream was asked for may show what no stream could report, and the
    // next one heals that: from then on, nothing is put down to a stream that was not there yet.
    running.wait_for_output("\"lifecycle\":\"ContainerStarted\"");
    let (next, _) = run_pod(node);
    running.wait_for_output(&format!(
        "\"id\":\"{next}\",\"lifecycle\":\"ContainerStarted\""
    ));
    remove_pod(node, &next);
    // containerd does not report that it has stopped: a watch is for finding that.
    let container = fail_to_start(node, (&pod, &spec));
    running.wait_for_output("\"rule\":\"INV-11\"");
    running.wait_for_output("\"rule\":\"INV-13\"");
    node.restart("KILL");
    running.wait_for_times(ASKED, 2);
    remove_pod(node, &pod);
    running.wait_for_output(&format!("\"id\":\"{pod}\",\"kind\":\"DELETED\""));
    running.send(Signal::INT);
    let ended = running.end_within(AT_ONCE).fails(0, &["retrying"]);
    let lines = ended.out.lines().map(serde_json::from_str::<Value>);
    let lines: Vec<_> = lines.map(Result::unwrap).collect();
    let of = |kind: &str, id: &str| {
        let mut lines = lines.iter();
        let found = lines.find(|line| line["type"] == kind && line["id"] == id);
        found.unwrap_or_else(|| panic!("no {kind} of {id}: {ended:#?}"))
    };
    let event = of("event", pod.as_str());
    let named = (&event["namespace"], &event["pod"], &event["container"]);
    assert_eq!(
        named,
        (&"watched".into(), &spec.name.clone().into(), &Value::Null)
    );
    assert!(event["lag_ns"].as_i64().unwrap() > 0, "{event}");
    let mut violations = lines.iter();
    let missed = violations.find(|line| line["rule"] == "INV-11").unwrap();
    assert_eq!(missed["finding"], "missing-stopped", "{missed}");
    let subject = format!("broken ({container}) of pod watched/{}", spec.name);
    assert_eq!(missed["subject"], subject.as_str(), "{missed}");
    of("relist", pod.as_str());
    // containerd may take a stream before it can serve it, and end it at once.
    let opened = lines.iter().filter(|line| line["what"] == "opened").count();
    let summary = lines.last().unwrap();
    assert_eq!(summary["type"], "summary");
    assert_eq!(summary["reconnects"], opened - 1, "{ended:#?}");
    assert_eq!(summary["missed"], 1, "{ended:#?}");
}

pub(crate) fn a_watch_ends_when_nobody_reads_it(node: &Node) {
    let ended = node.suite(&["watch", "-o", "json"]).run_for_a_line();
    assert_eq!(ended.code, 0, "{ended:#?}");
    assert!(!ended.err.contains("panicked"), "{ended:#?}");
}

pub(crate) fn a_runtime_without_events_cannot_be_watched(node: &Node) {
    let ended = node.suite(&["watch"]).run();
    ended.fails(3, &["the runtime has no event stream", "UNIMPLEMENTED"]);
}

/// A program that is killed at the end.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One of the programs of Prometheus.
fn program(name: &str) -> Command {
    let folder = PathBuf::from(std::env::var_os("CRI_TEST_PROMETHEUS").unwrap());
    Command::new(folder.join(name))
}

fn scrape(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let ask = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(ask.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    body.to_owned()
}

/// The findings of `promtool check metrics`.
fn check(metrics: &str) -> Vec<String> {
    let mut checked = program("promtool");
    checked.args(["check", "metrics"]);
    checked.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = checked.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(metrics.as_bytes()).unwrap();
    drop(stdin);
    let done = child.wait_with_output().unwrap();
    let err = String::from_utf8(done.stderr).unwrap();
    err.lines().map(str::to_owned).collect()
}

pub(crate) fn prometheus_takes_the_metrics_as_a_kubelets(node: &Node) {
    let running = node
        .suite(&["watch", "--metrics-address", "127.0.0.1:0"])
        .start();
    let address = served_at(&running.wait_for("/metrics\n"));
    running.wait_for(ASKED);
    let (pod, _) = run_pod(node);
    running.wait_for_output("relist ");
    remove_pod(node, &pod);
    named_as_a_kubelets(&scrape(&address));
    let quantile = "histogram_quantile(.99, sum(rate(\
                    kubelet_pleg_relist_duration_seconds_bucket[5m])) by (le))";
    let seconds = query(&address, quantile);
    assert!(seconds > 0.0 && seconds < 10.0, "{seconds}");
}

pub(crate) fn a_run_serves_the_metrics_of_its_relists(node: &Node) {
    let cases = ["EXT-01", "--repeat", "10", "--test-threads", "1"];
    let running = node
        .suite(&[&["--metrics-address", "127.0.0.1:0"], &cases[..]].concat())
        .start();
    let address = served_at(&running.wait_for("/metrics\n"));
    let count = |metrics: &str, name: &str| {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name));
        line.map_or(0, |count| count.trim().parse().unwrap())
    };
    // Each try takes as long as a scrape does; the run lasts much longer.
    let served = (0..100_000).map(|_| scrape(&address)).find(|metrics| {
        count(metrics, "kubelet_pleg_relist_duration_seconds_count") >= 2
            && count(metrics, "kubelet_pleg_pod_relist_duration_seconds_count") >= 1
            && count(metrics, "kubelet_running_pods") >= 1
            && count(
                metrics,
                "kubelet_evented_pleg_connection_latency_seconds_count",
            ) >= 1
    });
    let served = served.expect("relists are counted");
    running.send(Signal::INT);
    running.end();
    named_as_a_kubelets(&served);
    assert_eq!(
        count(&served, "kubelet_evented_pleg_connection_success_count"),
        1
    );
    assert_eq!(
        count(&served, "cri_event_conformance_missed_events_total"),
        0
    );
}

/// The address in `metrics at http://ADDRESS/metrics`.
fn served_at(said: &str) -> String {
    let address = said.split_once("http://").unwrap().1;
    address.split_once("/metrics").unwrap().0.to_owned()
}

/// `promtool` can read them, and its lint complains only about a kubelet's names of counters.
fn named_as_a_kubelets(metrics: &str) {
    assert_eq!(
        check(metrics),
        [
            "kubelet_evented_pleg_connection_error_count counter metrics should have \"_total\" suffix",
            "kubelet_evented_pleg_connection_error_count non-histogram and non-summary metrics should \
             not have \"_count\" suffix",
            "kubelet_evented_pleg_connection_success_count counter metrics should have \"_total\" suffix",
            "kubelet_evented_pleg_connection_success_count non-histogram and non-summary metrics should \
             not have \"_count\" suffix",
            "kubelet_pleg_discard_events counter metrics should have \"_total\" suffix",
        ]
    );
}

/// The answer to a query of a Prometheus that scrapes the address, once available.
fn query(address: &str, query: &str) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let web = free.local_addr().unwrap().to_string();
    drop(free);
    let config = format!(
        "global: {{scrape_interval: 1s}}\n\
         scrape_configs: [{{job_name: watch, static_configs: [{{targets: ['{address}']}}]}}]\n"
    );
    std::fs::write(folder.path().join("p.yml"), config).unwrap();
    let mut server = program("prometheus");
    server.args(["--config.file=p.yml", "--storage.tsdb.path=data"]);
    server.arg(format!("--web.listen-address={web}"));
    server.current_dir(folder.path()).stderr(Stdio::null());
    let _server = Killed(server.spawn().unwrap());
    // Each try takes as long as a process does; together they have half a minute at the least.
    for _ in 0..1000 {
        let url = format!("http://{web}");
        let asked = program("promtool")
            .args(["query", "instant", &url, query])
            .output();
        let asked = String::from_utf8(asked.unwrap().stdout).unwrap();
        // `{} => 0.0049 @[1795199892.1]`
        let value = asked
            .split_once("=> ")
            .and_then(|(_, rest)| rest.split_once(' '));
        if let Some(Ok(value)) = value.map(|(value, _)| value.parse::<f64>())
            && !value.is_nan()
        {
            return value;
        }
    }
    panic!("the query was never answered");
}
