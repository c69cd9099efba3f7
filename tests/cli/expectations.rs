//! Known failures: built-in ones, files generated from several runs, and `--fail-fast`.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::suite::{Ended, suite};

fn inside(folder: &TempDir, args: &[&str]) -> Ended {
    suite(args).inside(folder.path()).run()
}

/// A run on the model, in a directory.
fn model(folder: &TempDir, args: &[&str]) -> Ended {
    inside(
        folder,
        &[&["-r", "model", "--format", "terse"][..], args].concat(),
    )
}

/// A text without its line breaks.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A history of a real containerd 2.1.9 on which FLR-02 and INV-11 fail.
fn failing() -> String {
    let runs = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/histories/runs/");
    format!("{runs}containerd-2.1-failing.binpb")
}

#[test]
fn a_failure_that_is_known_of_the_runtime_says_so() {
    let ended = suite(["check", &failing(), "FLR-02"]).run().fails(1, &[]);
    for message in [
        "\nknown of this runtime: no STOPPED event after a failed StartContainer",
        "`--expectations builtin` accepts it",
        "which breaks Complete, 2 known: FLR-02 INV-11\n",
        "2 of 2 failures; `--expectations builtin` accepts them\n",
    ] {
        assert!(
            words(&ended.out).contains(&words(message)),
            "{message}: {ended:#?}"
        );
    }
}

#[test]
fn expectations_that_are_built_in_are_taken_by_the_runtime() {
    let args = ["check", &failing(), "--expectations", "builtin"];
    let ended = suite(args).run().fails(0, &[]);
    assert!(!ended.out.contains("known of containerd"), "{ended:#?}");
    let args = ["-r", "model", "SBX-01", "--expectations", "builtin"];
    suite(args)
        .run()
        .fails(0, &["there are no built-in expectations for model"]);
}

#[test]
fn what_is_wrong_in_a_file_is_shown_in_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let text = "runtime: model\nknown:\n  - case: ORD-01\n    reason: it\n    lnk: it\n";
    fs::write(folder.path().join("known.yaml"), text).unwrap();
    let message = "the expectation file known.yaml: unknown key `lnk`\n";
    let place = [
        "known.yaml:5:5",
        "5 |     lnk: it\n",
        "^^^",
        "did you mean `link`?",
    ];
    let args = ["SBX-01", "--expectations", "known.yaml"];
    model(&folder, &args).fails(2, &[&[message][..], &place].concat());
}

#[test]
fn an_expectation_file_has_a_schema() {
    let schema = suite(["schema", "expectations"]).run().succeeds();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let read = |text: &str| serde_yaml::from_str::<Value>(text).unwrap();
    for runtime in ["containerd", "cri-o"] {
        let path = format!(
            "{}/ci/expectations/{runtime}.yaml",
            env!("CARGO_MANIFEST_DIR")
        );
        let file = read(&fs::read_to_string(path).unwrap());
        let faults: Vec<String> = validator
            .iter_errors(&file)
            .map(|it| it.to_string())
            .collect();
        assert_eq!(faults, Vec::<String>::new());
    }
    for wrong in [
        "{runtime: x, known: [{case: ORD-01, reason: it}]}",
        "{runtime: x, known: [{case: ORD-01, reason: it, link: it, finding: no-kind}]}",
        "{runtime: x, known: [{case: ORD-01, reason: it, link: it, whne: {}}]}",
        "{known: []}",
    ] {
        assert!(!validator.is_valid(&read(wrong)), "{wrong}");
    }
}

#[test]
fn a_file_of_another_runtime_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("known.yaml");
    fs::write(&file, "{runtime: cri-o, known: []}").unwrap();
    let message = |found: &str| {
        format!(
            "the expectation file known.yaml has `runtime: cri-o`, and this runtime is {found}: \
             name the file of this one, or write `runtime: any`"
        )
    };
    let args = ["SBX-01", "--expectations", "known.yaml"];
    model(&folder, &args).fails(2, &[&message("model")]);
    let judged = ["check", &failing(), "--expectations", "known.yaml"];
    inside(&folder, &judged).fails(2, &[&message("containerd")]);
    let walks = ["-r", "model", "explore", "--walks", "1"];
    let walks = [&walks[..], &args[1..]].concat();
    inside(&folder, &walks).fails(2, &[&message("model")]);
}

