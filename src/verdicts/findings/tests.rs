//! Outcomes of invariants that are broken often.

use super::super::plan::blank_invariant;
use super::*;
use crate::case::Exemption;
use crate::checks::testing;
use crate::history::{ExpectationFile, HostInstant};
use crate::oracle::INVARIANTS;
use crate::oracle::Index;
use crate::oracle::script::{entries, history};
use crate::outcome::{Fact, Kind};

/// A sequence of sandboxes whose DELETED has no sandbox status.
const OFTEN: &str = "a run; a DELETED no-sandbox; b run; b DELETED no-sandbox; c run; \
                     c DELETED no-sandbox; d run; d DELETED no-sandbox; e run; \
                     e DELETED no-sandbox; f run; f DELETED no-sandbox";
const ALSO_CREATED: &str = "g run; g CREATED no-sandbox";

fn known(finding: &str) -> Known {
    let text = format!(
        "{{runtime: r, known: [{{case: INV-06, reason: r, link: l, finding: {finding}}}]}}"
    );
    let path = "known.yaml".to_owned();
    Known::parse(&ExpectationFile { path, text }).expect("an expectation file")
}

/// The displayed violations of INV-06 in a case, and the reason, which contains their number.
fn shown(script: &str, known: &Known) -> (Vec<String>, Option<String>) {
    let history = history(script);
    let mut findings = Findings::default();
    let case = testing::case(Level::Must, "no-repeats: {of: a}");
    let place = (Place::Case(&case), &Profile::ALL[..]);
    let found = find(place, &Index::new(&history), known, &BTreeSet::new());
    findings.add(history.case(), Seq(1_000), found);
    let invariant = INVARIANTS.iter().find(|invariant| invariant.id == "INV-06");
    let mut outcome = blank_invariant(invariant.expect("it is there"), HostInstant::default());
    findings.add_to_outcome("INV-06", &mut outcome);
    let shown = outcome.violations.iter().map(Violation::actual);
    (shown.collect(), outcome.reason)
}

#[test]
fn unlisted_violations_are_shown_first() {
    let listed = known("{kind: missing-sandbox-status, event: DELETED}");
    let (shown, reason) = shown(&format!("{OFTEN}; {ALSO_CREATED}"), &listed);
    assert_eq!(shown.len(), SHOWN_VIOLATIONS);
    assert_eq!(shown[0], "no pod_sandbox_status in CREATED");
    assert_eq!(shown[1], "no pod_sandbox_status in DELETED");
    assert_eq!(
        reason.as_deref(),
        Some("7 times in all; 1 not listed as known, shown first")
    );
}

#[test]
fn the_first_violations_are_shown_if_none_or_all_are_listed() {
    let reason = Some("7 times in all; the details show 5".to_owned());
    let script = format!("{OFTEN}; {ALSO_CREATED}");
    let deleted = vec!["no pod_sandbox_status in DELETED".to_owned(); SHOWN_VIOLATIONS];
    assert_eq!(shown(&script, &Known::default()), (deleted.clone(), reason));
    let listed = known("{kind: missing-sandbox-status, event: DELETED}");
    let reason = Some("6 times in all; the details show 5".to_owned());
    assert_eq!(shown(OFTEN, &listed), (deleted, reason));
}

/// The verdict on INV-06, a MUST for both kubelets, with a case of these levels that exempts an
/// invariant.
fn binding(levels: Levels, exempt: &str) -> (Verdict, Levels) {
    let history = history(ALSO_CREATED);
    let mut findings = Findings::default();
    let exempt = Exemption {
        rules: vec![exempt.to_owned()],
        because: "no kubelet does this".to_owned(),
    };
    let case = Case {
        levels,
        exempt: vec![exempt],
        ..testing::case(Level::Must, "no-repeats: {of: a}")
    };
    let found = find(
        (Place::Case(&case), &Profile::ALL[..]),
        &Index::new(&history),
        &Known::default(),
        &BTreeSet::new(),
    );
    findings.add(history.case(), Seq(1_000), found);
    let invariant = INVARIANTS.iter().find(|invariant| invariant.id == "INV-06");
    let mut outcome = blank_invariant(invariant.expect("it is there"), HostInstant::default());
    findings.add_to_outcome("INV-06", &mut outcome);
    let (convicting, advice) = (outcome.violations.len(), outcome.advice.len());
    assert_eq!(convicting + advice, 1);
    assert_eq!(convicting == 1, outcome.verdict == Verdict::Fail);
    (outcome.verdict, outcome.broken_levels)
}

