//! The command `explore`.

use std::fs;

use crate::model::Served;
use crate::suite::{Ended, suite};

const DEFECT: &[&str] = &["-r", "model", "--defect", "deleted-before-stopped"];

fn explore(args: &[&str]) -> Ended {
    let explore = [DEFECT, &["explore", "--seed", "1", "--fail-fast"], args];
    suite(explore.concat()).run()
}

#[test]
fn what_a_walk_finds_is_written_as_a_case_that_fails_again() {
    let folder = tempfile::tempdir().unwrap();
    let found = folder.path().join("found");
    let found = found.to_str().unwrap();
    let ended = explore(&["--output-dir", found]).fails(1, &[]);
    assert!(ended.out.contains("\n  shown by "), "{ended:#?}");
    let cases = format!("{found}/explore");
    let case = fs::read_dir(&cases).unwrap().next().unwrap().unwrap();
    let text = fs::read_to_string(case.path()).unwrap();
    assert!(text.contains("explore --seed 1 --steps 25"), "{text}");
    let again = [DEFECT, &["--cases", &cases]].concat();
    suite(again).run().fails(1, &[]);
    let correct = ["-r", "model", "--cases", &cases];
    suite(correct).run().fails(0, &[]);
    let named = ended
        .out
        .lines()
        .find_map(|line| line.strip_prefix("  history  "));
    suite(["check", named.unwrap()]).run().fails(1, &[]);
}

#[test]
fn the_same_seed_finds_the_same() {
    let once = explore(&["--no-shrink"]).fails(1, &[]).out;
    assert_eq!(once, explore(&["--no-shrink"]).fails(1, &[]).out);
    let walk = once.split("\nwalk ").nth(1).unwrap();
    let number = walk.split(' ').next().unwrap();
    let alone = explore(&["--no-shrink", "--walk", number])
        .fails(1, &[])
        .out;
    assert!(alone.contains(walk.lines().next().unwrap()), "{alone}");
    assert!(alone.contains("\n1 walk, "), "{alone}");
}

#[test]
fn walks_on_a_correct_runtime_find_nothing() {
    let ended = suite(["-r", "model", "explore", "--walks", "3", "--steps", "5"]).run();
    let out = ended.succeeds();
    assert!(out.contains("\n3 walks, "), "{out}");
    assert!(out.ends_with("0 new findings\n"), "{out}");
}

/// A feature that was not probed is not reported as missing.
#[test]
fn what_was_left_out_for_want_of_leave_is_not_said_to_lack() {
    let served = Served::start();
    let endpoint = served.endpoint();
    let logs = tempfile::tempdir().unwrap();
    let walk = ["explore", "--walks", "1", "--steps", "1", "--no-shrink"];
    let target = ["-r", &endpoint, "--log-dir", logs.path().to_str().unwrap()];
    let ended = suite([&walk[..], &target].concat()).run();
    let left_out = |why: &str| {
        let mut lines = ended.out.lines();
        lines.find_map(|line| line.strip_prefix(&format!("left out, {why}: ")))
    };
    let unasked = left_out("as --allow does not name it").unwrap_or_else(|| panic!("{ended:#?}"));
    let lacks = left_out("as the runtime or the node lacks it").unwrap_or_default();
    for need in ["host-pid", "monitor", "runtime-kill"] {
        let among = |words: &str| words.split(", ").any(|word| word == need);
        assert!(among(unasked) && !among(lacks), "{need}: {ended:#?}");
    }
}

#[test]
fn wrong_options_are_usage_errors() {
    for wrong in [
        &["--steps", "0"][..],
        &["--pods", "9"],
        &["--walk", "3"],
        &["--seed", "1", "--walk", "3", "--walks", "5"],
        &["--no-shrink", "--shrink-for", "1m"],
        &["--expectations", "/no/such.yaml"],
    ] {
        let args = [&["-r", "model", "explore"], wrong].concat();
        suite(args).run().fails(2, &["error:"]);
    }
}
