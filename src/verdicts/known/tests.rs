//! Entries of an expectation file, each on an outcome that it covers and on one that it does not.

use super::Known;
use crate::history::{ExpectationFile, HostInstant};
use crate::oracle::INVARIANTS;
use crate::outcome::{Outcome, Verdict};
use crate::verdicts::plan::blank_invariant;

/// 2026-11-20, 16:52 UTC.
const BEGAN: HostInstant = HostInstant {
    monotonic_ns: 0,
    realtime_ns: 1_795_193_560_000_000_000,
};

/// What an entry with these keys besides makes of an outcome.
#[track_caller]
fn apply(keys: &str, verdict: Verdict) -> Outcome {
    let known = parse(keys).expect("it is an entry");
    let mut outcome = blank_invariant(&INVARIANTS[0], BEGAN);
    outcome.verdict = verdict;
    outcome.seen = ["this".to_owned()].into();
    known.apply(&mut outcome);
    outcome
}

fn parse(keys: &str) -> Result<Known, String> {
    let text = format!("runtime: any\nknown: [{{case: INV-01, reason: why, link: there{keys}}}]\n");
    let path = "known.yaml".to_owned();
    let known = Known::parse(&ExpectationFile { path, text })?;
    Ok(known.for_a_run(BEGAN, false))
}

#[track_caller]
fn check(keys: &str, verdict: Verdict, expect: Verdict) {
    assert_eq!(apply(keys, verdict).verdict, expect, "{keys}");
}

#[test]
fn a_failure_is_known_by_what_was_seen() {
    check("", Verdict::Fail, Verdict::Known);
    check(", actual: this", Verdict::Fail, Verdict::Known);
    check(", actual: [that, this]", Verdict::Fail, Verdict::Known);
    check(", actual: that", Verdict::Fail, Verdict::Fail);
    check("", Verdict::Error, Verdict::Error);
}

#[test]
fn an_error_is_excused_by_a_known_fault() {
    let text = "runtime: any\nknown: []\n\
                faults: [{message: lstat /proc/0/ns/ipc, reason: why, link: there}]\n";
    let known = Known::parse(&ExpectationFile {
        path: "known.yaml".to_owned(),
        text: text.to_owned(),
    });
    let known = known.expect("it is right");
    for (verdict, reason, expect) in [
        (
            Verdict::Error,
            "lstat /proc/0/ns/ipc: none",
            Verdict::Inconclusive,
        ),
        (Verdict::Error, "lstat /proc/1/ns/ipc: none", Verdict::Error),
        (Verdict::Fail, "lstat /proc/0/ns/ipc: none", Verdict::Fail),
    ] {
        let mut outcome = blank_invariant(&INVARIANTS[0], BEGAN);
        (outcome.verdict, outcome.reason) = (verdict, Some(reason.to_owned()));
        known.apply(&mut outcome);
        assert_eq!(outcome.verdict, expect, "{reason}");
        let is_told = outcome.reason.unwrap().contains("why (there): lstat");
        assert_eq!(is_told, expect == Verdict::Inconclusive);
    }
}

#[test]
fn a_fault_that_never_comes_is_told() {
    let text = "runtime: any\nknown: []\n\
                faults: [{message: lstat /proc/0/ns/ipc, reason: why, link: there}]\n";
    let file = ExpectationFile {
        path: "known.yaml".to_owned(),
        text: text.to_owned(),
    };
    let notes = |verdict, reason: &str, partial| {
        let known = Known::parse(&file).expect("it is right");
        let known = known.for_a_run(BEGAN, partial);
        let mut outcome = blank_invariant(&INVARIANTS[0], BEGAN);
        (outcome.verdict, outcome.reason) = (verdict, Some(reason.to_owned()));
        known.apply(&mut outcome);
        known.notes(&[outcome])
    };
    let met = "lstat /proc/0/ns/ipc: none";
    assert!(notes(Verdict::Error, met, false).is_empty());
    assert!(notes(Verdict::Pass, "", true).is_empty());
    for (verdict, reason) in [
        (Verdict::Pass, ""),
        (Verdict::Skip, met),
        (Verdict::Error, "lstat /proc/1/ns/ipc: none"),
    ] {
        let told = notes(verdict, reason, false);
        let start = "known.yaml: the fault `lstat /proc/0/ns/ipc` has not come in this run";
        assert!(told.len() == 1 && told[0].starts_with(start), "{told:?}");
    }
}

#[test]
fn a_fault_must_say_what_it_excuses() {
    let text = "runtime: any\nknown: []\nfaults: [{message: lstat, reason: why, link: there}]\n";
    let fault = Known::parse(&ExpectationFile {
        path: "known.yaml".to_owned(),
        text: text.to_owned(),
    });
    let fault = fault.unwrap_err();
    assert!(fault.contains("`lstat` would excuse too much"), "{fault}");
}

#[test]
fn a_race_may_be_won() {
    check("", Verdict::Pass, Verdict::UnexpectedPass);
    check(", sometimes: true", Verdict::Pass, Verdict::Pass);
    check(", rate: 2/20", Verdict::Pass, Verdict::Pass);
    check(", rate: 2/20", Verdict::Fail, Verdict::Known);
}

#[test]
fn the_rate_is_told() {
    let told = |keys| apply(keys, Verdict::Fail).reason.unwrap();
    assert_eq!(told(", rate: 2/20"), "why, seen in 2 of 20 runs (there)");
    assert_eq!(told(", sometimes: true"), "why (there)");
}

#[test]
fn an_entry_counts_until_its_day_is_over() {
    for (expires, failed, passed) in [
        ("2026-11-20", Verdict::Known, Verdict::UnexpectedPass),
        ("2026-11-19", Verdict::Fail, Verdict::Pass),
    ] {
        let keys = format!(", expires: {expires}");
        check(&keys, Verdict::Fail, failed);
        check(&keys, Verdict::Pass, passed);
    }
}

#[test]
fn an_entry_that_has_expired_is_told() {
    assert!(parse("").unwrap().notes(&[]).is_empty());
    assert!(
        parse(", expires: 2026-11-20")
            .unwrap()
            .notes(&[])
            .is_empty()
    );
    let notes = parse(", expires: 2026-11-19").unwrap().notes(&[]);
    let start = "known.yaml: the entry of INV-01 has expired on 2026-11-19 and counts no more";
    assert!(notes.len() == 1 && notes[0].starts_with(start), "{notes:?}");
}

#[test]
fn what_is_no_day_and_no_rate_is_told() {
    for (keys, told) in [
        (", expires: soon", "`soon` is no day such as `2026-12-31`"),
        (", rate: 20/20", "`20/20` is no rate such as `2/20`"),
        (", until: 2026-12-31", "unknown field `until`"),
    ] {
        let fault = parse(keys).unwrap_err();
        assert!(fault.contains(told), "{fault}");
    }
}
