//! Reports: their schema, comparison, and the generation of expectation files.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::fake_cri::{FakeCri, Flaw};
use crate::suite::{Ended, suite, suite_limited};

/// A run on the model, in a directory.
fn model(folder: &TempDir, args: &[&str]) -> Ended {
    let runs = ["-r", "model", "--format", "terse"]
        .into_iter()
        .chain(args.iter().copied());
    suite(runs).inside(folder.path()).run()
}

fn inside(folder: &TempDir, args: &[&str]) -> Ended {
    suite(args).inside(folder.path()).run()
}

fn text(folder: &TempDir, name: impl AsRef<Path>) -> String {
    fs::read_to_string(folder.path().join(name)).unwrap()
}

const JUNIT: &str = "junit_cri_events.xml";
const DROPS: [&str; 2] = ["--defect", "drop-stopped"];
const CASES: [&str; 3] = ["ORD-01", "SBX-01", "INV"];

#[test]
fn reports_of_a_run_by_sudo_belong_to_who_called_it() {
    const SUDOER: u32 = 12_345;
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().metadata().unwrap().uid();
    for (user, owner) in [("12345", SUDOER), ("12345", SUDOER), ("nobody", own)] {
        let args = [
            "-r",
            "model",
            "SBX-01",
            "--json",
            "r.json",
            "--history",
            "h",
        ];
        let run = suite(args).inside(folder.path()).env("SUDO_UID", user);
        run.env("SUDO_GID", "12345").run().fails(0, &[]);
        for name in ["r.json", "h"] {
            let found = folder.path().join(name).metadata().unwrap();
            let expected = if own == 0 { owner } else { own };
            assert_eq!(
                (found.uid(), found.mode() & 0o777),
                (expected, 0o600),
                "{name}"
            );
        }
    }
}

#[test]
fn a_report_matches_its_schema() {
    let folder = tempfile::tempdir().unwrap();
    let message = suite(["schema", "report"]).run().fails(0, &[]);
    let schema: Value = serde_json::from_str(&message.out).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for defects in [&[][..], &DROPS] {
        let args = [&CASES[..], defects, &["--json", "r.json"]].concat();
        model(&folder, &args);
        let report: Value = serde_json::from_str(&text(&folder, "r.json")).unwrap();
        let faults: Vec<_> = validator.iter_errors(&report).collect();
        assert!(faults.is_empty(), "{faults:?}");
        assert_eq!(report["capabilities"]["sandbox_events"], true);
        assert_eq!(report["environment"], Value::Null);
        assert_ne!(report["latencies"], serde_json::json!([]));
    }
}

