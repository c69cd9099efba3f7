//! `--rerun-failed`: runs the failed cases of a report.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::suite::suite;

/// A directory with both reports of a run, and the ids of its failures.
fn reports(args: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let files = ["-r", "model", "--json", "r.json", "--junit", "r.xml"];
    suite([&files, args].concat()).inside(folder.path()).run();
    folder
}

fn listed(folder: &Path, report: &str, args: &[&str]) -> Vec<String> {
    let list = ["--list", "--format", "terse", "--rerun-failed", report];
    let listed = suite([&list, args].concat()).inside(folder).run();
    let listed = listed.succeeds();
    let ids = listed.lines().filter_map(|line| line.split(' ').next());
    ids.map(str::to_owned).collect()
}

#[test]
fn both_reports_name_the_same_cases() {
    let folder = reports(&["CMP-02", "ORD-01", "--defect", "repeat-stopped"]);
    // In the first only an invariant is broken.
    let broken = ["CMP-02", "ORD-01"];
    for report in ["r.json", "r.xml"] {
        assert_eq!(listed(folder.path(), report, &[]), broken, "{report}");
        assert_eq!(listed(folder.path(), report, &["ORD"]), ["ORD-01"]);
    }
}

#[test]
fn a_run_again_runs_those_alone() {
    let defect = "no-stopped-after-failed-start";
    let folder = reports(&["FLR-02", "SBX-01", "--defect", defect]);
    let again = ["-r", "model", "--rerun-failed", "r.json"];
    let ended = suite(again).inside(folder.path()).run().fails(0, &[]);
    assert!(ended.out.contains("test FLR-02 "), "{ended:#?}");
    assert!(!ended.out.contains("test SBX-01 "), "{ended:#?}");
    assert!(ended.out.contains("\ncache     partial "), "{ended:#?}");
}

#[test]
fn nothing_is_run_again_where_nothing_failed() {
    let folder = reports(&["SBX-01"]);
    for report in ["r.json", "r.xml"] {
        let again = suite(["-r", "model", "--rerun-failed", report]);
        let ended = again.inside(folder.path()).run();
        ended.fails(
            4,
            &["no case matches the selection: nothing failed in that run"],
        );
    }
}

#[test]
fn what_is_no_report_of_these_cases_is_reported() {
    let folder = reports(&["CMP-02", "--defect", "repeat-stopped"]);
    let again = |report: &str| {
        let again = suite(["--list", "--rerun-failed", report]);
        again.inside(folder.path()).run()
    };
    again("missing").fails(2, &["read the failed cases of missing: No such file"]);
    again(".").fails(2, &["of .: ", "directory"]);
    fs::write(folder.path().join("other"), "runtime: model\n").unwrap();
    again("other").fails(2, &["it is no JSON or JUnit report of this suite"]);
    let text = fs::read_to_string(folder.path().join("r.json")).unwrap();
    fs::write(
        folder.path().join("other"),
        text.replace("CMP-02", "CMP-99"),
    )
    .unwrap();
    again("other").fails(2, &["there is no case `CMP-99`", "--cases"]);
}
