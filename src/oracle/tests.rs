//! The levels of invariants, and the entries that are shown with a violation.

use std::sync::Arc;

use expect_test::expect;

use super::script::{entries, history};
use super::{context, invariants};
use crate::history::{Body, CaseHistory, CaseRun, NoEventCall, Request};
use crate::oracle::Index;
use crate::outcome::Level;

#[test]
fn a_broken_invariant_has_its_strictest_level() {
    let level = |script: &str, rule: &str| {
        let violations = invariants(&Index::new(&history(script)));
        let found = violations.iter().find(|found| found.rule == rule);
        found.map(|found| found.level)
    };
    let repeated = "pod run; c create; c CREATED; c CREATED";
    assert_eq!(level(repeated, "INV-02"), Some(Level::Must));
    let turned = "pod run; c create; d create; c CREATED; d CREATED at=-2ms";
    assert_eq!(level(turned, "INV-23"), Some(Level::Should));
}

#[test]
fn a_violation_is_shown_with_all_entries_about_its_subject() {
    let script = "pod run; d create; c create; d CREATED; c CREATED; c CREATED; c start; pod stop";
    let history = history(script);
    let violations = invariants(&Index::new(&history));
    let [violation] = &violations[..] else {
        panic!("not one violation: {violations:?}");
    };
    let places: Vec<u64> = context(&history, violation)
        .iter()
        .map(|seq| seq.0)
        .collect();
    expect!["[Seq(8), Seq(9)] in [5, 6, 8, 9, 10, 11]"]
        .assert_eq(&format!("{:?} in {places:?}", violation.evidence));
}

#[test]
fn a_call_that_changes_no_state_is_shown_with_its_subject() {
    let context_of = |attached: &str| {
        let mut history = CaseHistory::new(CaseRun(1));
        for mut entry in entries("pod run; c create; c CREATED; c CREATED; c start") {
            if let Body::CallBegan { request, .. } = &mut entry.body
                && let Request::StartContainer(_) = request
            {
                *request = Request::NoEventCall(NoEventCall::Attach, attached.into());
            }
            history.push(&Arc::new(entry));
        }
        let violations = invariants(&Index::new(&history));
        let places = context(&history, &violations[0]).into_iter();
        places.map(|seq| seq.0).collect::<Vec<_>>()
    };
    assert_eq!(context_of("c.0.beef"), [3, 4, 5, 6, 7, 8]);
    assert_eq!(context_of("d.0.beef"), [3, 4, 5, 6]);
}
