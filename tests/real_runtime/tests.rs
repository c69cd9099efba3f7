//! The tests. Each gets a runtime with a foreign pod.
//!
//! None runs cases of many rounds: in one of some hundreds containerd reports DELETED before
//! STOPPED, which is a separate bug.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use cri_event_conformance::testing::drive::{PANIC_IN, PANIC_JUDGING};
use cri_event_conformance::testing::history::{Body, Entry, PodUid, Request, codec};
use rustix::process::Signal;
use serde_json::Value;

pub(crate) use crate::doctor::*;
use crate::logs::every_container_has_a_log;
pub(crate) use crate::neighbours::*;
use crate::node::{Node, run_id};
pub(crate) use crate::standin::*;
use crate::suite::{Ended, Suite, suite};
pub(crate) use crate::watch::*;

/// A case whose container runs for two seconds after the stop signal.
const LONG_CASE: &str = "STP-02";
/// One that follows it.
const NEXT_CASE: &str = "STP-06";
/// A case that containerd fails: a container that could not start is never reported STOPPED.
const FAILING_CASE: &str = "FLR-02";
/// For cases that wait for missing events.
const SHORT_BOUNDS: [&str; 2] = ["--timeout-scale", "0.3"];
/// An interrupted run ends once its calls have returned and its pods are removed.
const ORDERLY: Duration = Duration::from_secs(10);
const AT_ONCE: Duration = Duration::from_secs(1);

#[track_caller]
fn leaves_nothing(node: &Node, run: &str) {
    assert!(node.left_of(run).is_empty(), "{:#?}", node.left_of(run));
}

#[track_caller]
pub(crate) fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// The counts of a `JUnit` report: tests, failures, errors and skipped ones, by its attributes and
/// by its elements, which must agree.
#[track_caller]
fn junit(path: &Path) -> [usize; 4] {
    let text = fs::read_to_string(path).unwrap();
    let document = roxmltree::Document::parse(&text).unwrap();
    let count = |tag: &str| {
        let nodes = document.descendants();
        nodes.filter(|node| node.has_tag_name(tag)).count()
    };
    let mut nodes = document.descendants();
    let suite = nodes.find(|node| node.has_tag_name("testsuite")).unwrap();
    let attribute = |name: &str| suite.attribute(name).map(|number| number.parse().unwrap());
    let counted = ["testcase", "failure", "error", "skipped"].map(count);
    for (name, counted) in ["tests", "failures", "errors", "skipped"]
        .iter()
        .zip(counted)
    {
        assert!(
            attribute(name).is_none_or(|number: usize| number == counted),
            "{name}: {text}"
        );
    }
    counted
}

