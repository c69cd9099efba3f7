//! Clean-up: pods are removed without a grace period, and failures are reported.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::fake_cri::{Asked, ENDED_RUN, FakeCri, Flaw};
use crate::kubelet::{STRANGER, own_user};
use crate::suite::suite;

/// CRI-O uses the deadline of such a call as the grace period of the containers.
#[test]
fn no_deadline_is_sent_by_which_a_runtime_ends_containers() {
    let asked = asked_in_a_run();
    let ends = ["remove_container", "stop_pod_sandbox", "remove_pod_sandbox"];
    for method in ends {
        assert!(asked.iter().any(|asked| asked.method == method), "{method}");
    }
    for asked in asked {
        let is_reported = !ends.contains(&asked.method);
        assert_eq!(asked.has_deadline, is_reported, "{asked:?}");
    }
}

#[test]
fn what_is_removed_is_killed_before() {
    let asked = asked_in_a_run();
    let pods = asked.iter().filter(|it| it.method == "stop_pod_sandbox");
    let pods: Vec<_> = pods.filter_map(|it| it.message.split('"').nth(1)).collect();
    assert_eq!(pods.len(), 2, "the marker's and the case's: {asked:#?}");
    for pod in pods {
        // The fake names a container for its sandbox, which has no other at the time.
        let own = asked.iter().filter(|it| it.message.contains(pod));
        // Relists may fall between.
        let own: Vec<_> = own.filter(|it| !it.method.starts_with("list_")).collect();
        for pair in own.windows(2) {
            let killed = pair[0].message.contains("timeout: 0 ");
            match pair[1].method {
                "remove_container" => assert!(killed, "{pair:#?}"),
                "stop_pod_sandbox" => {
                    let is_empty = pair[0].method == "remove_container";
                    assert!(killed || is_empty, "{pair:#?}");
                }
                _ => {}
            }
        }
    }
}

/// The calls of a run whose case ends with a container in its sandbox.
#[track_caller]
fn asked_in_a_run() -> Vec<Asked> {
    let fake = FakeCri::start(Flaw::NoStarts);
    let (socket, logs) = (fake.socket(), fake.folder().to_str().unwrap());
    let socket = socket.to_str().unwrap();
    let ended = suite(["ORD-01", "--exact", "-r", socket, "--log-dir", logs]).run();
    let failed = "undecided: StartContainer failed";
    assert!(ended.out.contains(failed), "{ended:#?}");
    assert_eq!(fake.sandboxes(), 0, "{ended:#?}");
    fake.asked()
}

#[test]
fn leftovers_that_a_runtime_never_removes_are_reported_with_the_way_out() {
    let fake = FakeCri::start(Flaw::Evil("remove_pod_sandbox"));
    fake.add_pod_of_a_run(ENDED_RUN);
    let (socket, logs) = (fake.socket(), fake.folder().to_str().unwrap());
    let socket = socket.to_str().unwrap();
    let left = ["--run-id", ENDED_RUN, "--log-dir", logs, "-r", socket];
    let ended = suite(["cleanup"].iter().chain(&left)).run();
    let ended = ended.fails(3, &["error: not removed:\n  sandbox left: UNKNOWN: "]);
    let way_out = "\nrestart the runtime, then run this again\n";
    assert!(ended.err.ends_with(way_out), "{ended:#?}");
    assert_eq!(fake.sandboxes(), 1);
}

/// As after a run with another directory for its logs.
#[test]
fn a_run_without_a_record_is_named_with_the_option_that_finds_it() {
    let fake = FakeCri::start(Flaw::Evil("nothing"));
    fake.add_pod_of_a_run(ENDED_RUN);
    let (socket, logs) = (fake.socket(), fake.folder().to_str().unwrap());
    let ended = suite(["cleanup", "--log-dir", logs, "-r", socket.to_str().unwrap()]).run();
    let named = format!("skipped: no record of run {ENDED_RUN} was found, so its log directory ");
    let out = ended.succeeds();
    assert!(out.contains(&named) && out.contains("--log-dir"), "{out}");
    assert_eq!(fake.sandboxes(), 0);
}

/// As after such a run, whose pods have been removed, with a line break in its path.
#[test]
fn a_shim_of_a_run_without_a_record_is_named_with_the_directory_of_its_logs() {
    let fake = FakeCri::start(Flaw::Evil("nothing"));
    let logs = format!("/srv/a\nb/cri-event-conformance-{ENDED_RUN}.1-1");
    let logs = serde_json::json!({"io.kubernetes.cri.sandbox-log-directory": logs});
    let specification = serde_json::json!({ "annotations": logs }).to_string();
    std::fs::write(fake.folder().join("config.json"), specification).unwrap();
    let id = "4a1d2a9b7d5e4816a2c4e6f8091b3d5f7a9c1e3052647f8e9dacbf1d2e3f4a5b";
    let mut shim = Command::new("sh");
    let shim = shim
        .arg0("containerd-shim-runc-v2")
        .current_dir(fake.folder());
    let shim = shim.args(["-s", "--", "-namespace", "k8s.io", "-id", id]);
    let mut shim = shim.stdin(Stdio::piped()).spawn().unwrap();
    let (socket, empty) = (fake.socket(), fake.folder().to_str().unwrap());
    let ended = suite([
        "cleanup",
        "--log-dir",
        empty,
        "-r",
        socket.to_str().unwrap(),
    ])
    .run();
    // Without its input it ends.
    drop(shim.stdin.take());
    assert!(shim.wait().unwrap().success());
    let named = format!(
        "skipped: process {} of {id} stays: no record was found of ",
        shim.id()
    );
    let out = ended.succeeds();
    let line = out
        .lines()
        .find(|line| line.starts_with(&named))
        .expect(&out);
    assert!(
        line.contains(ENDED_RUN) && line.contains("--log-dir '/srv/a"),
        "{out}"
    );
}

#[test]
fn a_log_directory_that_cannot_be_read_is_an_error() {
    let fake = FakeCri::start(Flaw::Evil("nothing"));
    let (file, missing) = (fake.folder().join("file"), fake.folder().join("missing"));
    std::fs::write(&file, "").unwrap();
    let link = fake.folder().join("link");
    std::os::unix::fs::symlink(fake.folder(), &link).unwrap();
    let mut refused = vec![file, missing];
    // Only root can give a link away.
    let given = std::os::unix::fs::lchown(&link, Some(STRANGER), None);
    let is_given = own_user() != STRANGER && given.is_ok();
    refused.extend(is_given.then_some(link));
    for logs in refused {
        let (socket, logs) = (fake.socket(), logs.to_str().unwrap());
        let args = ["cleanup", "--log-dir", logs, "-r", socket.to_str().unwrap()];
        let message = format!("error: --log-dir: {logs}: ");
        suite(args).run().fails(2, &[&message]);
    }
}

#[test]
fn a_parent_cgroup_does_not_lead_out_of_the_hierarchy() {
    for parent in [
        "../a",
        "/a/../b",
        "/..",
        "a",
        "/a//b",
        "/a\nb",
        "../a.slice",
    ] {
        let message = "error: invalid value ";
        let run = suite(["--cgroup-parent", parent, "-r", "model", "ORD-01"]).run();
        run.fails(
            2,
            &[message, "'--cgroup-parent <CGROUP>': it must be a slice"],
        );
    }
    for parent in ["", "/a/b", "a.slice"] {
        let run = suite(["--cgroup-parent", parent, "-r", "model", "ORD-01"]).run();
        assert_eq!(run.code, 0, "{run:#?}");
    }
}
