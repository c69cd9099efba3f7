//! `doctor`: its verdict, as text and as JSON, and that it is read-only.

use serde_json::Value;

use crate::fake_cri::{ENDED_RUN, FakeCri, Flaw};
use crate::suite::{Ended, suite};

/// The methods that it may call.
const READ_ONLY: [&str; 7] = [
    "version",
    "status",
    "runtime_config",
    "list_pod_sandbox",
    "list_containers",
    "list_images",
    "get_container_events",
];

/// Examines the node of a fake runtime, which has no files and no processes.
fn doctor(fake: &FakeCri, more: &[&str]) -> Ended {
    let (socket, root) = (fake.socket(), fake.folder().join("root"));
    std::fs::create_dir_all(&root).unwrap();
    let (socket, root) = (socket.to_str().unwrap(), root.to_str().unwrap());
    let args = ["doctor", "-r", socket, "--root", root];
    suite(args.iter().chain(more)).run()
}

#[test]
fn a_root_that_is_no_directory_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    for root in [file, folder.path().join("missing")] {
        let root = root.to_str().unwrap();
        let message = format!("error: --root: {root}: ");
        suite(["doctor", "--root", root])
            .run()
            .fails(2, &[&message]);
    }
}

#[track_caller]
fn check(flaw: Flaw, code: i32, findings: &[&str]) {
    let fake = FakeCri::start(flaw);
    let ended = doctor(&fake, &[]);
    assert_eq!(ended.code, code, "{ended:#?}");
    for finding in findings {
        assert!(ended.out.contains(&format!("{finding}: ")), "{ended:#?}");
    }
    for asked in fake.asked() {
        assert!(READ_ONLY.contains(&asked.method), "{asked:?}");
    }
}

#[test]
fn a_node_without_a_kubelet_is_not_ready_or_unknown_and_nothing_is_changed() {
    let missing = "unknown  kubelet-missing";
    check(Flaw::NoStarts, 3, &[missing, "ok       events-open"]);
    // These cannot list containers.
    let fails = "wrong    list-fails";
    check(Flaw::Silent, 1, &[missing, fails, "ok       events-open"]);
    let not_tried = "note     events-not-tried";
    check(Flaw::SingleConsumer, 1, &[missing, fails, not_tried]);
    check(Flaw::EventsOff, 1, &[missing, "wrong    events-off"]);
    check(
        Flaw::NoEvents,
        1,
        &[missing, "wrong    events-unimplemented"],
    );
}

#[test]
fn no_event_is_taken_from_other_subscribers() {
    let fake = FakeCri::start(Flaw::SingleConsumer);
    doctor(&fake, &[]);
    let asked = fake.asked();
    assert!(asked.iter().all(|it| it.method != "get_container_events"));
}

#[test]
fn a_runtime_that_cannot_be_reached_is_a_finding() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_str().unwrap();
    let args = ["doctor", "-r", "/no/such.sock", "--root", root];
    let ended = suite(args).run();
    assert_eq!(ended.code, 3, "{ended:#?}");
    assert!(
        ended.out.contains("unknown  runtime-unreachable: "),
        "{ended:#?}"
    );
}

/// As text and as JSON: one failed check that lists the tried sockets.
#[test]
fn without_a_usual_socket_there_is_a_report_too() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_str().unwrap();
    let tried = [
        "/run/containerd/containerd.sock",
        "/run/k3s/containerd/containerd.sock",
        "/run/k0s/containerd.sock",
    ];
    let doctor = |more: &[&str]| {
        let args = ["doctor", "-r", "", "--root", root];
        suite(args.iter().chain(more)).run()
    };
    let ended = doctor(&[]);
    // Where a runtime is found, it is examined.
    if !ended.out.contains("\nruntime: none\n") {
        return;
    }
    assert_eq!(ended.code, 3, "{ended:#?}");
    for text in [&["unknown  runtime-unreachable: "][..], &tried].concat() {
        assert!(ended.out.contains(text), "{ended:#?}");
    }
    let found: Value = serde_json::from_str(&doctor(&["--json"]).out).unwrap();
    assert_eq!(found["endpoint"], "none");
    assert_eq!(found["verdict"], "cannot-tell");
}

#[test]
fn what_earlier_runs_left_is_listed() {
    let fake = FakeCri::start(Flaw::Silent);
    fake.add_pod_of_a_run(ENDED_RUN);
    let ended = doctor(&fake, &[]);
    assert!(ended.out.contains("note     leftovers: "), "{ended:#?}");
    assert_eq!(fake.sandboxes(), 1);
}

#[test]
fn names_of_a_runtime_cannot_drive_the_terminal() {
    let fake = FakeCri::start(Flaw::Evil("status"));
    for more in [&[][..], &["--json"]] {
        let ended = doctor(&fake, more);
        assert!(!ended.out.contains(['\u{1b}', '\u{202e}']), "{ended:#?}");
        let mut lines = ended.out.lines();
        assert!(!lines.any(|line| line.starts_with("end")), "{ended:#?}");
    }
}

#[test]
fn its_json_matches_its_schema() {
    let schema = suite(["schema", "doctor"]).run().succeeds();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let fake = FakeCri::start(Flaw::EventsOff);
    let ended = doctor(&fake, &["--json"]);
    assert_eq!(ended.code, 1, "{ended:#?}");
    let found: Value = serde_json::from_str(&ended.out).unwrap();
    let faults: Vec<_> = validator.iter_errors(&found).collect();
    assert!(faults.is_empty(), "{faults:?}");
    assert_eq!(found["verdict"], "not-ready");
    assert_eq!(found["findings"][0]["status"], "wrong");
    assert_eq!(found["profile"], Value::Null);
}

#[test]
fn the_model_is_no_node() {
    suite(["doctor", "-r", "model"]).run().fails(2, &["model"]);
}