pub(crate) fn a_run_leaves_nothing_and_its_reports_agree(node: &Node) {
    let folder = tempfile::tempdir().unwrap();
    let files = ["--junit", "j.xml", "--json", "r.json", "--history", "h"];
    // One case fails, and an invariant with it; for that the next case is skipped.
    let cases = [FAILING_CASE, "ORD-01", "--fail-fast", "--test-threads", "1"];
    let logs = tempfile::tempdir().unwrap();
    let logs_at = ["--log-dir", logs.path().to_str().unwrap()];
    let args = [&cases[..], &files, &SHORT_BOUNDS, &logs_at].concat();
    let ended = node.suite(&args).inside(folder.path()).run().fails(1, &[]);
    leaves_nothing(node, &run_id(&ended.err));
    assert_eq!(fs::read_dir(logs.path()).unwrap().count(), 0);
    let report = json(&folder.path().join("r.json"));
    let totals = &report["totals"];
    assert_eq!((&totals["fail"], &totals["skip"]), (&2.into(), &1.into()));
    let all = report["outcomes"].as_array().unwrap().len();
    assert_eq!(junit(&folder.path().join("j.xml")), [all, 2, 0, 1]);
    assert!(ended.out.contains("never STARTED"), "{ended:#?}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    let reports = every_container_has_a_log(&folder.path().join("h"));
    assert!(reports > 0, "the runtime reports log paths");
    let shown = suite(["show", "h"]).inside(folder.path()).run().succeeds();
    for lane in ["rpc ", "event ", "stream ", "relist "] {
        assert!(shown.contains(lane), "{lane}: {shown}");
    }
}

/// For any end of a run, its reports follow from its history alone.
pub(crate) fn a_run_is_judged_again_from_its_history_to_the_same_reports(node: &Node) {
    let plain = [FAILING_CASE, "ORD-01", "SBX-03"];
    let one_by_one = ["SBX-01", "SBX-04", "--test-threads", "1"];
    let repeated = [FAILING_CASE, "SBX-01", "--fail-fast", "--repeat", "2"];
    is_judged_again(node, &plain, &[]);
    is_judged_again(node, &one_by_one, &[(PANIC_IN, "SBX-01")]);
    is_judged_again(node, &one_by_one, &[(PANIC_JUDGING, "SBX-04")]);
    let one_at_once = [&repeated[..], &["--test-threads", "1"]].concat();
    is_judged_again(node, &one_at_once, &[]);
    let skipping = [&repeated[..], &["--skip", "INV-11"]].concat();
    is_judged_again(node, &skipping, &[]);
}

fn is_judged_again(node: &Node, cases: &[&str], environment: &[(&str, &str)]) {
    let folder = tempfile::tempdir().unwrap();
    let files = |junit, json| ["--junit", junit, "--json", json];
    let written = [&files("j.xml", "r.json")[..], &["--history", "h"]].concat();
    let args = [cases, &written, &SHORT_BOUNDS].concat();
    let run = node.suite(&args).inside(folder.path());
    let set = |run: Suite, (name, value): &(&str, &str)| run.env(name, value);
    let ran = environment.iter().fold(run, set).run();
    let args = [&["check", "h"][..], &files("j2.xml", "r2.json")].concat();
    let checked = suite(args).inside(folder.path()).run();
    assert_eq!(ran.code, checked.code, "{ran:#?} {checked:#?}");
    for (of_run, of_check) in [("j.xml", "j2.xml"), ("r.json", "r2.json")] {
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(read(of_run), read(of_check), "{cases:?}");
    }
    assert_eq!(text(&ran), text(&checked), "{cases:?}");
}

/// The output. Cases end in any order, and the reason for skipped cases is printed with the first
/// of them.
fn text(ended: &Ended) -> Vec<String> {
    let lines = ended.out.lines().filter(|line| {
        let of_printing = ["JUnit report: ", "JSON report: "];
        let of_one_run = of_printing.iter().any(|start| line.starts_with(start));
        let of_the_first = [" ... skipped", " for the same reason as "];
        !of_one_run && !of_the_first.iter().any(|part| line.contains(part))
    });
    let mut lines: Vec<_> = lines.map(str::to_owned).collect();
    lines.sort();
    lines
}

pub(crate) fn a_run_in_json_prints_nothing_but_json(node: &Node) {
    // Some pass, one fails, and one may be skipped; none is a race that the runtime loses at times.
    let cases = [FAILING_CASE, "ORD-01", "SBX-01", "SBX-03", "SBX-09"];
    let args = [&cases[..], &["--format", "json"], &SHORT_BOUNDS].concat();
    let ended = node.suite(&args).run().fails(1, &[]);
    leaves_nothing(node, &run_id(&ended.err));
    let lines = ended.out.lines().map(serde_json::from_str::<Value>);
    let lines: Vec<_> = lines.map(Result::unwrap).collect();
    let is_end = |line: &&Value| {
        let event = line["event"].as_str().unwrap_or_default();
        line["type"] == "test" && ["ok", "failed", "ignored"].contains(&event)
    };
    let ends = lines.iter().filter(is_end);
    assert_eq!(lines[0]["test_count"], ends.count(), "{ended:#?}");
}

pub(crate) fn sigint_ends_a_run_in_an_orderly_way(node: &Node) {
    is_orderly(node, Signal::INT, "SIGINT");
}

pub(crate) fn sigterm_ends_a_run_in_an_orderly_way(node: &Node) {
    is_orderly(node, Signal::TERM, "SIGTERM");
}

fn is_orderly(node: &Node, signal: Signal, name: &str) {
    let folder = tempfile::tempdir().unwrap();
    let args = [
        LONG_CASE,
        NEXT_CASE,
        "--test-threads",
        "1",
        "--junit",
        "j.xml",
        "--json",
        "r.json",
    ];
    let running = node.suite(&args).inside(folder.path()).start();
    let run = node.wait_for_a_container(&running);
    running.send(signal);
    let ended = running
        .end_within(ORDERLY)
        .fails(3, &[name, "repeat to exit at once"]);
    leaves_nothing(node, &run);
    assert!(
        ended.out.contains(&format!("interrupted by {name}")),
        "{ended:#?}"
    );
    let report = json(&folder.path().join("r.json"));
    let totals = &report["totals"];
    let [all, failures, errors, skipped] = junit(&folder.path().join("j.xml"));
    assert_eq!(
        failures, 0,
        "an interrupted case convicts nobody: {ended:#?}"
    );
    assert_eq!(
        (&totals["error"], &totals["skip"]),
        (&errors.into(), &skipped.into())
    );
    assert_eq!(all, report["outcomes"].as_array().unwrap().len());
    // The next case is not run, and of what was interrupted no invariant says anything.
    let invariants = report["outcomes"].as_array().unwrap().iter();
    let invariants =
        invariants.filter(|outcome| outcome["id"].as_str().unwrap().starts_with("INV-"));
    assert_eq!((errors, skipped), (1, 1 + invariants.count()), "{ended:#?}");
}

pub(crate) fn a_second_sigint_leaves_at_once_and_cleanup_does_the_rest(node: &Node) {
    let folder = tempfile::tempdir().unwrap();
    // So many pods that cleaning up takes longer than signals count as one.
    let many = ["--repeat", "8", "--test-threads", "8"];
    let args = [&[LONG_CASE, "--junit", "j.xml"], &many[..]].concat();
    let running = node.suite(&args).inside(folder.path()).start();
    let run = node.wait_for_a_container(&running);
    running.send(Signal::INT);
    running.wait_for("repeat to exit at once");
    let hint = format!(" --run-id {run}");
    running
        .end_by(Signal::INT, AT_ONCE)
        .fails(3, &["exiting at once", &hint]);
    assert!(!node.left_of(&run).is_empty());
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        0,
        "no draft stays"
    );
    removes(&node.suite(&["cleanup", "--run-id", &run]).run().succeeds());
    leaves_nothing(node, &run);
    let again = node.suite(&["cleanup", "--run-id", &run]).run().succeeds();
    assert!(again.starts_with("nothing to remove of run "), "{again}");
}

