//! The file written from a run, read again.

use std::time::Duration;

use expect_test::expect;

use super::{HEAD, expectations};
use crate::history::{EventKind, ExpectationFile, HostInstant};
use crate::oracle::INVARIANTS;
use crate::outcome::{Fact, Kind, Level, Mismatch, Outcome, RunReport, Seen, Verdict, Violation};
use crate::verdicts::known::Decided;
use crate::verdicts::plan::blank_invariant;
use crate::verdicts::{JudgedRun, Known, RuntimeFacts, Verdicts};

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
        mismatch: ended(actual),
        evidence: Vec::new(),
    };
    Outcome {
        id: id.into(),
        verdict,
        violations: seen.iter().map(violation).collect(),
        seen: seen.iter().map(|&text| (kind_of(id, text), 1)).collect(),
        ..blank_invariant(&INVARIANTS[0], BEGAN)
    }
}

fn ended(how: &str) -> Mismatch {
    Mismatch::new(Kind::StreamEnded, [], [Fact::End(how.to_owned())])
}

/// A finding of an invariant, in a case.
fn kind_of(id: &str, actual: &str) -> Seen {
    Seen {
        signature: ended(actual).signature(),
        case: id.starts_with("INV-").then(|| "ORD-01".into()),
    }
}

fn file(text: &str) -> Known {
    let (path, text) = ("known.yaml".to_owned(), text.to_owned());
    let known = Known::parse(&ExpectationFile { path, text });
    known.expect("it is one").for_a_run(JudgedRun {
        facts: RuntimeFacts::default(),
        began: BEGAN,
    })
}

/// The file of a run, without its head, after checking that the run has no failure with it.
#[track_caller]
fn written(outcomes: Vec<Outcome>, known: &str) -> String {
    merged(vec![outcomes], known)
}

