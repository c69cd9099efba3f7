//! The nodes of `fixtures/doctor`, see the README there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use axum::Router;
use axum::routing::get;
use serde::Deserialize;

use super::crio;
use super::examine::Facts;
use super::finding::{Diagnosis, Status};
use super::kubelet::Kubelets;
use super::runtime::{RuntimeFacts, Stream};
use crate::history::{CgroupDriver, RuntimeVersion};
use crate::host::FileTree;
use crate::outcome::Profile;

/// A node of `nodes.yaml`, whose comment describes the fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Node {
    #[serde(rename = "node")]
    name: String,
    of: String,
    #[serde(default)]
    runtime: Runtime,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    links: BTreeMap<String, String>,
    clients: Option<BTreeSet<u64>>,
    #[serde(default)]
    findings: BTreeSet<String>,
    #[serde(default)]
    notes: BTreeSet<String>,
    #[serde(default)]
    says: Vec<String>,
    exit: u8,
    #[serde(default = "cache")]
    profile: Option<Profile>,
}

/// A runtime's replies, as in the `runtime.yaml` of a ready node.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Runtime {
    name: Option<String>,
    version: Option<String>,
    stream: Option<String>,
    cgroup_driver: Option<String>,
    unmet: Option<Vec<String>>,
    /// Bytes of the replies; null for a failed call.
    #[serde(default)]
    lists: BTreeMap<String, Option<usize>>,
}

#[expect(clippy::unnecessary_wraps, reason = "serde wants the field's type")]
fn cache() -> Option<Profile> {
    Some(Profile::Cache)
}

fn nodes() -> Vec<Node> {
    let text = fs::read_to_string(fixtures().join("nodes.yaml")).unwrap();
    serde_yaml::from_str(&text).unwrap()
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/doctor")
}

/// Copies a tree over another one. Programs are copied by another process: a file that is open for
/// writing, as inherited by a process of another test, cannot be executed.
fn lay_over(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        let meta = fs::metadata(&path).unwrap();
        if meta.is_dir() {
            lay_over(&path, &target);
            continue;
        }
        let _ = fs::remove_file(&target);
        if meta.permissions().mode() & 0o100 != 0 {
            let installed = Command::new("install").args([&path, &target]).status();
            assert!(installed.unwrap().success());
        } else if path.ends_with("cmdline") || path.ends_with("environ") {
            let text = fs::read_to_string(&path).unwrap();
            fs::write(&target, text.replace('\n', "\0")).unwrap();
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

impl Node {
    /// Lays the node's files and links over those of the ready node.
    fn lay_over(&self, tree: &Path) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in &self.files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            let mode = if text.starts_with("#!") { 0o755 } else { 0o644 };
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        lay_over(folder.path(), tree);
        for (path, target) in &self.links {
            let path = tree.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let _ = fs::remove_file(&path);
            symlink(target, path).unwrap();
        }
    }
}

/// The diagnosis of a ready node, or of one that differs from it.
fn diagnose(ready: &str, node: Option<&Node>) -> Diagnosis {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path();
    lay_over(&fixtures().join(ready), tree);
    if let Some(node) = node {
        node.lay_over(tree);
    }
    for process in fs::read_dir(tree.join("proc")).unwrap() {
        let process = process.unwrap().path();
        symlink(tree, process.join("root")).unwrap();
        fs::write(process.join("status"), "Uid:\t0\t0\t0\t0\n").unwrap();
    }
    let socket = match ready {
        "crio" => tree.join("run/crio/crio.sock"),
        _ => tree.join("run/containerd/containerd.sock"),
    };
    fs::create_dir_all(socket.parent().unwrap()).unwrap();
    let _listener = UnixListener::bind(&socket).unwrap();
    let root = FileTree::at(tree);
    let clients = node.and_then(|node| node.clients.as_ref());
    let mut kubelets = Kubelets::read_among(&root, Some(&socket), clients);
    let reactor = tokio::runtime::Runtime::new().unwrap();
    let given = |name: &str| {
        let path = tree.join(name);
        path.exists().then(|| path.to_str().unwrap().to_owned())
    };
    if let Some(configz) = given("configz.json") {
        reactor.block_on(kubelets.read_configz(&configz));
    }
    if let Some(metrics) = given("metrics.txt") {
        reactor.block_on(kubelets.read_metrics(&metrics));
    }
    if let Ok(served) = fs::read_to_string(tree.join("metrics.http")) {
        reactor.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}/metrics", listener.local_addr().unwrap());
            let routes = Router::new().route("/metrics", get(move || async move { served }));
            tokio::spawn(async move { axum::serve(listener, routes).await });
            kubelets.read_metrics(&url).await;
        });
    }
    let runtime = fs::read_to_string(tree.join("runtime.yaml")).unwrap();
    let runtime: Runtime = serde_yaml::from_str(&runtime).unwrap();
    let answers = node.map(|node| node.runtime.clone()).unwrap_or_default();
    let facts = Facts {
        node: "node-1".to_owned(),
        is_hidden: false,
        endpoint: "unix:///run/runtime.sock".to_owned(),
        host: None,
        runtime: Ok(answers.or(runtime).facts()),
        crio: crio::read(&root, Some(&socket)),
        kubelets,
        leftovers: Some(Vec::new()),
        root,
    };
    facts.diagnosis()
}