#[test]
fn a_refused_run_has_reports_with_the_reason() {
    let fake = FakeCri::start(Flaw::EventsOff);
    fake.add_pod_of_a_kubelet();
    let socket = fake.socket();
    for (endpoint, reason) in [
        ("/no/such/socket", "no socket"),
        (socket.to_str().unwrap(), "ready pods have a kubelet"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let args = ["ORD-01", "-r", endpoint, "--report-dir", "reports"];
        inside(&folder, &args).fails(3, &[reason]);
        for report in ["report.json", "summary.md", "report.html", JUNIT] {
            let text = text(&folder, Path::new("reports").join(report));
            assert!(text.contains(reason), "{report}: {text}");
        }
        let junit = text(&folder, Path::new("reports").join(JUNIT));
        assert!(junit.contains("<error type=\"undecided\""), "{junit}");
    }
}

#[test]
fn a_case_matches_its_schema() {
    let message = suite(["schema", "case"]).run().fails(0, &[]);
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/cases/schema.json");
    assert_eq!(message.out, fs::read_to_string(kept).unwrap());
}

#[test]
fn a_history_comes_to_the_report_of_its_run() {
    let folder = tempfile::tempdir().unwrap();
    let args = [
        &CASES[..],
        &DROPS,
        &["--json", "run.json", "--history", "h"],
    ]
    .concat();
    model(&folder, &args);
    inside(&folder, &["check", "h", "--json", "check.json"]).fails(1, &[]);
    assert_eq!(text(&folder, "run.json"), text(&folder, "check.json"));
}

#[test]
fn a_directory_takes_all_reports() {
    let folder = tempfile::tempdir().unwrap();
    let all = [
        "history.binpb",
        "junit_cri_events.xml",
        "report.html",
        "report.json",
        "summary.md",
    ];
    let names = |directory: &str| {
        let entries = fs::read_dir(folder.path().join(directory)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        names
    };
    model(
        &folder,
        &[&CASES[..], &DROPS, &["--report-dir", "new/run"]].concat(),
    )
    .fails(1, &[]);
    assert_eq!(names("new/run"), all);
    let summary = text(&folder, "new/run/summary.md");
    assert!(summary.contains("| ORD-01 order::"), "{summary}");
    let history = ["check", "new/run/history.binpb", "--report-dir", "again"];
    inside(&folder, &history).fails(1, &[]);
    assert_eq!(names("again"), all[1..]);
    for name in &all[1..] {
        let [run, again] = ["new/run", "again"].map(|it| text(&folder, format!("{it}/{name}")));
        assert_eq!(run, again, "{name}");
    }
    let elsewhere = ["ORD-01", "--report-dir", "third", "--json", "r.json"];
    model(&folder, &elsewhere).fails(0, &[]);
    assert_eq!(names("third"), [all[0], all[1], all[2], all[4]]);
    fs::write(folder.path().join("file"), "").unwrap();
    let file = model(&folder, &["ORD-01", "--report-dir", "file"]);
    file.fails(2, &["error: write the reports to file: "]);
}

#[test]
fn many_reports_are_one_page() {
    let folder = tempfile::tempdir().unwrap();
    model(&folder, &[&CASES[..], &["--json", "good.json"]].concat()).fails(0, &[]);
    let bad = [&CASES[..], &DROPS, &["--json", "bad.json"]].concat();
    model(&folder, &bad).fails(1, &[]);
    let matrix = ["matrix-report", "a=good.json", "b=bad.json"];
    let printed = inside(&folder, &matrix).fails(0, &[]);
    assert!(printed.out.contains("| ORD-01 order::"), "{printed:#?}");
    let written = inside(&folder, &[&matrix[..], &["--html", "m.html"]].concat()).fails(0, &[]);
    assert_eq!(written.out, "");
    let page = text(&folder, "m.html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("href=\"#evidence-0-1\""));
    let nowhere = [&matrix[..], &["--html", "no/m.html"]].concat();
    inside(&folder, &nowhere).fails(2, &["error: write the HTML table to no/m.html: "]);
}

#[test]
fn github_shows_new_failures_and_takes_nothing_else_for_a_command() {
    let folder = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let args = ["-r", "model", "ORD-01", "--exact", "--format", "github"]
            .iter()
            .chain(args);
        suite(args).inside(folder.path()).run()
    };
    let failed = run(&DROPS).fails(1, &[]);
    let mut stopped = None;
    let mut active = Vec::new();
    for line in failed.out.lines() {
        match (line.strip_prefix("::stop-commands::"), stopped) {
            (Some(token), None) => stopped = Some(token),
            (None, Some(token)) if line == format!("::{token}::") => stopped = None,
            (None, None) => active.push(line),
            (_, Some(_)) => {}
        }
    }
    assert_eq!(stopped, None);
    let [annotation] = active[..] else {
        panic!("{active:#?}");
    };
    let title =
        "::error title=ORD-01 order%3A%3Acreated-started-stopped-deleted::missing-stopped: ";
    assert!(annotation.starts_with(title), "{annotation}");
    assert!(failed.out.contains("test ORD-01 order::"), "{failed:#?}");
    let passed = run(&[]).fails(0, &[]);
    assert!(!passed.out.contains("::error"), "{passed:#?}");
    let known = "runtime: any\nknown: [{case: ORD-01, reason: r, link: l}]\n";
    fs::write(folder.path().join("known.yaml"), known).unwrap();
    let known = run(&[&DROPS[..], &["--expectations", "known.yaml"]].concat()).fails(0, &[]);
    assert!(!known.out.contains("::error"), "{known:#?}");
}

#[test]
fn two_reports_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    model(&folder, &[&CASES[..], &["--json", "good.json"]].concat()).fails(0, &[]);
    let broken = [&CASES[..], &DROPS, &["--json", "bad.json"]].concat();
    model(&folder, &broken).fails(1, &[]);
    let worse = inside(&folder, &["compare", "good.json", "bad.json"]).fails(1, &[]);
    assert!(worse.out.contains("worse    ORD-01 order::"), "{worse:#?}");
    let message = "worse    profile cache: partial → non-conformant";
    assert!(worse.out.contains(message), "{worse:#?}");
    let better = inside(&folder, &["compare", "bad.json", "good.json"]).fails(0, &[]);
    assert!(
        better.out.contains("better   ORD-01 order::"),
        "{better:#?}"
    );
    let same = inside(&folder, &["compare", "bad.json", "bad.json"]).fails(0, &[]);
    assert!(same.out.contains("0 worse, 0 better"), "{same:#?}");
    let json = ["compare", "good.json", "bad.json", "--format", "json"];
    let json: Value = serde_json::from_str(&inside(&folder, &json).fails(1, &[]).out).unwrap();
    assert_eq!(json["worse"][0]["after"], "fail");
}

