//! The suite as a plugin of Sonobuoy: it hands its reports over, and ends only on a signal.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::suite::{Running, Suite, not_tested, suite};

const WAITS: &str = "waiting for SIGTERM";

/// The results directory of a plugin.
struct Results(TempDir);

impl Results {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// The plugin with these arguments.
    fn plugin(&self, args: &[&str]) -> Suite {
        suite(["sonobuoy"].iter().chain(args)).env("SONOBUOY_RESULTS_DIR", self.path())
    }

    /// The content of the file that Sonobuoy waits for.
    fn done(&self) -> String {
        fs::read_to_string(self.path().join("done")).unwrap()
    }

    /// The verdict elements in the JUnit report: `failure`, `error` and `skipped`.
    fn junit(&self) -> (usize, usize) {
        let text = fs::read_to_string(self.path().join("reports/junit_cri_events.xml")).unwrap();
        let document = roxmltree::Document::parse(&text).unwrap();
        let count = |name| {
            document
                .descendants()
                .filter(|node| node.has_tag_name(name))
                .count()
        };
        assert!(count("testcase") > 0, "{text}");
        (count("failure"), count("error"))
    }
}

/// It must still run, so that this signal ends it with success.
#[track_caller]
fn ends_when_told_to(plugin: Running) -> String {
    plugin.send(Signal::TERM);
    let ended = plugin.end();
    assert_eq!(ended.code, 0, "{ended:#?}");
    ended.err
}

#[test]
fn a_run_hands_its_reports_over_and_waits() {
    let results = Results::new();
    let plugin = results.plugin(&["-r", "model", "ORD-01"]).start();
    plugin.wait_for(WAITS);
    let reports = results.path().join("reports");
    assert_eq!(Path::new(&results.done()), reports);
    assert_eq!(results.junit(), (0, 0));
    // Sonobuoy's container has another user, and packs the directory within itself.
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode(&reports), mode(&results.path().join("done"))),
        (0o777, 0o644)
    );
    let mut names = Vec::new();
    for entry in fs::read_dir(&reports).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(mode(&entry.path()), 0o644, "{entry:?}");
        names.push(entry.file_name().into_string().unwrap());
    }
    names.sort();
    let all = [
        "history.binpb",
        "junit_cri_events.xml",
        "report.html",
        "report.json",
        "summary.md",
    ];
    assert_eq!(names, all);
    ends_when_told_to(plugin);
    let names = fs::read_dir(results.path()).unwrap().count();
    assert_eq!(names, 2, "no draft is left");
}

#[test]
fn a_run_that_fails_hands_its_reports_over() {
    let results = Results::new();
    let broken = ["-r", "model", "--defect", "drop-stopped", "STP-01"];
    let plugin = results.plugin(&broken).start();
    plugin.wait_for(WAITS);
    let (failures, errors) = results.junit();
    assert!(failures > 0 && errors == 0, "{failures}, {errors}");
    ends_when_told_to(plugin);
}

#[test]
fn a_run_that_cannot_start_hands_over_why() {
    let results = Results::new();
    let missing = format!("unix://{}/no.sock", results.path().display());
    let plugin = results.plugin(&["-r", &missing]).start();
    plugin.wait_for(WAITS);
    assert_eq!(results.junit(), (0, 1));
    let junit = fs::read_to_string(results.path().join("reports/junit_cri_events.xml")).unwrap();
    assert!(junit.contains("no.sock"), "{junit}");
    let err = ends_when_told_to(plugin);
    assert!(err.contains("error: ") && err.contains("no.sock"), "{err}");
}

/// A container that ends, for example out of memory, is restarted by its pod.
#[test]
fn results_that_are_there_are_not_made_again() {
    let results = Results::new();
    let plugin = results.plugin(&["-r", "model", "ORD-01"]).start();
    plugin.wait_for(WAITS);
    ends_when_told_to(plugin);
    let junit = results.path().join("reports/junit_cri_events.xml");
    fs::write(&junit, "as it was").unwrap();
    let again = results.plugin(&["-r", "model", "ORD-01"]).start();
    again.wait_for(WAITS);
    let err = ends_when_told_to(again);
    assert!(err.contains("nothing is run"), "{err}");
    assert_eq!(fs::read_to_string(junit).unwrap(), "as it was");
}

#[test]
fn a_watch_hands_its_reports_over_and_waits() {
    let results = Results::new();
    let endpoint = format!("unix://{}/cri.sock", results.path().display());
    let served = suite(["model", "--listen", &endpoint]).start();
    served.wait_for("the model runtime listens on");
    let plugin = results
        .plugin(&["watch", "--for", "1s", "-r", &endpoint])
        .start();
    plugin.wait_for(WAITS);
    assert_eq!(Path::new(&results.done()), results.path().join("reports"));
    results.junit();
    assert!(results.path().join("reports/history.binpb").exists());
    ends_when_told_to(plugin);
}

#[test]
fn a_watch_takes_its_own_options_alone() {
    let results = Results::new();
    let ended = results.plugin(&["watch", "--tier", "core"]).run();
    ended.fails(2, &["unexpected argument '--tier'"]);
    let plugin = results.plugin(&["--tier", "core", "watch"]).start();
    plugin.wait_for(WAITS);
    assert_eq!(results.junit(), (0, 1));
    let err = ends_when_told_to(plugin);
    assert!(err.contains("`watch` is not a command"), "{err}");
}

#[test]
fn a_signal_during_the_run_also_ends_the_wait() {
    let results = Results::new();
    let plugin = results.plugin(&["-r", "model", "--repeat", "10"]).start();
    plugin.wait_for("testing model");
    ends_when_told_to(plugin);
    assert_eq!(Path::new(&results.done()), results.path().join("reports"));
}

#[test]
fn a_results_directory_that_cannot_be_written_is_reported_before_the_run() {
    let results = Results::new();
    fs::create_dir(results.path().join("done")).unwrap();
    let ended = results.plugin(&["-r", "model", "ORD-01"]).run();
    let ended = ended.fails(2, &["done", "it is a directory"]);
    assert!(!ended.err.contains("testing"), "{ended:#?}");
}

/// In an image without other files, the paths are those of the node.
#[test]
fn the_results_stay_where_they_are_if_the_root_directory_is_changed() {
    let results = Results::new();
    let empty = tempfile::tempdir().unwrap();
    let root = empty.path().to_str().unwrap();
    let refused = results
        .plugin(&["--host-root", root, "-r", "model", "ORD-01"])
        .run();
    if refused.err.contains("not permitted") {
        refused.fails(2, &["change the root directory"]);
        return not_tested(&"another root directory");
    }
    refused.fails(2, &["a root directory without /proc", root]);
    let plugin = results
        .plugin(&["--host-root", "/", "-r", "model", "ORD-01"])
        .start();
    plugin.wait_for(WAITS);
    assert_eq!(Path::new(&results.done()), results.path().join("reports"));
    assert_eq!(results.junit(), (0, 0));
    ends_when_told_to(plugin);
}

#[test]
fn options_of_the_run_stand_after_the_command() {
    let ended = suite(["--tier", "core", "sonobuoy"]).run();
    ended.fails(2, &["put it after `sonobuoy`"]);
}
