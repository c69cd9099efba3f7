//! A run next to foreign pods that are created and removed.

use std::collections::{BTreeMap, VecDeque};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::node::Node;
use crate::tests::json;
use crate::watch::{remove_pod, run_pod};

/// Of several areas, including those whose checks use all events and lists of the node.
const CASES: [&str; 8] = [
    "ORD-01", "ORD-02", "CMP-01", "REL-01", "SBX-01", "SBX-03", "SNP-01", "STR-01",
];
const PODS: usize = 20;
/// The maximum number of replaced pods during the run, on a loaded machine.
const REPLACED: usize = 2_000;
/// The maximum duration of a run, on a loaded machine.
const RUN: Duration = Duration::from_secs(120);

pub(crate) fn pods_of_others_change_no_verdict_and_are_left_alone(node: &Node) {
    let quiet = verdicts(node);
    let mut pods: VecDeque<_> = (0..PODS).map(|_| run_pod(node).0).collect();
    let mut replaced = 0;
    let busy = thread::scope(|scope| {
        let busy = scope.spawn(|| verdicts(node));
        while !busy.is_finished() {
            let oldest = pods.pop_front().unwrap();
            assert!(node.is_ready(&oldest), "somebody has stopped {oldest}");
            remove_pod(node, &oldest);
            pods.push_back(run_pod(node).0);
            replaced += 1;
            assert!(replaced < REPLACED, "the run has no end");
        }
        busy.join().unwrap()
    });
    for pod in pods {
        assert!(node.is_ready(&pod), "somebody has stopped {pod}");
        remove_pod(node, &pod);
    }
    assert!(replaced > 0, "no pod came or went during the run");
    assert_eq!(busy, quiet);
}

/// The verdict of each case and invariant of a run. An intermittent known failure counts as a pass.
fn verdicts(node: &Node) -> BTreeMap<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let options = ["--json", "r.json", "--expectations", "builtin"];
    let suite = node.suite(&[&CASES[..], &options].concat());
    let ended = suite.inside(folder.path()).start().end_within(RUN);
    assert_eq!(ended.code, 0, "{ended:#?}");
    let report = json(&folder.path().join("r.json"));
    let outcomes = report["outcomes"].as_array().unwrap().iter();
    let verdict = |outcome: &Value| outcome["verdict"].to_string().replace("known", "pass");
    outcomes
        .map(|outcome| (outcome["id"].to_string(), verdict(outcome)))
        .collect()
}