/// Neither an invariant nor a case can have a finding that none of its rules and checks produces.
#[test]
fn a_finding_that_its_case_cannot_have_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("known.yaml");
    let entry = |case: &str, finding: &str| {
        let entry = format!("{{case: {case}, reason: r, link: l, finding: {finding}}}");
        fs::write(&file, format!("{{runtime: model, known: [{entry}]}}")).unwrap();
        model(&folder, &["SBX-01", "--expectations", "known.yaml"])
    };
    entry("INV-01", "missing-stopped").fails(
        2,
        &[
            "known.yaml: entry 1 of `known:`: INV-01 cannot have the finding `missing-stopped`",
            "it can have `event-out-of-order`",
        ],
    );
    entry(
        "SBX-01",
        "[missing-started, {kind: too-large, event: STOPPED}]",
    )
    .fails(2, &["SBX-01 cannot have the finding `too-large`"]);
    entry("SBX-02", "missing-started").fails(0, &[]);
    let judged = ["check", &failing(), "--expectations", "known.yaml"];
    entry("INV-02", "missing-stopped");
    inside(&folder, &judged).fails(2, &["INV-02 cannot have the finding"]);
}

/// A kind that the text shows can be looked up in the other reports, and written as `finding`.
#[test]
fn all_reports_name_the_same_kinds() {
    let folder = tempfile::tempdir().unwrap();
    let failing = failing();
    let files = [
        "--json",
        "r.json",
        "--junit",
        "r.xml",
        "--write-expectations",
        "known.yaml",
    ];
    let judged = [&["check", &failing, "--profile", "cache"][..], &files].concat();
    let ended = inside(&folder, &judged).fails(1, &[]);
    let shown = |text: &str| -> BTreeSet<String> {
        let kinds = text
            .lines()
            .filter_map(|line| line.strip_prefix("  finding   "));
        kinds.map(str::to_owned).collect()
    };
    let read = |file| fs::read_to_string(folder.path().join(file)).unwrap();
    let (json, junit, known) = (read("r.json"), read("r.xml"), read("known.yaml"));
    assert_eq!(shown(&ended.out), shown(&junit));
    assert_eq!(shown(&ended.out), ["missing-stopped".to_owned()].into());
    assert!(json.contains("\"kind\": \"missing-stopped\""), "{json}");
    let property = "[[PROPERTY|kinds=missing-stopped]]";
    assert!(junit.contains(property), "{junit}");
    assert!(known.contains("finding: missing-stopped\n"), "{known}");
}

#[test]
fn a_mistyped_word_for_the_built_in_expectations_is_recognised() {
    suite(["-r", "model", "SBX-01", "--expectations", "bultin"])
        .run()
        .fails(
            2,
            &[
                "read the expectation file bultin: ",
                "did you mean `builtin`?",
            ],
        );
    let other = suite(["-r", "model", "SBX-01", "--expectations", "known.yaml"]).run();
    let other = other.fails(2, &[]);
    assert!(!other.err.contains("did you mean"), "{other:#?}");
}

/// `none` shows the failures that the recorded run accepted, with the page of one.
#[test]
fn none_accepts_no_failure_and_names_the_page_of_a_known_one() {
    let recorded = "fixtures/histories/runs/containerd-2.1-known.binpb";
    suite(["check", recorded]).run().fails(0, &[]);
    let check = ["check", recorded, "--expectations", "none"];
    let ended = suite(check).run().fails(1, &[]);
    for page in [
        "`explain containerd/no-stopped-after-failed-start` has",
        "next: cri-event-conformance explain containerd/no-stopped-after-failed-start",
    ] {
        assert!(ended.out.contains(page), "{ended:#?}");
    }
}

const DROPS: [&str; 2] = ["--defect", "drop-stopped"];