#[test]
fn an_exempt_invariant_binds_no_more_than_its_case() {
    let binding = |levels| binding(levels, "INV-06");
    let levels = |cache, hint, observer| Levels {
        cache,
        hint,
        observer,
    };
    let (must, should, may) = (Some(Level::Must), Some(Level::Should), Some(Level::May));
    let both = levels(must, must, None);
    assert_eq!(binding(both), (Verdict::Fail, both));
    let one = levels(must, should, None);
    assert_eq!(binding(one), (Verdict::Fail, one));
    let none = levels(should, may, None);
    assert_eq!(binding(none), (Verdict::Pass, none));
    // A case that is about others than kubelets has a history all the same.
    assert_eq!(binding(levels(None, None, must)), (Verdict::Fail, both));
    let advised = levels(should, should, None);
    assert_eq!(
        binding(levels(None, None, should)),
        (Verdict::Pass, advised)
    );
    assert_eq!(binding(levels(may, None, None)).0, Verdict::Pass);
}

#[test]
fn an_invariant_has_its_own_levels_in_a_case_that_does_not_exempt_it() {
    let own = levels_of("INV-06");
    let advises = Levels {
        cache: Some(Level::Should),
        ..Levels::default()
    };
    assert_eq!(binding(advises, "INV-01"), (Verdict::Fail, own));
}

#[test]
fn findings_that_differ_without_end_are_counted() {
    let rule = INVARIANTS
        .iter()
        .find(|rule| rule.id == "INV-06")
        .expect("it is there");
    let mut findings = Findings::default();
    let all = COUNTED + 2 * SHOWN_VIOLATIONS;
    for number in 0..all {
        let text = format!("{number}") + &"x".repeat(10_000);
        let violation = Violation {
            rule: rule.id.to_owned(),
            level: Level::Must,
            sentence: String::new(),
            subject: number.to_string(),
            mismatch: Mismatch::new(rule.kinds[0], [], [Fact::Reason(text)]),
            evidence: vec![Seq(0); 1_000],
        };
        let found = Found::new(violation, None, &Known::default());
        findings.add_pod(Seq(number as u64), vec![found]);
    }
    assert_eq!(findings.counted.len(), COUNTED);
    assert!(
        findings
            .latest
            .iter()
            .all(|it| it.evidence.len() == 2 && it.mismatch.actual.is_empty())
    );
    let mut outcome = blank_invariant(rule, HostInstant::default());
    findings.add_to_outcome(rule.id, &mut outcome);
    let count = format!("{all} times in all; the details show {SHOWN_VIOLATIONS}");
    assert_eq!(outcome.reason, Some(count));
    let texts = outcome
        .seen
        .keys()
        .flat_map(|seen| seen.signature.facts.iter());
    let longest = texts.map(|fact| fact.text().len()).max();
    assert!(longest.is_some_and(|longest| longest < 5_000));
}

/// Seven containers in one watch: more than the displayed violations of one invariant.
#[test]
fn what_is_only_counted_is_not_found_again_at_the_end() {
    let lives = ["a", "b", "c", "d", "e", "f", "g"];
    let lives = lives.map(|name| format!("{name} create; {name} STARTED; {name} CREATED"));
    let script = format!("pod run; {}", lives.join("; "));
    let (mut findings, mut whole_run) = (Findings::default(), WholeRun::default());
    let (known, history) = (Known::default(), history(&script));
    let place = (Place::Pod("shop/web"), &Profile::ALL[..]);
    let found = find(place, &Index::new(&history), &known, &BTreeSet::new());
    findings.add_pod(Seq(1_000), found);
    for entry in entries(&script) {
        whole_run.push(&entry);
    }
    findings.judge_late(Seq(1_001), (&whole_run, None), &known);
    let invariant = INVARIANTS.iter().find(|invariant| invariant.id == "INV-01");
    let mut outcome = blank_invariant(invariant.expect("it is there"), HostInstant::default());
    findings.add_to_outcome("INV-01", &mut outcome);
    assert_eq!(outcome.seen.values().sum::<usize>(), 7);
    assert_eq!(outcome.violations.len(), SHOWN_VIOLATIONS);
    let mut late = outcome.violations.iter();
    assert!(late.all(|found| found.mismatch.kind == Kind::EventOutOfOrder));
}