#[track_caller]
fn removes(out: &str) {
    assert!(out.contains("removed sandbox "), "{out}");
    assert!(out.contains("removed image "), "{out}");
}

pub(crate) fn an_output_that_nobody_reads_ends_a_run_in_an_orderly_way(node: &Node) {
    let message = "the output was closed before the end of the run: stopped";
    for format in ["pretty", "terse", "json"] {
        let args = ["ORD-01", "SBX", "--test-threads", "1", "--format", format];
        let ended = node.suite(&args).run_for_a_line().fails(3, &[message]);
        leaves_nothing(node, &run_id(&ended.err));
        let ended = node.suite(&args).run_unread().fails(3, &[message]);
        leaves_nothing(node, &run_id(&ended.err));
    }
}

pub(crate) fn a_panic_in_a_case_is_an_error_of_that_case_alone(node: &Node) {
    is_an_error_of_one_case(node, PANIC_IN);
}

pub(crate) fn a_panic_in_judging_a_case_is_an_error_of_that_case_alone(node: &Node) {
    is_an_error_of_one_case(node, PANIC_JUDGING);
}

fn is_an_error_of_one_case(node: &Node, variable: &str) {
    let folder = tempfile::tempdir().unwrap();
    // A race that is known of the runtime is no error.
    let known = ["--expectations", "builtin"];
    let args = ["ORD-01", "SBX-01", "SBX-03", "--json", "r.json"];
    let run = node.suite(&[&args[..], &known].concat());
    let run = run.inside(folder.path());
    let ended = run.env(variable, "SBX-01").run();
    assert_eq!(ended.code, 3, "{ended:#?}");
    leaves_nothing(node, &run_id(&ended.err));
    assert!(ended.out.contains("the suite itself failed"), "{ended:#?}");
    let report = json(&folder.path().join("r.json"));
    let outcomes = report["outcomes"].as_array().unwrap();
    for outcome in outcomes {
        let expected = match outcome["id"].as_str() {
            Some("SBX-01") => ["error"; 2],
            _ => ["pass", "known"],
        };
        let verdict = outcome["verdict"].as_str().unwrap();
        assert!(expected.contains(&verdict), "{outcome:#}");
    }
}

