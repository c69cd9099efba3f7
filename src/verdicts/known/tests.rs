//! Entries of an expectation file, each on an outcome that it covers and on one that it does not.

use super::{Decided, JudgedRun, Known, Losses, RuntimeFacts};
use crate::history::{ExpectationFile, HostInstant};
use crate::oracle::INVARIANTS;
use crate::outcome::{Outcome, Seen, Signature, Verdict};
use crate::verdicts::plan::blank_invariant;

/// 2026-11-20, 16:52 UTC.
const BEGAN: HostInstant = HostInstant {
    monotonic_ns: 0,
    realtime_ns: 1_795_193_560_000_000_000,
};

/// The outcome, after applying an entry with these keys.
#[track_caller]
fn apply(keys: &str, verdict: Verdict) -> Outcome {
    let known = parse(keys).expect("it is an entry");
    let mut outcome = blank_invariant(&INVARIANTS[0], BEGAN);
    outcome.verdict = verdict;
    outcome.seen = [(seen("missing-stopped", "ORD-01"), 1)].into();
    known.apply(&mut outcome, &decided(&["ORD-01"]));
    outcome
}

fn seen(kind: &str, case: &str) -> Seen {
    Seen {
        signature: signature(kind),
        case: Some(case.into()),
    }
}

fn signature(yaml: &str) -> Signature {
    serde_yaml::from_str(yaml).expect("it is one")
}

fn decided<'a>(cases: &[&'a str]) -> Decided<'a> {
    Decided {
        cases: cases.iter().copied().collect(),
        all: true,
    }
}

fn of_a_run(known: Known) -> Known {
    known.for_a_run(JudgedRun {
        facts: RuntimeFacts::default(),
        began: BEGAN,
    })
}

fn parse(keys: &str) -> Result<Known, String> {
    let text = format!("runtime: any\nknown: [{{case: INV-01, reason: why, link: there{keys}}}]\n");
    let path = "known.yaml".to_owned();
    let known = Known::parse(&ExpectationFile { path, text })?;
    Ok(of_a_run(known))
}

#[track_caller]
fn check(keys: &str, verdict: Verdict, expect: Verdict) {
    assert_eq!(apply(keys, verdict).verdict, expect, "{keys}");
}

#[test]
fn a_failure_is_known_by_what_was_seen() {
    check("", Verdict::Fail, Verdict::Known);
    check(", finding: missing-stopped", Verdict::Fail, Verdict::Known);
    check(
        ", finding: [missing-deleted, missing-stopped]",
        Verdict::Fail,
        Verdict::Known,
    );
    check(", finding: missing-deleted", Verdict::Fail, Verdict::Fail);
    check("", Verdict::Error, Verdict::Error);
}

#[test]
fn a_race_may_be_won() {
    check("", Verdict::Pass, Verdict::UnexpectedPass);
    check(", sometimes: true", Verdict::Pass, Verdict::Pass);
    check(", rate: 2/20", Verdict::Pass, Verdict::Pass);
    check(", rate: 2/20", Verdict::Fail, Verdict::Known);
}

