//! `doctor` and `watch` in a pod of `kubectl debug node/NODE`, without an option: as the node's own
//! with the profile sysadmin, and with the missing profile in the first line otherwise.

use std::fs;

use serde_json::Value;

use crate::suite::{Ended, in_debug_pod};

const ENDPOINT: &str = "unix:///host/run/containerd/containerd.sock";

fn node() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    name.trim().to_owned()
}

/// The answer of a line that begins with the node's name.
#[track_caller]
fn answer(text: &str) -> &str {
    let first = text.lines().next().unwrap_or_default();
    assert!(first.chars().count() <= 80, "{first}");
    let answer = first
        .strip_prefix(&node())
        .and_then(|rest| rest.strip_prefix(": "));
    answer.unwrap_or_else(|| panic!("no node is named:\n{text}"))
}

fn run(profile: &str, args: &[&str]) -> Option<Ended> {
    Some(in_debug_pod(profile, args)?.run())
}

#[test]
fn doctor_examines_the_node_below_host() {
    let Some(ended) = run("sysadmin", &["doctor"]) else {
        return;
    };
    assert_eq!((ended.code, ended.err.as_str()), (3, ""), "{ended:#?}");
    assert!(
        answer(&ended.out).starts_with("cannot tell: "),
        "{ended:#?}"
    );
    for found in [
        &format!("runtime: {ENDPOINT}"),
        "ok       events-open: ",
        "ok       on-at-both-ends: ",
        "its configuration: /run/kubelet.yaml; its flags: --config=/run/kubelet.yaml",
        // Its program and libraries are the node's.
        "its program printed `cri-event-conformance ",
    ] {
        assert!(ended.out.contains(found), "{found:?} is not in {ended:#?}");
    }
    let ended = run("sysadmin", &["doctor", "--json"]).unwrap();
    let found: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(
        (&found["node"], &found["endpoint"]),
        (&node().into(), &ENDPOINT.into())
    );
}

#[test]
fn watch_follows_the_runtime_below_host() {
    let Some(ended) = run("sysadmin", &["watch", "--for", "5s"]) else {
        return;
    };
    assert_eq!(answer(&ended.out), "no pod has changed: 0 events");
    let ended = ended.fails(4, &[&format!("watching model 0.1.0 at {ENDPOINT}")]);
    assert!(!ended.err.contains("hostPID"), "{ended:#?}");
    let ended = run("sysadmin", &["watch", "--for", "5s", "--json", "-"]).unwrap();
    let report: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(report["endpoint"], ENDPOINT, "{report:#}");
}

#[test]
fn a_weak_profile_is_answered_with_the_one_that_is_needed() {
    const NEEDED: &str = "use --profile=sysadmin: this pod hides its node";
    for profile in ["general", "netadmin", "baseline"] {
        let Some(ended) = run(profile, &["doctor"]) else {
            return;
        };
        assert_eq!(ended.code, 3, "{ended:#?}");
        assert_eq!(
            answer(&ended.out),
            format!("cannot tell: {NEEDED}"),
            "{profile}"
        );
        let unknown = ended.out.matches("\nunknown ").count();
        assert_eq!(unknown, 1, "{profile}: {ended:#?}");
        let ended = run(profile, &["watch", "--for", "60s"]).unwrap();
        ended.fails(3, &[&format!("error: {}: {NEEDED}", node())]);
    }
}
