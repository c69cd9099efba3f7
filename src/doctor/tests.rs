//! The nodes of `fixtures/doctor`, see the README there.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::crio;
use super::examine::Facts;
use super::finding::{Diagnosis, Status};
use super::kubelet::Kubelets;
use super::runtime::{RuntimeFacts, Stream};
use crate::history::{CgroupDriver, RuntimeVersion};
use crate::host::FileTree;
use crate::outcome::Profile;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    of: String,
    findings: BTreeSet<String>,
    notes: BTreeSet<String>,
    #[serde(default)]
    says: Vec<String>,
    exit: u8,
    profile: Option<Profile>,
}

/// `runtime.yaml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Runtime {
    name: String,
    version: String,
    stream: String,
    cgroup_driver: String,
    unmet: Vec<String>,
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/doctor")
}

/// Copies a tree into another one, over the files that are there. A program is copied by another
/// process: one that is open for writing, as in a process that another test starts meanwhile,
/// cannot be run.
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

/// What is found on a ready node with some other files.
fn diagnose(ready: &str, mistake: Option<&Path>) -> Diagnosis {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path();
    lay_over(&fixtures().join(ready), tree);
    if let Some(mistake) = mistake {
        lay_over(mistake, tree);
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
    let mut kubelets = Kubelets::read_among(&root, Some(&socket), None);
    let configz = tree.join("configz.json");
    if configz.exists() {
        let reactor = tokio::runtime::Runtime::new().unwrap();
        reactor.block_on(kubelets.read_configz(configz.to_str().unwrap()));
    }
    let runtime = fs::read_to_string(tree.join("runtime.yaml")).unwrap();
    let runtime: Runtime = serde_yaml::from_str(&runtime).unwrap();
    let facts = Facts {
        endpoint: "unix:///run/runtime.sock".to_owned(),
        host: None,
        runtime: Ok(runtime.facts()),
        crio: crio::read(&root, Some(&socket)),
        kubelets,
        leftovers: Some(Vec::new()),
        root,
    };
    facts.diagnosis()
}

impl Runtime {
    fn facts(self) -> RuntimeFacts {
        RuntimeFacts {
            stream: match self.stream.as_str() {
                "open" => Stream::Open,
                "off" => Stream::Off,
                "unimplemented" => Stream::Unimplemented,
                "not-opened" => Stream::NotOpened,
                other => Stream::Failed(other.to_owned()),
            },
            version: RuntimeVersion {
                runtime_name: self.name,
                runtime_version: self.version,
                api_version: "v1".to_owned(),
            },
            cgroup_driver: CgroupDriver::parse(&self.cgroup_driver),
            unmet: self.unmet,
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
        assert_eq!(found.exit() as u8, 0);
        assert_eq!(found.kubelet_version.as_deref(), Some("v1.36.1"));
        let good = ids(&found, &[Status::Ok]);
        for id in ["on-at-both-ends", "kubelet-uses-events", "events-open"] {
            assert!(good.contains(id), "{}", found.text());
        }
    }
}

#[test]
fn each_mistake_is_found_and_is_not_found_on_the_ready_node() {
    let mut mistakes = 0;
    for entry in fs::read_dir(fixtures().join("mistakes")).unwrap() {
        let mistake = entry.unwrap().path();
        let expected = fs::read_to_string(mistake.join("expected.yaml")).unwrap();
        let expected: Expected = serde_yaml::from_str(&expected).unwrap();
        let found = diagnose(&expected.of, Some(&mistake));
        let text = format!("{}:\n{}", mistake.display(), found.text());
        assert_eq!(ids(&found, &DECIDING), expected.findings, "{text}");
        assert_eq!(found.exit() as u8, expected.exit, "{text}");
        assert_eq!(found.profile, expected.profile, "{text}");
        let notes = ids(&found, &[Status::Note]);
        assert!(notes.is_superset(&expected.notes), "{text}");
        for words in &expected.says {
            assert!(found.text().contains(words), "{words:?} is not in {text}");
        }
        let ready = ids(&diagnose(&expected.of, None), &[Status::Note]);
        assert!(ready.is_disjoint(&expected.notes), "{text}");
        mistakes += 1;
    }
    assert!(mistakes > 30, "{mistakes}");
}

#[test]
fn what_is_wrong_comes_with_a_reason_and_a_way_out() {
    for entry in fs::read_dir(fixtures().join("mistakes")).unwrap() {
        let mistake = entry.unwrap().path();
        let of_crio = mistake.join("expected.yaml");
        let of_crio = fs::read_to_string(of_crio).unwrap().contains("of: crio");
        let found = diagnose(if of_crio { "crio" } else { "containerd" }, Some(&mistake));
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
    let left = super::leftovers::finding(&["sandbox 6f1c".to_owned()]);
    assert_eq!(left.status, Status::Note);
    assert!(left.finding.contains("sandbox 6f1c"), "{left:?}");
    let none = super::leftovers::finding(&[]);
    assert_eq!(none.status, Status::Ok);
}