pub(crate) fn a_kept_pod_stays_until_it_is_cleaned_up(node: &Node) {
    let args = [&[FAILING_CASE, "ORD-01", "--keep"][..], &SHORT_BOUNDS].concat();
    let ended = node
        .suite(&args)
        .run()
        .fails(1, &["kept for inspection: sandbox "]);
    let run = run_id(&ended.err);
    let hint = format!(" --run-id {run}");
    assert!(ended.err.contains(&hint), "{ended:#?}");
    let left = node.left_of(&run);
    let sandboxes = left.iter().filter(|line| line.starts_with("sandbox "));
    assert_eq!(sandboxes.count(), 1, "{left:#?}");
    removes(&node.suite(&["cleanup", "--run-id", &run]).run().succeeds());
    leaves_nothing(node, &run);
}

pub(crate) fn cleanup_removes_what_a_killed_run_left_and_no_run_that_goes_on(node: &Node) {
    let start = || node.suite(&[LONG_CASE]).start();
    let (killed, live) = (start(), start());
    let killed_run = node.wait_for_a_container(&killed);
    killed.send(Signal::KILL);
    assert_eq!(killed.end().code, 137);
    let live_run = node.wait_for_a_container(&live);
    let out = node.suite(&["cleanup"]).run().succeeds();
    removes(&out);
    assert!(out.contains(&format!("skipped: run {live_run}")), "{out}");
    leaves_nothing(node, &killed_run);
    passes(&live.end());
    leaves_nothing(node, &live_run);
    // Log directories and cgroups are the host's: those of the runs of other tests are seen, too.
    let again = node.suite(&["cleanup"]).run().succeeds();
    for line in again.lines() {
        let others = line.starts_with("skipped: ") && !line.contains(&live_run);
        assert!(line == "nothing to remove" || others, "{again}");
    }
}

/// CMP-09 of two suites: foreign events are received, but not judged.
pub(crate) fn two_runs_at_once_judge_each_its_own(node: &Node) {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let args = [LONG_CASE, "ORD-01", "SBX-03", "--history", "h.binpb"];
    let running = folders
        .each_ref()
        .map(|folder| node.suite(&args).inside(folder.path()).start());
    let runs = running
        .each_ref()
        .map(|running| node.wait_for_a_container(running));
    for running in running {
        passes(&running.end());
    }
    for run in runs {
        leaves_nothing(node, &run);
    }
    let pods = folders.each_ref().map(|folder| {
        let bytes = fs::read(folder.path().join("h.binpb")).unwrap();
        RunPods::of(&codec::decode_file(&bytes).entries)
    });
    assert!(pods[0].asked_for.is_disjoint(&pods[1].asked_for));
    let sees = |one: &RunPods, other: &RunPods| !one.seen.is_disjoint(&other.asked_for);
    assert!(
        sees(&pods[0], &pods[1]) || sees(&pods[1], &pods[0]),
        "the run that came first sees the other one's pods: {pods:#?}"
    );
}

