//! The policies in `ci/policies`: good reports pass each, and its target problem fails it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::*;
use crate::outcome::WatchTotals;

const PULL_REQUEST: &str = include_str!("../../../ci/policies/pull-request.yaml");
const NIGHTLY: &str = include_str!("../../../ci/policies/nightly.yaml");
const NODE_ROLLOUT: &str = include_str!("../../../ci/policies/node-rollout.yaml");
const NODE_WATCH: &str = include_str!("../../../ci/policies/node-watch.yaml");

/// A series of good reports: a case of each of the areas, run twenty times.
fn good(name: &str) -> Vec<NamedReport> {
    let report = |nth| {
        let areas = [
            ("ORD-01", "order::a"),
            ("STP-01", "stop::a"),
            ("EXT-01", "exit::a"),
        ];
        let outcomes = areas.iter().flat_map(|(id, name)| {
            (0..20)
                .map(|_| outcome(id, name, Verdict::Pass))
                .collect::<Vec<_>>()
        });
        let mut input = input(&format!("{name}-{nth}"), outcomes.collect());
        let hint = crate::outcome::Standing {
            profile: Profile::Hint,
            ..input.report.profiles[0].clone()
        };
        input.report.profiles.push(hint);
        input.report.latencies = [Limit::EventAfterCall, Limit::EventLag]
            .map(|limit| latency(limit, 20.0))
            .to_vec();
        input
    };
    (0..3).map(report).collect()
}

fn latency(limit: Limit, ms: f64) -> WorstLatency {
    WorstLatency {
        limit,
        limit_ms: 10_000.0,
        worst_ms: ms,
        p50_ms: Some(ms),
        p99_ms: Some(ms),
        count: 100,
        case: "ORD-01".to_owned(),
    }
}

/// Checks the ruling of a policy on good reports after a change.
#[track_caller]
fn check_changed(text: &str, change: impl Fn(&mut Document), expected: Ruling) {
    let policy = policy(text);
    let mut reports = good("after");
    for input in &mut reports {
        change(&mut input.report);
    }
    let before = policy.baseline.as_ref().map(|_| good("before"));
    let gate = judge(&policy, &reports, &before.unwrap_or_default()).expect("they fit");
    assert_eq!(gate.ruling(), expected, "{}", gate.text());
}

fn broken(report: &mut Document) {
    for standing in &mut report.profiles {
        standing.verdict = Conformance::NonConformant;
    }
}

fn with_known(report: &mut Document) {
    report.profiles[0].verdict = Conformance::KnownFailures;
    report.outcomes[0].verdict = Verdict::Known;
}

fn without_an_area(report: &mut Document) {
    report
        .outcomes
        .retain(|outcome| !outcome.id.starts_with("STP"));
}

fn skipped(report: &mut Document) {
    for outcome in &mut report.outcomes {
        outcome.verdict = Verdict::Skip;
    }
}

fn slow(report: &mut Document) {
    let limits = [Limit::EventAfterCall, Limit::EventLag];
    report.latencies = limits.map(|limit| latency(limit, 11_000.0)).to_vec();
}

fn flaky(report: &mut Document) {
    let mut of_stop = report.outcomes.iter_mut();
    let failed = of_stop
        .by_ref()
        .filter(|outcome| outcome.id == "STP-01")
        .take(6);
    failed.for_each(|outcome| outcome.verdict = Verdict::Fail);
}

#[test]
fn each_policy_passes_what_is_good_and_fails_what_is_not() {
    for text in [PULL_REQUEST, NIGHTLY, NODE_ROLLOUT] {
        check_changed(text, |_| {}, Pass);
        for change in [broken, without_an_area, skipped, slow] {
            check_changed(text, change, Fail);
        }
    }
}

#[test]
fn known_failures_stop_nothing() {
    check_changed(PULL_REQUEST, with_known, Pass);
    check_changed(NIGHTLY, with_known, Pass);
    check_changed(NODE_ROLLOUT, with_known, Pass);
}

fn watched(report: &mut Document) {
    report.outcomes.retain(|outcome| outcome.id == "ORD-01");
    report.watch = Some(WatchTotals {
        judged: 40,
        containers: 20,
        events: 80,
        relists: 600,
        ..WatchTotals::default()
    });
}

#[test]
fn a_watch_is_judged_by_its_own_policy() {
    let with = |change: fn(&mut WatchTotals)| {
        move |report: &mut Document| {
            watched(report);
            change(report.watch.as_mut().unwrap());
        }
    };
    check_changed(NODE_WATCH, watched, Pass);
    check_changed(NODE_WATCH, with(|watch| watch.outages = 1), Fail);
    check_changed(NODE_WATCH, with(|watch| watch.containers = 19), CannotTell);
    let missing = |report: &mut Document| {
        watched(report);
        broken(report);
    };
    check_changed(NODE_WATCH, missing, Fail);
    let late = |report: &mut Document| {
        watched(report);
        slow(report);
    };
    check_changed(NODE_WATCH, late, Fail);
    check_changed(NODE_WATCH, |_| {}, CannotTell);
    check_changed(PULL_REQUEST, watched, CannotTell);
}

