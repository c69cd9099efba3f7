//! What is made of a case by how its steps ended, and what is shown beside a proof.

#![expect(
    clippy::needless_pass_by_value,
    clippy::needless_raw_string_hashes,
    reason = "this is how expect-test is used"
)]

use std::sync::Arc;

use expect_test::{Expect, expect};

use super::expectations::tests::case;
use super::script::{entries, history, render};
use super::{Undecided, context, invariants, judge};
use crate::case::Situation;
use crate::history::{Aside, Body, CaseHistory, CaseRun, Request};
use crate::outcome::Level;

const STOPS: &str = "includes: {of: c, in-order: [stopped]}";
const STOPPED: &str = "kills 7; pod run; c create; c STOPPED; kills 8";
const RUNNING: &str = "kills 7; pod run; c create; c STARTED; kills 8";

#[track_caller]
fn check(level: Level, provokes: Option<Situation>, script: &str, expect: Expect) {
    let mut case = case(level, STOPS);
    case.provokes = provokes;
    let judgement = judge(&case, &history(script));
    let undecided = match &judgement.undecided {
        None => String::new(),
        Some(Undecided::Error(reason)) => format!("error: {reason}\n"),
        Some(Undecided::Inconclusive(reason)) => format!("inconclusive: {reason}\n"),
        Some(Undecided::Skip(reason)) => format!("skip: {reason}\n"),
    };
    let advice = render(&judgement.advice).replace("ORD-01", "advice");
    expect.assert_eq(&(render(&judgement.violations) + &advice + &undecided));
}

