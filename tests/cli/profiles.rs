//! Tiers, profiles and their verdicts, on the model.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::suite::{Ended, suite};

/// Sends STOPPED twice, which only a kubelet that relists tolerates.
const REPEATING: [&str; 5] = ["CMP-02", "-r", "model", "--defect", "repeat-stopped"];

fn repeating(args: &[&str]) -> Ended {
    suite([&REPEATING, args].concat()).run()
}

#[test]
fn a_broken_rule_convicts_only_for_those_whom_it_binds() {
    let ended = repeating(&[]).fails(1, &[]);
    for row in ["\ncache     non-conformant ", "\nhint      partial "] {
        assert!(ended.out.contains(row), "{ended:#?}");
    }
    let ended = repeating(&["--profile", "cache"]).fails(1, &[]);
    assert!(!ended.out.contains("\nhint "), "{ended:#?}");
    let ended = repeating(&["--profile", "hint"]).fails(0, &[]);
    for part in ["  advice: CMP-02 INV-02 ", "\nhint      partial "] {
        assert!(ended.out.contains(part), "{part:?}: {ended:#?}");
    }
    assert!(!ended.out.contains("\ncache "), "{ended:#?}");
}

#[test]
fn a_defect_that_fails_many_cases_is_told_on_two_screens() {
    let many = ["-r", "model", "--defect", "drop-stopped"];
    let ended = suite(many).run().fails(1, &[]);
    let (_, after) = ended.out.split_once(" invariants ok\n").unwrap();
    assert!(after.lines().count() <= 80, "{after}");
    assert_eq!(after.matches("\n---- ").count(), 1, "{after}");
    assert!(
        after.contains(" with missing-stopped, which breaks Complete, "),
        "{after}"
    );
    assert!(after.contains("\nnext: --history FILE keeps "), "{after}");
    let verbose = [&many[..], &["--verbose", "STP-0"]].concat();
    let ended = suite(verbose).run().fails(1, &[]);
    assert!(ended.out.matches("\n---- ").count() > 4, "{ended:#?}");
}

#[test]
fn a_part_of_a_run_is_partial() {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/cases/sandbox");
    for part in [&["SBX-01"][..], &["--cases", own]] {
        let part = suite([&["-r", "model"], part].concat()).run();
        let part = part.fails(0, &[]);
        for message in [
            "\ncache     partial ",
            "\nCases were left out, so that no profile ",
        ] {
            assert!(part.out.contains(message), "{part:#?}");
        }
    }
}

#[test]
fn a_known_failure_that_is_advice_now_is_no_unexpected_pass() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("known.yaml");
    let known = "runtime: model\nknown:\n  - {case: CMP-02, reason: twice, link: none}\n  \
                 - {case: INV-02, reason: twice, link: none}\n";
    fs::write(&file, known).unwrap();
    let known = ["--expectations", file.to_str().unwrap()];
    let ended = repeating(&known).fails(0, &[]);
    for part in [
        "  known to fail: CMP-02 INV-02: twice (none)\n",
        "\ncache     partial but for 2 known ",
        "\nexit code 0: no MUST is broken, except 2 known to fail\n",
    ] {
        assert!(ended.out.contains(part), "{part:?}: {ended:#?}");
    }
    let ended = repeating(&[&known[..], &["--profile", "hint"]].concat());
    let ended = ended.fails(0, &[]);
    assert!(ended.out.contains("  advice: CMP-02 "), "{ended:#?}");
}

#[test]
fn a_check_judges_for_those_of_the_run_or_for_others_that_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let read = |name: &str| fs::read_to_string(path(name)).unwrap();
    let (history, json, junit) = (path("history"), path("run.json"), path("run.xml"));
    let outputs = ["--history", &history, "--json", &json, "--junit", &junit];
    repeating(&[&outputs[..], &["--profile", "hint", "--tier", "core"]].concat()).fails(0, &[]);
    let (json, junit) = (path("check.json"), path("check.xml"));
    let check = ["check", &history, "--json", &json, "--junit", &junit];
    suite(check).run().fails(0, &[]);
    assert_eq!(read("run.json"), read("check.json"));
    assert_eq!(read("run.xml"), read("check.xml"));
    let report: Value = serde_json::from_str(&read("run.json")).unwrap();
    assert_eq!(report["tier"], "core");
    assert_eq!(report["profiles"][0]["profile"], "hint");
    assert_eq!(report["profiles"][0]["verdict"], "partial");
    let ended = suite(["check", &history, "--profile", "cache,hint"]).run();
    let ended = ended.fails(1, &[]);
    assert!(
        ended.out.contains("\ncache     non-conformant "),
        "{ended:#?}"
    );
}

/// A directory with a case of the tier `full`, with levels for observers only.
fn large_case(folder: &Path) -> String {
    let area = folder.join("stream");
    fs::create_dir(&area).unwrap();
    let case = "id: STR-99\ntitle: It runs.\nwhy: It does.\nsources: [none]\ntier: full\ntags: \
                [slow]\nlevels: {observer: must}\nsteps:\n  - sandbox: {as: pod}\nexpect:\n  - \
                includes: {of: pod, in-order: [started]}\n";
    fs::write(area.join("runs.yaml"), case).unwrap();
    folder.to_str().unwrap().to_owned()
}

#[test]
fn cases_left_out_by_a_tier_or_a_profile_are_reported_where_none_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let cases = large_case(folder.path());
    let list = |args: &[&str]| suite([&["--list", "--cases", &cases], args].concat()).run();
    let larger = "no case matches `tag:slow`; 1 match in larger tiers, see `--tier`";
    list(&["tag:slow"]).fails(4, &[larger]);
    list(&["--tier", "core"]).fails(4, &["no case matches the selection; 1 match in larger"]);
    let others = "no case matches `STR-*`; 1 match for other profiles, see `--profile`";
    list(&["STR-*", "--tier", "full", "--profile", "cache"]).fails(4, &[others]);
    for args in [
        &["tag:slow", "--tier", "full"][..],
        &["--tier", "full", "--profile", "hint,observer"],
        &["--tier", "full", "--profile", "all"],
    ] {
        assert!(list(args).succeeds().starts_with("STR-99"), "{args:?}");
    }
    let run = ["--cases", &cases, "--tier", "full", "-r", "model"];
    let ended = suite(run).run().fails(0, &[]);
    for row in ["\ncache     ", "\nobserver  partial "] {
        assert!(ended.out.contains(row), "{ended:#?}");
    }
}

#[test]
fn there_are_no_other_tiers_and_profiles() {
    suite(["--tier", "small"])
        .run()
        .fails(2, &["core, extended, full"]);
    let message = ["cache, hint, observer, all"];
    suite(["--profile", "kubelet"]).run().fails(2, &message);
}
