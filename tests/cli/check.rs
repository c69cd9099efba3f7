//! `check`: judges recorded runs again, including damaged ones.

use std::fs;

use crate::suite::suite;

const RUNS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/histories/runs/");

fn run(name: &str) -> String {
    format!("{RUNS}containerd-2.1-{name}.binpb")
}

#[test]
fn the_exit_code_is_the_runs() {
    for (name, code) in [
        ("clean", 0),
        ("failing", 1),
        ("known", 0),
        ("interrupted", 3),
    ] {
        suite(["check", &run(name)])
            .run()
            .fails(code, &["judging run ", "recorded by suite "]);
    }
}

#[test]
fn a_filter_that_matches_nothing_recorded_says_what_lists_the_cases() {
    suite(["check", &run("failing"), "ORD-01"]).run().fails(
        4,
        &[
            "no case matches `ORD-01` in ",
            "containerd-2.1-failing.binpb; `check` without a filter lists all",
        ],
    );
    suite(["check", &run("clean"), "INV-99"])
        .run()
        .fails(4, &["no case matches `INV-99`; did you mean `INV-09`?"]);
}

#[test]
fn the_reports_are_the_runs() {
    let folder = tempfile::tempdir().unwrap();
    let args = [
        "check",
        &run("failing"),
        "--junit",
        "j.xml",
        "--json",
        "r.json",
    ];
    let ended = suite(args).inside(folder.path()).run().fails(1, &[]);
    for (written, recorded) in [("j.xml", "failing.xml"), ("r.json", "failing.json")] {
        let written = fs::read_to_string(folder.path().join(written)).unwrap();
        let recorded = fs::read_to_string(format!("{RUNS}containerd-2.1-{recorded}")).unwrap();
        assert_eq!(written, recorded);
    }
    let mut lines = ended.out.lines();
    let failed =
        lines.any(|line| line.starts_with("test FLR-02 ") && line.contains(" ... FAILED ("));
    assert!(failed, "{ended:#?}");
}

#[test]
fn a_part_of_a_run_can_be_judged() {
    suite(["check", &run("failing"), "SBX-01"])
        .run()
        .fails(0, &[]);
    let nothing = suite(["check", &run("failing"), "SBX-01", "--skip", "SBX"]).run();
    nothing.fails(4, &["no case matches `SBX-01` without `SBX`"]);
}

#[test]
fn other_expectations_can_be_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("none.yaml");
    fs::write(&file, "runtime: any\nknown: []\n").unwrap();
    let file = file.to_str().unwrap();
    suite(["check", &run("known"), "--expectations", file])
        .run()
        .fails(1, &[]);
    for (id, hint) in [("X", "\n"), ("STP-6", "; did you mean `STP-06`?")] {
        let text = format!("runtime: any\nknown: [{{case: {id}, reason: r, link: l}}]\n");
        fs::write(file, text).unwrap();
        let message = format!("`{id}` is no invariant, and no case of this run{hint}");
        suite(["check", &run("known"), "--expectations", file])
            .run()
            .fails(2, &[&message]);
    }
}

#[test]
fn a_file_that_is_cut_off_is_judged_up_to_there() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cut");
    let bytes = fs::read(run("failing")).unwrap();
    // FLR-02 has ended, and the invariants that it breaks are message.
    fs::write(&file, &bytes[..bytes.len() - 500]).unwrap();
    let file = file.to_str().unwrap();
    let ended = suite(["check", file]).run().fails(
        1,
        &[
            "error: read the history",
            "entry #",
            "at byte ",
            "ends within a frame",
        ],
    );
    assert!(ended.out.contains("fault: entry #"), "{ended:#?}");
    let bytes = fs::read(run("clean")).unwrap();
    fs::write(file, &bytes[..bytes.len() * 3 / 4]).unwrap();
    let ended = suite(["check", file]).run().fails(3, &["at byte "]);
    assert!(
        ended.out.contains("the history ends before it did"),
        "{ended:#?}"
    );
}

#[test]
fn a_damaged_file_is_judged_up_to_there() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("damaged");
    let mut bytes = fs::read(run("clean")).unwrap();
    let middle = bytes.len() * 3 / 4;
    bytes[middle..middle + 100].fill(0xff);
    fs::write(&file, &bytes).unwrap();
    let ended = suite(["check", file.to_str().unwrap()]).run();
    ended.fails(3, &["entry #", "at byte ", "damaged from here on"]);
}

#[test]
fn a_file_without_a_history_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("none");
    let path = file.to_str().unwrap();
    suite(["check", path]).run().fails(2, &["No such file"]);
    suite(["check", "/"]).run().fails(2, &["it is a directory"]);
    for (text, message) in [
        ("", "it is empty"),
        ("runtime: any\n", "does not begin as a history"),
    ] {
        fs::write(&file, text).unwrap();
        let args = ["check", path, "--json", "r.json"];
        suite(args)
            .inside(folder.path())
            .run()
            .fails(2, &[path, message]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

#[test]
fn a_reader_that_goes_away_is_no_trouble() {
    let ended = suite(["check", &run("known")]).run_for_a_line();
    assert!(!ended.err.contains("panicked"), "{ended:#?}");
}
