//! What is told of an invariant that is broken often.

use super::super::plan::blank_invariant;
use super::*;
use crate::history::{ExpectationFile, HostInstant};
use crate::oracle::INVARIANTS;
use crate::oracle::Index;
use crate::oracle::script::history;

/// One after the other, sandboxes whose DELETED tells no sandbox; of the last one CREATED does not.
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

/// What INV-06 says was seen in a case, and how often.
fn told(script: &str, known: &Known) -> (Vec<String>, Option<String>) {
    let history = history(script);
    let mut findings = Findings::default();
    let levels = Levels {
        hint: Some(Level::Must),
        ..Levels::default()
    };
    let case = ("X-01", &levels, &Profile::ALL[..]);
    let found = find(case, &Index::new(&history), known, &BTreeSet::new());
    findings.take_in(history.case(), Seq(1_000), found);
    let invariant = INVARIANTS.iter().find(|invariant| invariant.id == "INV-06");
    let mut outcome = blank_invariant(invariant.expect("it is there"), HostInstant::default());
    findings.tell("INV-06", &mut outcome);
    let shown = outcome.violations.iter().map(Violation::actual);
    (shown.collect(), outcome.reason)
}

#[test]
fn what_is_not_listed_is_told_first() {
    let listed = known("{kind: missing-sandbox-status, event: DELETED}");
    let (shown, reason) = told(&format!("{OFTEN}; {ALSO_CREATED}"), &listed);
    assert_eq!(shown.len(), TOLD_VIOLATIONS);
    assert_eq!(shown[0], "no pod_sandbox_status in CREATED");
    assert_eq!(shown[1], "no pod_sandbox_status in DELETED");
    assert_eq!(
        reason.as_deref(),
        Some("7 times in all; 1 not listed as known, told first")
    );
}

#[test]
fn where_nothing_or_everything_is_listed_the_first_are_told() {
    let reason = Some("7 times in all; the first 5 are told".to_owned());
    let script = format!("{OFTEN}; {ALSO_CREATED}");
    let deleted = vec!["no pod_sandbox_status in DELETED".to_owned(); TOLD_VIOLATIONS];
    assert_eq!(told(&script, &Known::default()), (deleted.clone(), reason));
    let listed = known("{kind: missing-sandbox-status, event: DELETED}");
    let reason = Some("6 times in all; the first 5 are told".to_owned());
    assert_eq!(told(OFTEN, &listed), (deleted, reason));
}

/// What becomes of INV-06, a MUST for both kubelets, by a case with these levels.
fn binding(levels: Levels) -> (Verdict, Levels) {
    let history = history(ALSO_CREATED);
    let mut findings = Findings::default();
    let case = ("X-01", &levels, &Profile::ALL[..]);
    let found = find(
        case,
        &Index::new(&history),
        &Known::default(),
        &BTreeSet::new(),
    );
    findings.take_in(history.case(), Seq(1_000), found);
    let invariant = INVARIANTS.iter().find(|invariant| invariant.id == "INV-06");
    let mut outcome = blank_invariant(invariant.expect("it is there"), HostInstant::default());
    findings.tell("INV-06", &mut outcome);
    let (convicting, advice) = (outcome.violations.len(), outcome.advice.len());
    assert_eq!(convicting + advice, 1);
    assert_eq!(convicting == 1, outcome.verdict == Verdict::Fail);
    (outcome.verdict, outcome.broken_levels)
}

#[test]
fn an_invariant_binds_no_more_than_the_case_that_breaks_it() {
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