#[test]
fn what_cannot_be_compared_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("good.json"), "").unwrap();
    model(
        &folder,
        &["SBX-01", "--json", "good.json", "--history", "h"],
    )
    .fails(0, &[]);
    fs::write(folder.path().join("other.json"), r#"{"format": 2}"#).unwrap();
    for (before, after, message) in [
        (
            "good.json",
            "none.json",
            "read the report none.json: No such file",
        ),
        ("h", "good.json", "read the report h: it is no text"),
        (
            "good.json",
            "other.json",
            "read the report other.json: it is of format 2",
        ),
        (
            ".",
            "good.json",
            "read the report .: it is a directory; name a file",
        ),
    ] {
        inside(&folder, &["compare", before, after]).fails(2, &[message]);
    }
}

#[test]
fn with_what_failed_as_expectations_nothing_fails() {
    let folder = tempfile::tempdir().unwrap();
    let write = ["--write-expectations", "known.yaml", "--history", "h"];
    let failed = model(&folder, &[&CASES[..], &DROPS, &write].concat()).fails(1, &[]);
    assert!(
        failed.out.contains("expectation file: known.yaml"),
        "{failed:#?}"
    );
    let known = text(&folder, "known.yaml");
    for message in [
        "# Known failures, as runs",
        "case: ORD-01",
        "reason: 'TODO: ",
        "link: TODO",
    ] {
        assert!(known.contains(message), "{message}: {known}");
    }
    let again = ["--expectations", "known.yaml"];
    model(&folder, &[&CASES[..], &DROPS, &again].concat()).fails(0, &[]);
    inside(&folder, &[&["check", "h"][..], &again].concat()).fails(0, &[]);
    let write = ["check", "h", "--write-expectations", "from-check.yaml"];
    inside(&folder, &write).fails(1, &[]);
    assert_eq!(text(&folder, "from-check.yaml"), known);
}

#[test]
fn no_file_that_is_there_is_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let kept = "{runtime: any, known: []} # a comment\n";
    fs::write(folder.path().join("known.yaml"), kept).unwrap();
    for before in [&[][..], &["--expectations", "known.yaml"]] {
        let write = ["--write-expectations", "known.yaml", "--json", "r.json"];
        let args = [&["SBX-01"][..], before, &write].concat();
        model(&folder, &args).fails(2, &["expectation file to known.yaml", "name a new file"]);
        assert_eq!(text(&folder, "known.yaml"), kept);
    }
    let left = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 1);
}

/// A report that cannot be written: a full device.
const FULL: &str = "/dev/full";

