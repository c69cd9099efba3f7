//! A watch with a verdict, on a served model with the pods of a run.

use std::fs;
use std::time::Duration;

use serde_json::Value;

use crate::model::Served;
use crate::suite::{Ended, suite};

/// Longer than a whole watch.
const AT_MOST: Duration = Duration::from_secs(60);

/// Watches a model with these defects and the pods of a run; returns its end, its JSON report, and
/// its history judged again: by the command that it says is next, if it does.
fn watched(defects: &[&str], args: &[&str]) -> (Ended, Value, Ended) {
    let served = Served::start_with(defects);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (json, history) = (path("report.json"), path("history.binpb"));
    let endpoint = served.endpoint();
    let fixed = ["watch", "-r", &endpoint, "--for", "12s", "--within", "1s"];
    let files = ["--json", &json, "--history", &history];
    let watch = suite([&fixed[..], &files, args].concat()).start();
    watch.wait_for("the event stream is requested");
    // A pod that comes before the first relist is there from the beginning.
    watch.wait_for("the first relist is done");
    // Updates of resources by others are among what a watch cannot see.
    let run = suite(["ORD-01", "STP-01", "CMP-01", "-r", &endpoint]).run();
    // A run that the host has held up is undecided; its pods are there all the same.
    assert!(matches!(run.code, 0 | 1 | 3), "{run:#?}");
    let ended = watch.end_within(AT_MOST);
    let report = fs::read_to_string(&json).unwrap();
    let mut lines = ended.out.lines();
    let next = lines.find_map(|line| line.strip_prefix("next: cri-event-conformance "));
    let again = match next.filter(|next| next.starts_with("check ")) {
        Some(next) => suite(next.split(' ').collect::<Vec<_>>()).run(),
        None => suite(["check", &history]).run(),
    };
    (ended, serde_json::from_str(&report).unwrap(), again)
}

#[test]
fn a_correct_runtime_is_conformant() {
    let (ended, report, again) = watched(&[], &[]);
    let ended = ended.fails(0, &["watching model"]);
    let first = ended.out.lines().next().unwrap();
    assert!(
        first.contains(": nothing broken (21 invariants, "),
        "{ended:#?}"
    );
    let mut lags = report["latencies"].as_array().unwrap().iter();
    let lag = lags.find(|latency| latency["limit"] == "event-lag");
    assert!(lag.is_some_and(|lag| lag["case"] == "watch"), "{report:#}");
    assert!(ended.out.contains(" (median lag "), "{ended:#?}");
    assert!(first.chars().count() <= 80, "{first}");
    assert!(
        report["watch"]["judged"].as_u64().unwrap() > 2,
        "{report:#}"
    );
    assert_eq!(report["profiles"][0]["verdict"], "conformant");
    assert_eq!(again.code, 0, "{again:#?}");
}

#[test]
fn a_missed_event_is_found_and_proven() {
    let (ended, report, again) = watched(&["--defect", "drop-stopped"], &[]);
    let ended = ended.fails(1, &["MISSED", "STOPPED has not come"]);
    assert!(ended.out.contains(": non-conformant: "), "{ended:#?}");
    let outcomes = report["outcomes"].as_array().unwrap();
    let missed = outcomes.iter().find(|outcome| outcome["id"] == "INV-11");
    assert_eq!(missed.unwrap()["verdict"], "fail", "{report:#}");
    assert_eq!(again.code, 1, "{again:#?}");
}

#[test]
fn what_fails_a_watch_is_for_the_user_to_say() {
    let defect = ["--defect", "repeat-stopped"];
    let (ended, _, again) = watched(&defect, &["--fail-on", "missed"]);
    let ended = ended.fails(0, &["INV-02"]);
    let left_out = "exit code 0: a MUST is broken, which --fail-on leaves out";
    assert!(ended.out.contains(left_out), "{ended:#?}");
    assert_eq!(again.code, 1, "{again:#?}");
    let (ended, ..) = watched(&defect, &["--fail-on", "missed,must"]);
    ended.fails(1, &["INV-02"]);
}

#[test]
fn a_node_on_which_nothing_happens_is_not_conformant() {
    let served = Served::start();
    let endpoint = served.endpoint();
    let ended = suite(["watch", "-r", &endpoint, "--for", "2s"]).run();
    ended.fails(4, &["watching model"]);
}

#[test]
fn what_is_redacted_names_no_pod() {
    let (ended, report, again) = watched(&["--defect", "drop-stopped"], &["--redact"]);
    let ended = ended.fails(1, &["MISSED"]);
    for text in [&ended.out, &ended.err, &report.to_string(), &again.out] {
        assert!(!text.contains("ord-01"), "{text}");
    }
    assert_eq!(again.code, 1, "{again:#?}");
    let node = report["environment"]["node"].as_str().unwrap();
    let is_hash = node.len() == 12 && node.bytes().all(|byte| byte.is_ascii_hexdigit());
    assert!(is_hash, "{node}");
}