#[test]
fn a_case_of_what_not_each_runtime_has_may_be_skipped() {
    let with = |id: &'static str| {
        move |report: &mut Document| {
            report.outcomes[0].id = id.to_owned();
            report.outcomes[0].name = "stop::b".to_owned();
            report.outcomes[0].verdict = Verdict::Skip;
        }
    };
    for text in [PULL_REQUEST, NIGHTLY, NODE_ROLLOUT] {
        check_changed(text, with("STP-04"), Pass);
        check_changed(text, with("STP-05"), Fail);
    }
}

fn recorded(name: &str) -> NamedReport {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let text = fs::read_to_string(fixtures.join(format!("{name}.json"))).unwrap();
    let report = Document::parse(&text).unwrap();
    let name = name.to_owned();
    NamedReport { name, report }
}

/// Of containerd 2.1.9: beside a kubelet 1.36.2 whose pods crashed and were killed, and beside pods
/// whose STOPPED a relay dropped. Of CRI-O 1.37: beside pods that crash, with its known failures.
#[test]
fn the_policy_for_watches_judges_recorded_ones() {
    for (name, expected) in [
        ("reports/watch-beside-a-kubelet", Pass),
        ("reports/watch-drop-stopped", Fail),
        ("reports/watch-crio", Pass),
        ("histories/runs/containerd-2.1-clean", CannotTell),
    ] {
        let gate = judge(&policy(NODE_WATCH), &[recorded(name)], &[]).unwrap();
        assert_eq!(gate.ruling(), expected, "{name}: {}", gate.text());
    }
}

/// Recorded runs of a few cases on real runtimes: without the rules on skips and on series.
#[test]
fn each_policy_judges_recorded_runs() {
    for text in [PULL_REQUEST, NIGHTLY, NODE_ROLLOUT] {
        let judged = Policy {
            skips: None,
            flakes: None,
            baseline: None,
            ..policy(text)
        };
        let old = if text == NODE_ROLLOUT { Fail } else { Pass };
        for (name, expected) in [
            ("histories/runs/containerd-2.1-clean", Pass),
            ("histories/runs/containerd-2.1-known", Pass),
            ("histories/runs/containerd-2.1-failing", Fail),
            ("histories/runs/containerd-1.7-known", old),
            ("histories/runs/containerd-1.7-failing", Fail),
            ("reports/crio-1.36", Pass),
        ] {
            let gate = judge(&judged, &[recorded(name)], &[]).unwrap();
            assert_eq!(gate.ruling(), expected, "{name}: {}", gate.text());
        }
    }
}

#[test]
fn flakes_are_found_where_runs_are_repeated() {
    check_changed(PULL_REQUEST, flaky, Pass);
    check_changed(NIGHTLY, flaky, Fail);
    check_changed(NODE_ROLLOUT, flaky, Fail);
}

#[test]
fn versions_that_no_node_should_have_stop_a_rollout() {
    for (version, expected) in [
        ("1.7.24", Fail),
        ("2.0.2", Fail),
        ("2.0.3", Pass),
        ("2.1.9", Pass),
        ("v2.3.1", Fail),
        ("2.3.2", Pass),
    ] {
        let change = |report: &mut Document| version.clone_into(&mut report.runtime.version);
        check_changed(NODE_ROLLOUT, change, expected);
    }
}

#[test]
fn the_schema_takes_what_can_be_read() {
    let schema = serde_json::to_value(super::super::schema()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let valid = |text: &str| {
        let value: serde_json::Value = serde_yaml::from_str(text).unwrap();
        validator.is_valid(&value)
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("ci/policies");
    let mut policies = 0;
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|kind| kind == "yaml") {
            assert!(
                valid(&fs::read_to_string(&path).unwrap()),
                "{}",
                path.display()
            );
            policies += 1;
        }
    }
    assert_eq!(policies, 4, "each has its tests above");
    for wrong in [
        "max-know: 0",
        "profiles: {cash: conformant}",
        "profiles: {cache: error}",
        "flakes: {max-rate: 5}",
        "latencies: [{limit: call, p50: 3}]",
        "baseline: {}",
        "[1]",
    ] {
        assert!(!valid(wrong), "{wrong}");
        assert!(Policy::parse(wrong).is_err(), "{wrong}");
    }
    assert_eq!(
        policy("latencies: [{limit: call, p50: 3s}]").latencies[0].p50,
        Some(Duration::from_secs(3))
    );
}