#[test]
fn a_complete_case_is_judged_by_its_expectations() {
    check(Level::Must, None, &format!("{STOPPED}; end"), expect![]);
    check(
        Level::Must,
        None,
        &format!("{RUNNING}; end"),
        expect![[r#"
        ORD-01 at #4 #5 #6: c (c.0.beef): expected STOPPED: it has not come
    "#]],
    );
}

#[test]
fn what_only_should_be_is_advice() {
    check(
        Level::Should,
        None,
        &format!("{RUNNING}; end"),
        expect![[r#"
        advice at #4 #5 #6: c (c.0.beef): expected STOPPED: it has not come
    "#]],
    );
    check(
        Level::May,
        None,
        &format!("{RUNNING}; end"),
        expect![[r#"
        advice at #4 #5 #6: c (c.0.beef): expected STOPPED: it has not come
    "#]],
    );
}

#[test]
fn a_wait_in_vain_convicts_and_the_expectations_are_not_looked_at() {
    let script = format!("{RUNNING}; wait in-vain STOPPED_of_c; end unmet");
    check(
        Level::Must,
        None,
        &script,
        expect![[r#"
        ORD-01 at #8: STOPPED of c: expected STOPPED of c within 10s: it did not come
    "#]],
    );
}

#[test]
fn a_wait_in_vain_tells_what_was_seen_instead() {
    let script = format!("{RUNNING}; wait in-vain STOPPED_of_c refused by it; end unmet");
    check(
        Level::Must,
        None,
        &script,
        expect![[r#"
        ORD-01 at #8: STOPPED of c: expected STOPPED of c within 10s: refused by it
    "#]],
    );
}

#[test]
fn a_wait_in_vain_tells_how_the_stream_ended_before() {
    let waited = |ended: &str, expect: Expect| {
        let script = format!("{RUNNING}; {ended}; wait in-vain STOPPED_of_c; end unmet");
        check(Level::Must, None, &script, expect);
    };
    waited(
        "stream ends; c stop",
        expect![[r#"
            ORD-01 at #8 #11: STOPPED of c: expected STOPPED of c within 10s: the stream ended before: the runtime ended it with OK
        "#]],
    );
    waited(
        "stream ends away; c stop",
        expect![[r#"
            ORD-01 at #8 #11: STOPPED of c: expected STOPPED of c within 10s: the stream ended before: it ended with UNAVAILABLE
        "#]],
    );
    waited(
        "stream ends; subscribe; c stop",
        expect![[r#"
            ORD-01 at #12: STOPPED of c: expected STOPPED of c within 10s: it did not come
        "#]],
    );
}

#[test]
fn what_must_be_so_at_once_is_given_no_time() {
    let check = |how: &str, end: &str, expect: Expect| {
        let script = format!("{RUNNING}; wait {how} no_process_of_c; {end}");
        check(Level::May, None, &script, expect);
    };
    check(
        "not-at-once",
        "end unmet",
        expect![[r#"
        ORD-01 at #8: no process of c: expected no process of c: it did not come
    "#]],
    );
    check(
        "met",
        "end",
        expect![[r#"
        advice at #4 #5 #6: c (c.0.beef): expected STOPPED: it has not come
    "#]],
    );
}

#[test]
fn a_wait_in_vain_that_is_not_told_is_our_own_fault() {
    check(
        Level::Must,
        None,
        &format!("{STOPPED}; end unmet"),
        expect![[r#"
            error: the history does not tell which wait was in vain
        "#]],
    );
}

#[test]
fn an_error_convicts_nobody() {
    check(
        Level::Must,
        None,
        &format!("{RUNNING}; end error"),
        expect![[r#"
            error: interrupted
        "#]],
    );
}

#[test]
fn an_inconclusive_case_convicts_nobody() {
    check(
        Level::Must,
        None,
        &format!("{RUNNING}; end inconclusive"),
        expect![[r#"
            inconclusive: no race
        "#]],
    );
}

#[test]
fn a_case_that_a_runtime_does_not_suit_is_skipped() {
    check(
        Level::Must,
        None,
        &format!("{RUNNING}; end not-applicable"),
        expect![[r#"
            skip: refused
        "#]],
    );
}

#[test]
fn a_history_that_is_cut_off_convicts_nobody() {
    check(
        Level::Must,
        None,
        RUNNING,
        expect![[r#"
        error: the history ends before the case's steps do
    "#]],
    );
}

#[test]
fn a_provoked_kill_makes_the_case_decisive() {
    let situation = Some(Situation::OomKill);
    check(
        Level::Must,
        situation,
        &format!("{STOPPED}; end"),
        expect![],
    );
    check(
        Level::Must,
        situation,
        &format!("{RUNNING}; end"),
        expect![[r#"
            ORD-01 at #1 #4 #5 #6 #7: c (c.0.beef): expected STOPPED: it has not come
        "#]],
    );
}

#[test]
fn without_the_provoked_kill_nothing_is_proven() {
    let situation = Some(Situation::OomKill);
    check(
        Level::Must,
        situation,
        "kills 7; pod run; c create; kills 7; end",
        expect![[r#"
            inconclusive: the kernel's count of OOM kills stayed at 7: nothing was killed
        "#]],
    );
}

#[test]
fn a_kill_that_nobody_counted_is_no_kill() {
    let situation = Some(Situation::OomKill);
    check(
        Level::Must,
        situation,
        "pod run; c create; c STOPPED; end",
        expect![[r#"
            inconclusive: the kernel's count of OOM kills was not read
        "#]],
    );
    check(
        Level::Must,
        situation,
        "kills 7; pod run; c create; c STOPPED; end",
        expect![[r#"
            inconclusive: the kernel's count of OOM kills was not read
        "#]],
    );
}

#[test]
fn a_broken_invariant_is_as_binding_as_for_whom_it_binds_most() {
    let level = |script: &str, rule: &str| {
        let violations = invariants(&history(script));
        let found = violations.iter().find(|found| found.rule == rule);
        found.map(|found| found.level)
    };
    let repeated = "pod run; c create; c CREATED; c CREATED";
    assert_eq!(level(repeated, "INV-02"), Some(Level::Must));
    let turned = "pod run; c create; d create; c CREATED; d CREATED at=-2ms";
    assert_eq!(level(turned, "INV-23"), Some(Level::Should));
}

#[test]
fn a_proof_is_shown_with_all_that_is_known_of_its_subject() {
    let script = "pod run; d create; c create; d CREATED; c CREATED; c CREATED; c start; pod stop";
    let history = history(script);
    let violations = invariants(&history);
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
                *request = Request::Aside(Aside::Attach, attached.into());
            }
            history.push(&Arc::new(entry));
        }
        let violations = invariants(&history);
        let places = context(&history, &violations[0]).into_iter();
        places.map(|seq| seq.0).collect::<Vec<_>>()
    };
    assert_eq!(context_of("c.0.beef"), [3, 4, 5, 6, 7, 8]);
    assert_eq!(context_of("d.0.beef"), [3, 4, 5, 6]);
}