#[test]
fn several_runs_make_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let case = ["ORD-01", "--exact"];
    model(
        &folder,
        &[&case[..], &DROPS, &["--history", "bad"]].concat(),
    )
    .fails(1, &[]);
    model(&folder, &[&case[..], &["--history", "good"]].concat()).fails(0, &[]);
    let check = ["check", "bad", "--also", "good"];
    inside(&folder, &check).fails(2, &["--write-expectations"]);
    let write = ["--write-expectations", "known.yaml"];
    inside(&folder, &[&check[..], &write].concat()).fails(1, &[]);
    let known = fs::read_to_string(folder.path().join("known.yaml")).unwrap();
    for message in ["\nruns: 2\n", "case: ORD-01\n", "rate: 1/2\n"] {
        assert!(known.contains(message), "{message}: {known}");
    }
    for history in ["bad", "good"] {
        inside(&folder, &["check", history, "--expectations", "known.yaml"]).fails(0, &[]);
    }
    let failing = failing();
    let other = [
        &["check", "bad", "--also", &failing][..],
        &write[..1],
        &["o.yaml"],
    ]
    .concat();
    inside(&folder, &other).fails(2, &["it is a run of containerd", "here model"]);
}

#[test]
fn fail_fast_stops_at_a_broken_invariant() {
    let folder = tempfile::tempdir().unwrap();
    let defect = ["--defect", "created-at-in-milliseconds"];
    let run = ["ORD-01", "SBX-01", "--exact", "--test-threads", "1"];
    let fast = [&run[..], &defect, &["--fail-fast"]].concat();
    let ended = model(&folder, &fast).fails(1, &[]);
    let message = "skipped: SBX-01: ";
    assert!(ended.out.contains(message), "{ended:#?}");
    assert!(
        words(&ended.out).contains("an invariant has failed"),
        "{ended:#?}"
    );
    let ended = model(&folder, &[&run[..], &defect].concat()).fails(1, &[]);
    assert!(!ended.out.contains(message), "{ended:#?}");
}

/// An invariant is listed as failing in a case that did not run.
#[test]
fn what_fail_fast_cuts_off_passes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let known = "runtime: any\nknown: [{case: INV-02, reason: r, link: l, in: SBX-01}]\n";
    fs::write(folder.path().join("known.yaml"), known).unwrap();
    let args = ["ORD-01", "SBX-01", "--exact", "--test-threads", "1"];
    let known = ["--expectations", "known.yaml"];
    let whole = model(&folder, &[&args[..], &known].concat()).fails(1, &[]);
    assert!(
        whole.out.contains("unexpectedly passed: INV-02"),
        "{whole:#?}"
    );
    let fast = [&args[..], &known, &DROPS, &["--fail-fast"]].concat();
    let cut = model(&folder, &fast).fails(1, &[]);
    assert!(!cut.out.contains("unexpectedly passed"), "{cut:#?}");
    assert!(cut.out.contains("skipped: SBX-01: "), "{cut:#?}");
}

/// A model that delays each STARTED, with a race that is known to be lost sometimes.
#[test]
fn a_race_that_is_lost_too_often_fails_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let entry =
        |case: &str, keys: &str| format!("  - {{case: {case}, reason: r, link: l, {keys}}}\n");
    let entries = |keys: &str| {
        let all = ["ORD-02", "INV-01", "INV-05"];
        all.map(|case| entry(case, keys)).concat()
    };
    let args = ["ORD-02", "--exact", "--expectations", "known.yaml"];
    for (keys, code) in [("sometimes: true", 0), ("at-most: 5/1000", 1)] {
        let text = format!("runtime: any\nknown:\n{}", entries(keys));
        fs::write(folder.path().join("known.yaml"), text).unwrap();
        let ended = model(
            &folder,
            &[&args[..], &["--defect", "late-started"]].concat(),
        )
        .fails(code, &[]);
        let message = "more often than chance explains";
        assert_eq!(words(&ended.out).contains(message), code == 1, "{ended:#?}");
    }
}

/// The containers of one case are no sample of all containers.
#[test]
fn a_part_of_the_cases_breaks_no_bound_of_an_invariant_in_all_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["ORD-02", "--exact", "--expectations", "known.yaml"];
    for (keys, code) in [
        ("at-most: 5/1000", 0),
        ("at-most: 5/1000, in: ORD-02", 1),
        ("at-most: 5/1000, in: [ORD-02, ORD-07]", 1),
    ] {
        let text = format!(
            "runtime: any\nknown:\n\
             - {{case: ORD-02, reason: r, link: l}}\n\
             - {{case: INV-01, reason: r, link: l, {keys}}}\n\
             - {{case: INV-05, reason: r, link: l, {keys}}}\n"
        );
        fs::write(folder.path().join("known.yaml"), text).unwrap();
        let args = [&args[..], &["--defect", "late-started"]].concat();
        model(&folder, &args).fails(code, &[]);
    }
}