/// The file of several runs.
#[track_caller]
fn merged(runs: Vec<Vec<Outcome>>, known: &str) -> String {
    let report = |outcomes| RunReport {
        outcomes,
        began: BEGAN,
        faults: Vec::new(),
        ..Verdicts::default().report(None)
    };
    let reports: Vec<RunReport> = runs.into_iter().map(report).collect();
    let text = expectations(&reports, &file(known));
    let read = file(&text);
    for mut outcome in reports.into_iter().flat_map(|report| report.outcomes) {
        if outcome.verdict == Verdict::UnexpectedPass {
            outcome.verdict = Verdict::Pass;
        }
        read.apply(&mut outcome, &Decided::default());
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
        runs: 1
        known:
        - case: ORD-01
          reason: 'TODO: It holds.'
          link: TODO
          finding:
            kind: stream-ended
            end: "red: \e[31m #1"
        - case: INV-01
          reason: 'TODO: It holds.'
          link: TODO
          in: ORD-01
          finding:
          - kind: stream-ended
            end: one
          - kind: stream-ended
            end: two
    "#]]
    .assert_eq(&written(outcomes, NONE));
}

#[test]
fn a_run_without_failures_makes_an_empty_file() {
    let outcomes = vec![outcome("ORD-01", Verdict::Pass, &[])];
    assert_eq!(
        written(outcomes, NONE),
        "runtime: ' '\nruns: 1\nknown: []\n"
    );
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
  - {case: ORD-01, reason: why, link: there, finding: {kind: stream-ended, end: one}}
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
          finding:
          - kind: stream-ended
            end: one
          - kind: stream-ended
            end: two
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
    assert!(!many.contains("finding"), "{many}");
    let fit = written(vec![outcome("ORD-01", Verdict::Fail, &texts[1..])], NONE);
    assert!(fit.contains("finding"), "{fit}");
    let long = "x".repeat(600);
    let long = written(vec![outcome("ORD-01", Verdict::Fail, &[&long])], NONE);
    assert!(long.contains("xxx…\n"), "{long}");
}

#[test]
fn what_failed_in_one_run_and_passed_in_another_has_a_rate() {
    let failed = || vec![outcome("ORD-01", Verdict::Fail, &["one"])];
    let passed = vec![outcome("ORD-01", Verdict::Pass, &[])];
    let text = merged(vec![failed(), passed, failed()], NONE);
    assert!(text.contains("runs: 3\n"), "{text}");
    assert!(text.contains("  rate: 2/3\n"), "{text}");
}

/// A file of two runs, in which one case failed twice and one once.
const BEGUN: &str = "
runtime: any
runs: 2
known:
  - {case: ORD-01, reason: TODO, link: TODO, finding: {kind: stream-ended, end: one}}
  - {case: ORD-02, reason: TODO, link: TODO, finding: {kind: stream-ended, end: one}, rate: 1/2}
";

#[test]
fn a_file_that_is_begun_counts_another_run() {
    let third = vec![
        outcome("ORD-01", Verdict::UnexpectedPass, &[]),
        outcome("ORD-02", Verdict::Known, &["one"]),
        outcome("ORD-03", Verdict::Fail, &["one"]),
    ];
    let text = written(third, BEGUN);
    assert!(text.contains("runs: 3\n"), "{text}");
    let rates: Vec<&str> = text.lines().filter(|line| line.contains("rate")).collect();
    assert_eq!(rates, ["  rate: 2/3", "  rate: 2/3", "  rate: 1/3"]);
    let third = vec![
        outcome("ORD-01", Verdict::Known, &["one"]),
        outcome("ORD-02", Verdict::Pass, &[]),
    ];
    let text = written(third, BEGUN);
    let rates: Vec<&str> = text.lines().filter(|line| line.contains("rate")).collect();
    assert_eq!(rates, ["  rate: 1/3"], "what always fails has none");
}

#[test]
fn an_invariant_has_an_entry_for_each_kind_with_its_cases() {
    let mut often = outcome("INV-11", Verdict::Fail, &[]);
    let seen = |mismatch: Mismatch, case: &str| Seen {
        signature: mismatch.signature(),
        case: Some(case.into()),
    };
    let event = Fact::Event(EventKind::Stopped);
    let late = |seconds| {
        let pause = Fact::Pause(Duration::from_secs(seconds));
        Mismatch::new(Kind::LateEvent, [], [event.clone(), pause])
    };
    for seconds in 10..40 {
        often.seen.insert(seen(late(seconds), "ORD-01"), 1);
        often.seen.insert(seen(late(seconds), "ORD-02"), 1);
    }
    let lost = Mismatch::missing(EventKind::Stopped, []);
    often.seen.insert(seen(lost, "FLR-02"), 2);
    expect![[r"
        runtime: ' '
        runs: 1
        known:
        - case: INV-11
          reason: 'TODO: The events of a container come in the order CREATED, STARTED, STOPPED, DELETED, and none after DELETED.'
          link: TODO
          in: FLR-02
          finding: missing-stopped
        - case: INV-11
          reason: 'TODO: The events of a container come in the order CREATED, STARTED, STOPPED, DELETED, and none after DELETED.'
          link: TODO
          in:
          - ORD-01
          - ORD-02
          finding:
            kind: late-event
            event: STOPPED
    "]]
    .assert_eq(&written(vec![often], NONE));
}

#[test]
fn entries_of_other_runtimes_are_kept_as_they_are() {
    let known = "
runtime: any
known:
  - {case: ORD-01, reason: why, link: there, when: {handler: crun}, finding: {kind: stream-ended, end: one}}
";
    let outcomes = vec![outcome("ORD-01", Verdict::Fail, &["two"])];
    let report = RunReport {
        outcomes,
        began: BEGAN,
        ..Verdicts::default().report(None)
    };
    let text = expectations(&[report], &file(known));
    let kept = "case: ORD-01\n  when:\n    handler: crun\n  reason: why\n  link: there\n  finding:\n    kind: stream-ended\n    end: one\n";
    assert!(text.contains(kept), "{text}");
}