#[test]
fn a_report_that_cannot_be_written_keeps_no_verdict_back() {
    let folder = tempfile::tempdir().unwrap();
    let message = "error: write the JUnit report to /dev/full: No space left";
    for (defects, code) in [(&[][..], 3), (&DROPS, 1)] {
        let reports = ["--junit", FULL, "--json", "r.json"];
        let args = [&CASES[..], defects, &reports].concat();
        let ended = model(&folder, &args).fails(code, &[message]);
        assert!(ended.out.contains("profile "), "{ended:#?}");
        assert!(ended.out.contains("JSON report: r.json"), "{ended:#?}");
        assert!(!ended.out.contains("JUnit report: "), "{ended:#?}");
        serde_json::from_str::<Value>(&text(&folder, "r.json")).unwrap();
        fs::remove_file(folder.path().join("r.json")).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

#[test]
fn a_history_that_cannot_be_written_is_not_said_to_be_whole() {
    let folder = tempfile::tempdir().unwrap();
    let ended = model(&folder, &["ORD-01", "--history", FULL]).fails(3, &[]);
    let message = "history: /dev/full (incomplete)";
    assert!(ended.out.contains(message), "{ended:#?}");
}

#[test]
fn a_file_that_may_not_grow_is_a_fault_and_kills_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["-r", "model", "ORD-01", "--history", "h"];
    let run = suite_limited("--fsize=2048", args).inside(folder.path());
    let ended = run.run().fails(3, &[]);
    for message in ["File too large", "history: h (incomplete)"] {
        assert!(ended.out.contains(message), "{ended:#?}");
    }
}

#[test]
fn an_output_that_is_full_is_not_said_to_be_closed() {
    let full = fs::File::options().write(true).open(FULL).unwrap();
    let ended = suite(["-r", "model", "ORD-01"]).out(full).run();
    ended.fails(3, &["cannot write to the output: No space left"]);
}

#[test]
fn too_low_a_limit_of_open_files_is_reported_before_the_run() {
    let few = suite_limited("--nofile=12", ["-r", "model", "ORD-01"]).run();
    let message = "this process may open 12 files at once, but a run needs 64";
    assert_eq!(
        few.fails(3, &[message, "ulimit -n 64", "nothing was run"])
            .out,
        ""
    );
    let raised = suite_limited("--nofile=12:1024", ["-r", "model", "ORD-01"]).run();
    assert_eq!(raised.code, 0, "{raised:#?}");
}

#[test]
fn two_reports_at_one_place_are_refused_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("x"), "older").unwrap();
    for (one, other) in [
        ("--junit", "--json"),
        ("--json", "--history"),
        ("--junit", "--history"),
        ("--markdown", "--html"),
    ] {
        let args = ["ORD-01", one, "x", other, "./x"];
        let ended = model(&folder, &args).fails(2, &["has the same path; name another file"]);
        assert_eq!(ended.out, "");
    }
    assert_eq!(text(&folder, "x"), "older");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn no_output_overwrites_an_input() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["x", "y"] {
        fs::write(folder.path().join(name), "older").unwrap();
    }
    symlink("x", folder.path().join("link")).unwrap();
    for args in [
        &["check", "x", "--json", "./x"][..],
        &["check", "link", "--json", "x"],
        &[
            "check",
            "y",
            "--also",
            "x",
            "--write-expectations",
            "new",
            "--junit",
            "x",
        ],
        &["show", "x", "--perfetto", "x"],
        &["gate", "--policy", "x", "y", "--markdown", "x"],
        &["gate", "--policy", "y", "x", "--markdown", "x"],
        &["matrix-report", "a=x", "--html", "x"],
        &["ORD-01", "-r", "model", "--config", "x", "--json", "x"],
        &[
            "ORD-01",
            "-r",
            "model",
            "--expectations",
            "x",
            "--history",
            "x",
        ],
    ] {
        inside(&folder, args).fails(2, &["would overwrite", "/x, which"]);
        assert_eq!(text(&folder, "x"), "older");
    }
    let other = ["check", "x", "--json", "y"];
    let ended = inside(&folder, &other);
    assert!(!ended.err.contains("overwrite"), "{ended:#?}");
}

#[test]
fn one_output_may_be_standard_output_and_texts_then_go_to_standard_error() {
    let folder = tempfile::tempdir().unwrap();
    let ended = model(&folder, &["ORD-01", "--json", "-", "--history", "h"]).fails(0, &[]);
    assert!(ended.err.contains("\n1 case up to tier"), "{ended:#?}");
    let report: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(report["totals"]["fail"], 0);
    let checked = inside(&folder, &["check", "h", "--markdown", "-"]).fails(0, &[]);
    assert!(checked.out.starts_with("### "), "{checked:#?}");
    let twice = ["--json", "-", "--junit", "-"];
    model(&folder, &twice).fails(2, &["only one output can be `-`"]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn all_that_is_written_is_its_owners_alone_and_follows_no_link() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["j.xml", "r.json", "h", "known.yaml", "image.tar"];
    let victim = folder.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    for name in ["j.xml", "r.json", "h", "image.tar"] {
        symlink(&victim, folder.path().join(name)).unwrap();
    }
    let files = ["--junit", "j.xml", "--json", "r.json", "--history", "h"];
    let known = ["--write-expectations", "known.yaml"];
    let args = [&["ORD-01"][..], &DROPS, &files, &known].concat();
    model(&folder, &args).fails(1, &[]);
    inside(&folder, &["image", "--output", "image.tar"]).fails(0, &[]);
    for name in names {
        let meta = fs::symlink_metadata(folder.path().join(name)).unwrap();
        assert!(meta.is_file(), "{name}");
        assert_eq!(meta.permissions().mode() & 0o777, 0o600, "{name}");
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    let left = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, names.len() + 1);
}

#[test]
fn an_expired_entry_is_reported_and_counts_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let known = "runtime: any\nknown: [{case: ORD-01, reason: r, link: l, expires: 2001-12-31}]\n";
    fs::write(folder.path().join("known.yaml"), known).unwrap();
    let args = ["ORD-01", "--exact", "--expectations", "known.yaml"];
    let passed = model(&folder, &args).fails(0, &[]);
    let message = "note: known.yaml: the entry of ORD-01 has expired on 2001-12-31";
    assert!(passed.out.contains(message), "{passed:#?}");
    model(&folder, &[&args[..], &DROPS].concat()).fails(1, &[]);
    fs::write(
        folder.path().join("known.yaml"),
        known.replace("2001", "2200"),
    )
    .unwrap();
    let passed = model(&folder, &args).fails(1, &[]);
    assert!(!passed.out.contains("note: "), "{passed:#?}");
}