/// The UIDs of a run's own pods, and of all pods with an event.
#[derive(Debug, Default)]
struct RunPods {
    asked_for: BTreeSet<PodUid>,
    seen: BTreeSet<PodUid>,
}

impl RunPods {
    fn of(entries: &[Entry]) -> Self {
        let mut pods = Self::default();
        for entry in entries {
            if let Body::CallBegan {
                request: Request::RunSandbox(spec),
                ..
            } = &entry.body
            {
                pods.asked_for.insert(spec.uid.clone());
            }
            if let Body::Event { event, .. } = &entry.body {
                pods.seen.extend(event.pod_uid().cloned());
            }
        }
        pods
    }
}

#[track_caller]
fn passes(ended: &Ended) {
    assert_eq!(ended.code, 0, "{ended:#?}");
}

pub(crate) fn a_runtime_that_is_killed_and_comes_back_is_cleaned_up(node: &Node) {
    let folder = tempfile::tempdir().unwrap();
    // The races of this runtime that are known may be lost before it is killed.
    let args = [
        LONG_CASE,
        NEXT_CASE,
        "--test-threads",
        "2",
        "--json",
        "r.json",
        "--expectations",
        "builtin",
    ];
    let running = node.suite(&args).inside(folder.path()).start();
    let run = node.wait_for_a_container(&running);
    node.restart("KILL");
    let ended = running.end().fails(3, &[]);
    leaves_nothing(node, &run);
    let report = json(&folder.path().join("r.json"));
    assert_eq!(
        report["totals"]["fail"], 0,
        "a lost runtime is convicted of nothing: {ended:#?}"
    );
    assert!(!ended.out.contains("not removed"), "{ended:#?}");
}

pub(crate) fn a_runtime_is_restarted_under_pods_of_others_only_where_that_is_allowed(node: &Node) {
    let [stop, start] = node.restart_commands();
    let restart = |allowed: &str| {
        // RST-08 kills the process that serves the socket.
        let args = ["RST-07", "RST-08", "--tier", "full", "--allow", allowed];
        let by = ["--runtime-stop-cmd", &stop, "--runtime-start-cmd", &start];
        node.suite(&[&args[..], &by].concat()).run()
    };
    // Nothing is left that could be judged.
    let refused = restart("disruption").fails(4, &[]);
    let words: Vec<_> = refused.out.split_whitespace().collect();
    let skipped = "started again under pods of others (1);";
    assert!(words.join(" ").contains(skipped), "{refused:#?}");
    assert!(!refused.err.contains("stops the runtime"), "{refused:#?}");
    let ended = restart("disruption-with-foreign-pods");
    assert!(ended.err.contains("stops the runtime"), "{ended:#?}");
    passes(&ended);
    leaves_nothing(node, &run_id(&ended.err));
}

pub(crate) fn a_runtime_without_events_is_reported_and_left_clean(node: &Node) {
    let messages = [
        "UNIMPLEMENTED",
        "no event stream",
        "containerd has it since 1.7",
    ];
    let ended = node.suite(&["ORD-01"]).run().fails(3, &messages);
    assert!(ended.out.contains("  skipped: "), "{ended:#?}");
    let judged = node.suite(&["ORD-01", "FEA-02"]).run().fails(3, &messages);
    let of = |id: &str| {
        judged
            .out
            .lines()
            .find(|line| line.starts_with(&format!("test {id} ")))
    };
    assert!(
        of("FEA-02").is_some_and(|line| line.contains(" ... ok")),
        "{judged:#?}"
    );
    assert!(
        of("ORD-01").is_some_and(|line| line.contains(" ... skipped: ")),
        "{judged:#?}"
    );
    assert!(node.left_of_all().is_empty(), "{:#?}", node.left_of_all());
}