impl Runtime {
    fn or(self, other: Self) -> Self {
        Self {
            name: self.name.or(other.name),
            version: self.version.or(other.version),
            stream: self.stream.or(other.stream),
            cgroup_driver: self.cgroup_driver.or(other.cgroup_driver),
            unmet: self.unmet.or(other.unmet),
            lists: self.lists,
        }
    }

    fn facts(self) -> RuntimeFacts {
        RuntimeFacts {
            stream: match self.stream.unwrap().as_str() {
                "open" => Stream::Open,
                "off" => Stream::Off,
                "unimplemented" => Stream::Unimplemented,
                "not-opened" => Stream::NotOpened,
                other => Stream::Failed(other.to_owned()),
            },
            version: RuntimeVersion {
                runtime_name: self.name.unwrap(),
                runtime_version: self.version.unwrap(),
                api_version: "v1".to_owned(),
            },
            cgroup_driver: CgroupDriver::parse(&self.cgroup_driver.unwrap()),
            unmet: self.unmet.unwrap(),
            lists: {
                let lists = self.lists.into_iter();
                let lists = lists.map(|(call, bytes)| (call, bytes.ok_or("UNKNOWN".to_owned())));
                lists.collect()
            },
        }
    }
}

fn ids(diagnosis: &Diagnosis, statuses: &[Status]) -> BTreeSet<String> {
    let findings = diagnosis.findings.iter();
    let chosen = findings.filter(|finding| statuses.contains(&finding.status));
    chosen.map(|finding| finding.id.clone()).collect()
}

const DECIDING: [Status; 2] = [Status::Wrong, Status::Unknown];

#[test]
fn a_node_that_is_set_up_right_is_ready() {
    for ready in ["containerd", "crio"] {
        let found = diagnose(ready, None);
        assert_eq!(ids(&found, &DECIDING), BTreeSet::new(), "{}", found.text());
        let runtime = found.runtime.as_ref().unwrap();
        let (name, version) = (&runtime.name, &runtime.version);
        let first = format!("node-1: ready: {name} {version}, kubelet v1.36.1\n");
        assert!(found.text().starts_with(&first), "{}", found.text());
        assert_eq!(found.exit() as u8, 0);
        assert_eq!(found.kubelet_version.as_deref(), Some("v1.36.1"));
        let good = ids(&found, &[Status::Ok]);
        for id in ["on-at-both-ends", "kubelet-uses-events", "events-open"] {
            assert!(good.contains(id), "{}", found.text());
        }
    }
}

#[test]
fn each_node_is_judged_by_that_in_which_it_differs_from_the_ready_one() {
    let all = nodes();
    for node in &all {
        let found = diagnose(&node.of, Some(node));
        let text = format!("{}:\n{}", node.name, found.text());
        assert_eq!(ids(&found, &DECIDING), node.findings, "{text}");
        assert_eq!(found.exit() as u8, node.exit, "{text}");
        let first = found.text().lines().next().map(|line| line.chars().count());
        assert!(first <= Some(80), "{text}");
        assert_eq!(found.profile, node.profile, "{text}");
        let notes = ids(&found, &[Status::Note]);
        assert!(notes.is_superset(&node.notes), "{text}");
        for words in &node.says {
            assert!(found.text().contains(words), "{words:?} is not in {text}");
        }
        let ready = ids(&diagnose(&node.of, None), &[Status::Note]);
        assert!(ready.is_disjoint(&node.notes), "{text}");
    }
    assert!(all.len() > 70, "{}", all.len());
}

#[test]
fn what_is_wrong_comes_with_a_reason_and_a_way_out() {
    for node in nodes() {
        let found = diagnose(&node.of, Some(&node));
        for finding in &found.findings {
            assert!(!finding.read.is_empty(), "{finding:?}");
            if DECIDING.contains(&finding.status) {
                assert!(
                    finding.why.is_some() && finding.fix.is_some(),
                    "{finding:?}"
                );
            }
        }
        let first = found.text().lines().next().unwrap().chars().count();
        assert!(first <= 80, "{}", found.text());
    }
}

#[test]
fn leftovers_are_listed_and_decide_nothing() {
    let left = super::examine::leftovers_finding(&["sandbox 6f1c".to_owned()]);
    assert_eq!(left.status, Status::Note);
    assert!(left.finding.contains("sandbox 6f1c"), "{left:?}");
    let none = super::examine::leftovers_finding(&[]);
    assert_eq!(none.status, Status::Ok);
}
