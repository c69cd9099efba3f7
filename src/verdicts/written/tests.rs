//! The file that is made of a run, which is read again.

use expect_test::expect;

use super::{HEAD, expectations};
use crate::history::{ExpectationFile, HostInstant};
use crate::oracle::INVARIANTS;
use crate::outcome::{Level, Outcome, RunReport, Verdict, Violation};
use crate::verdicts::plan::blank_invariant;
use crate::verdicts::{Known, Verdicts};

/// 2026-11-20, 16:52 UTC.
const BEGAN: HostInstant = HostInstant {
    monotonic_ns: 0,
    realtime_ns: 1_795_193_560_000_000_000,
};

fn outcome(id: &str, verdict: Verdict, seen: &[&str]) -> Outcome {
    let violation = |actual: &&str| Violation {
        rule: id.to_owned(),
        level: Level::Must,
        sentence: "It holds.".to_owned(),
        subject: "c".to_owned(),
        expected: "this".to_owned(),
        actual: (*actual).to_owned(),
        evidence: Vec::new(),
    };
    Outcome {
        id: id.into(),
        verdict,
        violations: seen.iter().map(violation).collect(),
        seen: seen.iter().map(|&text| text.to_owned()).collect(),
        ..blank_invariant(&INVARIANTS[0], BEGAN)
    }
}

fn file(text: &str) -> Known {
    let (path, text) = ("known.yaml".to_owned(), text.to_owned());
    let known = Known::parse(&ExpectationFile { path, text });
    known.expect("it is one").for_a_run(BEGAN, false)
}

/// The file that a run makes, without its head. With it the run would have had no failure.
#[track_caller]
fn written(outcomes: Vec<Outcome>, known: &str) -> String {
    let report = RunReport {
        outcomes,
        began: BEGAN,
        ..Verdicts::default().report(None)
    };
    let text = expectations(&report, &file(known));
    let read = file(&text);
    for mut outcome in report.outcomes {
        if outcome.verdict == Verdict::UnexpectedPass {
            outcome.verdict = Verdict::Pass;
        }
        read.apply(&mut outcome);
        let fits = !matches!(outcome.verdict, Verdict::Fail | Verdict::UnexpectedPass);
        assert!(fits, "{outcome:?}\n{text}");
    }
    text.strip_prefix(HEAD).expect("it has a head").to_owned()
}

const NONE: &str = "{runtime: any, known: []}";

#[test]
fn what_failed_becomes_an_entry_to_finish() {
    let outcomes = vec![
        outcome("ORD-01", Verdict::Fail, &["red: \u{1b}[31m #1"]),
        outcome("ORD-02", Verdict::Pass, &[]),
        outcome("ORD-03", Verdict::Error, &[]),
        outcome("INV-01", Verdict::Fail, &["one", "two"]),
    ];
    expect![[r#"
        runtime: ' '
        known:
        - case: ORD-01
          reason: 'TODO: It holds.'
          link: TODO
          actual: "red: \e[31m #1"
        - case: INV-01
          reason: 'TODO: It holds.'
          link: TODO
          actual:
          - one
          - two
    "#]]
    .assert_eq(&written(outcomes, NONE));
}

#[test]
fn a_run_without_failures_makes_an_empty_file() {
    let outcomes = vec![outcome("ORD-01", Verdict::Pass, &[])];
    assert_eq!(written(outcomes, NONE), "runtime: ' '\nknown: []\n");
}

#[test]
fn what_fails_in_some_repetitions_has_a_rate() {
    let mut outcomes = vec![outcome("ORD-01", Verdict::Pass, &[]); 3];
    outcomes.push(outcome("ORD-01", Verdict::Skip, &[]));
    outcomes.push(outcome("ORD-01", Verdict::Fail, &["one"]));
    let text = written(outcomes, NONE);
    assert!(text.contains("  rate: 1/4\n"), "{text}");
    let always = vec![outcome("ORD-01", Verdict::Fail, &["one"]); 3];
    let text = written(always, NONE);
    assert!(!text.contains("rate"), "{text}");
}

const LISTED: &str = "
runtime: any
known:
  - {case: ORD-01, reason: why, link: there, actual: one}
  - {case: ORD-02, reason: why, link: there, sometimes: true, expires: 2026-11-19}
";

#[test]
fn entries_that_hold_are_kept() {
    let outcomes = vec![outcome("ORD-01", Verdict::Known, &["one"])];
    let text = written(outcomes, LISTED);
    assert!(text.contains("case: ORD-01\n  reason: why"), "{text}");
    assert!(!text.contains("ORD-02"), "{text}");
    let text = written(Vec::new(), LISTED);
    assert!(
        text.contains("ORD-01") && !text.contains("ORD-02"),
        "{text}"
    );
}

#[test]
fn entries_that_are_mended_are_dropped() {
    let outcomes = vec![outcome("ORD-01", Verdict::UnexpectedPass, &[])];
    let text = written(outcomes, LISTED);
    assert!(!text.contains("ORD-01"), "{text}");
}

#[test]
fn entries_whose_case_fails_otherwise_are_added_to() {
    let outcomes = vec![
        outcome("ORD-01", Verdict::Fail, &["two"]),
        outcome("ORD-02", Verdict::Fail, &["three"]),
    ];
    expect![[r"
        runtime: ' '
        known:
        - case: ORD-01
          reason: why
          link: there
          actual:
          - one
          - two
        - case: ORD-02
          reason: why
          link: there
          sometimes: true
    "]]
    .assert_eq(&written(outcomes, LISTED));
}

#[test]
fn what_fails_in_too_many_ways_is_any_failure() {
    let texts: Vec<String> = (0..21).map(|number| number.to_string()).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let many = written(vec![outcome("ORD-01", Verdict::Fail, &texts)], NONE);
    assert!(!many.contains("actual"), "{many}");
    let fit = written(vec![outcome("ORD-01", Verdict::Fail, &texts[1..])], NONE);
    assert!(fit.contains("actual"), "{fit}");
    let long = "x".repeat(501);
    let long = written(vec![outcome("ORD-01", Verdict::Fail, &[&long])], NONE);
    assert!(!long.contains("actual"), "{long}");
}