#[test]
fn the_rate_is_shown() {
    let reason = |keys| apply(keys, Verdict::Fail).reason.unwrap();
    assert_eq!(reason(", rate: 2/20"), "why, seen in 2 of 20 runs (there)");
    assert_eq!(reason(", sometimes: true"), "why (there)");
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
fn an_expired_entry_is_noted() {
    assert!(parse("").unwrap().notes().is_empty());
    assert!(parse(", expires: 2026-11-20").unwrap().notes().is_empty());
    let notes = parse(", expires: 2026-11-19").unwrap().notes();
    let start = "known.yaml: the entry of INV-01 has expired on 2026-11-19 and counts no more";
    assert!(notes.len() == 1 && notes[0].starts_with(start), "{notes:?}");
}

#[test]
fn invalid_days_and_rates_are_refused() {
    for (keys, expected) in [
        (", expires: soon", "`soon` is no day such as `2026-12-31`"),
        (", rate: 20/20", "`20/20` is no rate such as `2/20`"),
        (", until: 2026-12-31", "unknown key `until`"),
    ] {
        let fault = parse(keys).unwrap_err();
        assert!(fault.contains(expected), "{fault}");
    }
}

/// Whether a file with these entries lists a violation of INV-01 in a case.
#[track_caller]
fn listed(entries: &str, kind: &str, case: &str) -> bool {
    read(entries)
        .expect("it is right")
        .lists("INV-01", &seen(kind, case))
}

fn read(entries: &str) -> Result<Known, String> {
    let text = format!("runtime: any\nknown:\n{entries}");
    let path = "known.yaml".to_owned();
    let known = Known::parse(&ExpectationFile { path, text })?;
    Ok(of_a_run(known))
}

#[test]
fn an_entry_of_an_invariant_is_of_its_cases_alone() {
    let entry =
        "- {case: INV-01, reason: r, link: l, finding: missing-started, in: [FLR-02, FLR-03]}\n";
    assert!(listed(entry, "missing-started", "FLR-02"));
    assert!(listed(entry, "missing-started", "FLR-03"));
    assert!(!listed(entry, "missing-started", "ORD-01"));
    assert!(!listed(entry, "sibling-missing", "FLR-02"));
    let known = read(entry).unwrap();
    let late = Seen {
        signature: signature("missing-started"),
        case: None,
    };
    assert!(known.lists("INV-01", &late), "of whichever case it is");
}

#[test]
fn what_a_case_breaks_can_be_of_several_entries() {
    let entries = "- {case: INV-01, reason: one, link: l, finding: missing-started, in: FLR-02}\n\
                   - {case: INV-01, reason: two, link: l, finding: sibling-missing}\n";
    let known = read(entries).unwrap();
    let mut outcome = blank_invariant(&INVARIANTS[0], BEGAN);
    outcome.verdict = Verdict::Fail;
    outcome.seen = [
        (seen("missing-started", "FLR-02"), 1),
        (seen("sibling-missing", "ORD-01"), 2),
    ]
    .into();
    let mut other = outcome.clone();
    known.apply(&mut outcome, &Decided::default());
    assert_eq!(outcome.verdict, Verdict::Known);
    assert_eq!(outcome.reason.as_deref(), Some("one (l); two (l)"));
    other.seen.insert(seen("missing-started", "ORD-01"), 1);
    known.apply(&mut other, &Decided::default());
    assert_eq!(other.verdict, Verdict::Fail);
}

#[test]
fn an_invariant_is_mended_if_the_cases_that_break_it_have_run() {
    let entry = "- {case: INV-01, reason: r, link: l, in: [FLR-02, FLR-03]}\n";
    for (entry, decided, expect) in [
        (
            entry,
            decided(&["FLR-02", "FLR-03"]),
            Verdict::UnexpectedPass,
        ),
        (entry, decided(&["FLR-02", "ORD-01"]), Verdict::Pass),
        (
            "- {case: INV-01, reason: r, link: l}\n",
            Decided::default(),
            Verdict::Pass,
        ),
    ] {
        let mut outcome = blank_invariant(&INVARIANTS[0], BEGAN);
        read(entry).unwrap().apply(&mut outcome, &decided);
        assert_eq!(outcome.verdict, expect, "{decided:?}");
    }
}

#[test]
fn a_race_that_is_lost_too_often_is_no_known_one() {
    let known = read("- {case: INV-01, reason: r, link: l, at-most: 5/1000}\n").unwrap();
    let mut outcome = blank_invariant(&INVARIANTS[0], BEGAN);
    outcome.verdict = Verdict::Fail;
    outcome.seen = [(seen("missing-started", "STP-06"), 41)].into();
    let losses = |findings, containers| {
        known.broken_bound(&outcome, |_| Losses {
            findings,
            containers,
        })
    };
    assert_eq!(losses(2, 100), None);
    let reason = losses(41, 100).expect("that is too often");
    let start = "the race is lost 41 times in 100 containers, more often than chance explains: at \
                 most 5 of 1000 containers are known to. r (l)";
    assert_eq!(reason, start);
    let passed = blank_invariant(&INVARIANTS[0], BEGAN);
    let mut outcome = passed.clone();
    known.apply(&mut outcome, &decided(&[]));
    assert_eq!(outcome.verdict, Verdict::Pass, "a race may be won");
}

#[test]
fn an_entry_counts_where_its_conditions_hold() {
    let entries = "- {case: INV-01, reason: r, link: l, when: {handler: crun}}\n";
    let on = |handler: &str| {
        let known = read(entries).unwrap().for_a_run(JudgedRun {
            facts: RuntimeFacts {
                handler: Some(handler.to_owned()),
                ..RuntimeFacts::default()
            },
            ..JudgedRun::default()
        });
        known.lists("INV-01", &seen("missing-started", "ORD-01"))
    };
    assert!(on("crun"));
    assert!(!on("runc"));
    assert!(
        !listed(entries, "missing-started", "ORD-01"),
        "it is not known"
    );
}

#[test]
fn two_entries_of_the_same_failures_are_refused() {
    let twice = |first: &str, second: &str| {
        read(&format!(
            "- {{case: INV-01, reason: r, link: l{first}}}\n\
             - {{case: INV-01, reason: r, link: l{second}}}\n"
        ))
    };
    for (first, second) in [
        ("", ""),
        (", when: {version: '<2.3'}", ", when: {version: '=2.1'}"),
        (", when: {handler: crun}", ", when: {cgroup: v2}"),
        (", in: [ORD-01, ORD-02]", ", in: [ORD-02]"),
        (
            ", finding: {kind: stream-ended, end: it …}",
            ", finding: {kind: stream-ended, end: it ended}",
        ),
    ] {
        let fault = twice(first, second).unwrap_err();
        let expected = "`INV-01` is listed twice, by the entries 1 and 2, for the same failures";
        assert!(fault.starts_with(expected), "{fault}");
    }
    for (first, second) in [
        (", when: {version: '<2.3'}", ", when: {version: '>=2.3'}"),
        (", when: {handler: crun}", ", when: {handler: runc}"),
        (", in: ORD-01", ", in: ORD-02"),
        (", finding: missing-created", ", finding: missing-started"),
    ] {
        assert_eq!(twice(first, second).err(), None);
    }
}

#[test]
fn faults_of_a_file_are_reported_in_the_words_of_users() {
    for (text, expected) in [
        ("[]", "expected a file with `runtime:` and `known:`"),
        (
            "{runtime: a, known: [a]}",
            "expected an entry with `case`, `reason` and `link`",
        ),
        (
            "{runtime: a, known: [{case: ORD-01, reason: r, link: l, in: 5}]}",
            "expected a text or a list of texts",
        ),
        (
            "{runtime: a, known: [{case: ORD-01, reason: r, link: l, when: 2.1}]}",
            "expected conditions: `version`, `handler`",
        ),
        (
            "{runtime: a, known: [{case: ORD-01, reason: r, link: l, when: {version: '2.1'}}]}",
            "`2.1` is no comparison of versions: write `<2.3`",
        ),
        (
            "{runtime: a, known: [{case: ORD-01, reason: r, link: l, at-most: 5%}]}",
            "`5%` is no bound such as `5/1000`",
        ),
        (
            "{runtime: a, known: [{case: ORD-01, reason: r, link: l, in: [ORD-02]}]}",
            "`ORD-01` has `in`, which names the cases that break an invariant",
        ),
        (
            "{runtime: a, known: [{case: ORD-01, reason: r, link: l, when: {cgroup: v3}}]}",
            "`cgroup: v3`: there are v1, v2, hybrid",
        ),
    ] {
        let path = "known.yaml".to_owned();
        let text = text.to_owned();
        let fault = Known::parse(&ExpectationFile { path, text }).unwrap_err();
        assert!(fault.contains(expected), "{fault}");
        let is_rust = ["struct ", " variant", " enum"]
            .iter()
            .any(|word| fault.contains(word));
        assert!(!is_rust, "{fault}");
    }
}

#[test]
fn what_is_wrong_in_a_finding_is_refused_with_what_to_write() {
    for (text, expected) in [
        (
            "{runtime: a, known: [{case: ORD-01, reason: r, link: l, finding: 5}]}",
            "expected the kind of a finding, such as `missing-stopped`",
        ),
        (
            "{runtime: a, known: [{case: ORD-01, reason: r, link: l, finding: []}]}",
            "a list without a finding",
        ),
        (
            "{runtime: a, known: [{case: ORD-01, reason: r, link: l, finding: mising-stopped}]}",
            "there is no kind of findings `mising-stopped`; do you mean `missing-stopped`?",
        ),
        (
            "{runtime: a, known: [{case: ORD-01, reason: r, link: l, finding: {event: STOPPED}}]}",
            "a finding has a `kind`, such as `missing-stopped`",
        ),
        (
            "{runtime: a, known: [{case: X, reason: r, link: l, finding: {kind: late-event, \
             evnt: STOPPED}}]}",
            "there is no fact `evnt`: there are event, ",
        ),
        (
            "{runtime: a, known: [{case: X, reason: r, link: l, finding: {kind: late-event, \
             event: STOPED}}]}",
            "`event`: \"STOPED\" is no event: there are CREATED, STARTED, STOPPED and DELETED",
        ),
        (
            "{runtime: a, known: [{case: X, reason: r, link: l, finding: {kind: late-event, \
             pause: 3s}}]}",
            "`pause` is measured: it differs from run to run and cannot be matched",
        ),
        (
            "runtime: a\nknown:\n- {case: X, reason: r, link: l, actual: it has not come}\n",
            "known.yaml:3:33",
        ),
        (
            "{runtime: a, known: [{case: X, reason: r, link: l, actual: it has not come}]}",
            "unknown key `actual`",
        ),
    ] {
        let path = "known.yaml".to_owned();
        let text = text.to_owned();
        let fault = Known::parse(&ExpectationFile { path, text }).unwrap_err();
        assert!(fault.contains(expected), "{fault}");
    }
}

#[test]
fn a_version_newer_than_any_measured_one_gets_a_note() {
    for (runtime, version, newer) in [
        ("containerd", "v2.4.0-beta.1", true),
        ("containerd", "2.3.9", false),
        ("containerd", "1.6.0", false),
        ("cri-o", "1.37.0", true),
        ("cri-o", "1.36.9", false),
        ("other", "9.0", false),
    ] {
        let note = crate::verdicts::unmeasured(runtime, version);
        assert_eq!(note.is_some(), newer, "{runtime} {version}: {note:?}");
    }
}
