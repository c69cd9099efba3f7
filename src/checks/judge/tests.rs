//! The verdict, depending on the end of a case's steps and on delays of the suite itself.

use expect_test::{Expect, expect};

use super::{Undecided, broken_expectations, judge};
use crate::checks::Situation;
use crate::checks::testing::case;
use crate::oracle::Index;
use crate::oracle::script::{history, render};
use crate::outcome::Level;

const STOPS: &str = "includes: {of: c, in-order: [stopped]}";

const STOPPED: &str = "kills 7; pod run; c create; c STOPPED; kills 8";

const RUNNING: &str = "kills 7; pod run; c create; c STARTED; kills 8";

#[track_caller]
fn check(level: Level, provokes: Option<Situation>, script: &str, expect: Expect) {
    let mut case = case(level, STOPS);
    case.provokes = provokes;
    let judgement = judge(&case.claim(), &Index::new(&history(script)));
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
            ORD-01 at #4 #5 #6: c (c.0.beef): expected STOPPED: STOPPED has not come
        "#]],
    );
}

/// A runtime whose sandbox events have the id of its own pause container, for instance.
#[test]
fn a_finding_names_the_events_that_the_missing_one_may_be() {
    let with_other = format!("{RUNNING}; d create fails; d STARTED; d STOPPED");
    check(
        Level::Must,
        None,
        &format!("{with_other}; end"),
        expect![[r#"
            ORD-01 at #4 #5 #6 #11: c (c.0.beef): expected STOPPED: STOPPED has not come, but came under the unknown id d.0.beef
        "#]],
    );
    let waits = format!("{with_other}; wait in-vain STOPPED_of_c; end unmet");
    check(
        Level::Must,
        None,
        &waits,
        expect![[r#"
            ORD-01 at #11 #12: c: expected STOPPED of c within 10s: STOPPED has not come, but came under the unknown id d.0.beef
        "#]],
    );
}

#[test]
fn a_broken_should_is_advice() {
    check(
        Level::Should,
        None,
        &format!("{RUNNING}; end"),
        expect![[r#"
            advice at #4 #5 #6: c (c.0.beef): expected STOPPED: STOPPED has not come
        "#]],
    );
    check(
        Level::May,
        None,
        &format!("{RUNNING}; end"),
        expect![[r#"
            advice at #4 #5 #6: c (c.0.beef): expected STOPPED: STOPPED has not come
        "#]],
    );
}

#[test]
fn a_wait_in_vain_convicts_and_the_expectations_are_not_judged() {
    let script = format!("{RUNNING}; wait in-vain STOPPED_of_c; end unmet");
    check(
        Level::Must,
        None,
        &script,
        expect![[r#"
            ORD-01 at #8: c: expected STOPPED of c within 10s: STOPPED has not come
        "#]],
    );
}

#[test]
fn a_wait_in_vain_names_what_was_seen_instead() {
    let script = format!("{RUNNING}; wait in-vain STOPPED_of_c refused by it; end unmet");
    check(
        Level::Must,
        None,
        &script,
        expect![[r#"
            ORD-01 at #8: c: expected STOPPED of c within 10s: refused by it
        "#]],
    );
}

#[test]
fn a_wait_in_vain_names_how_the_stream_ended_before() {
    let waited = |ended: &str, expect: Expect| {
        let script = format!("{RUNNING}; {ended}; wait in-vain STOPPED_of_c; end unmet");
        check(Level::Must, None, &script, expect);
    };
    waited(
        "stream ends; c stop",
        expect![[r#"
            ORD-01 at #8 #11: c: expected STOPPED of c within 10s: the stream ended before: the runtime ended it with OK; after five such ends a kubelet up to 1.37 follows no events until it is restarted
        "#]],
    );
    waited(
        "stream ends away; c stop",
        expect![[r#"
            ORD-01 at #8 #11: c: expected STOPPED of c within 10s: the stream ended before: it ended with UNAVAILABLE; after five such ends a kubelet up to 1.37 follows no events until it is restarted
        "#]],
    );
    waited(
        "stream ends; subscribe; c stop",
        expect![[r#"
            ORD-01 at #12: c: expected STOPPED of c within 10s: STOPPED has not come
        "#]],
    );
}

#[test]
fn a_wait_without_a_bound_names_no_time() {
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
            advice at #4 #5 #6: c (c.0.beef): expected STOPPED: STOPPED has not come
        "#]],
    );
}

#[test]
fn a_wait_in_vain_that_is_not_recorded_is_an_error() {
    check(
        Level::Must,
        None,
        &format!("{STOPPED}; end unmet"),
        expect![[r#"
            error: the history does not record which wait was in vain
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
fn a_case_that_does_not_apply_is_skipped() {
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
            ORD-01 at #1 #4 #5 #6 #7: c (c.0.beef): expected STOPPED: STOPPED has not come
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
fn a_kill_that_was_not_counted_is_no_kill() {
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
fn a_name_that_stands_for_none_is_broken() {
    for check_of_c in [
        "events: {of: c, exactly: []}",
        "includes: {of: c, in-order: [stopped]}",
        "never: {of: c, event: stopped}",
        "no-repeats: {of: c}",
        "status: {of: c, event: stopped, exit-code: {is: 0}}",
        "invariant: {of: c, rule: INV-06}",
        "timing: {of: c, event: stopped, after: stop-called, at-most: 1s}",
        "order: {first: {of: c, event: stopped}, then: {of: d, event: stopped}}",
        "order: {first: {of: d, event: stopped}, then: {of: c, event: stopped}}",
    ] {
        let history = history("pod run; d create; d CREATED; d STOPPED; c create fails; end");
        let found = render(&broken_expectations(
            &case(Level::Must, check_of_c).claim(),
            &Index::new(&history),
        ));
        assert!(
            found.contains("the case made none"),
            "{check_of_c}: {found}"
        );
    }
}

const AWAITED: &str = "includes: {of: c, in-order: [stopped]}";

const MADE: &str = "pod run; c create; c CREATED";

/// Checks whether a history fails the case; otherwise the first words of the reason.
#[track_caller]
fn comes_to(check: &str, script: &str, expected: Result<&str, &str>) {
    let judgement = judge(
        &case(Level::Must, check).claim(),
        &Index::new(&history(script)),
    );
    let violation = judgement.violations.first();
    let found = match (&judgement.undecided, violation) {
        (Some(Undecided::Inconclusive(reason)), None) => Err(reason.clone()),
        (None, Some(violation)) => Ok(violation.actual()),
        (None, None) => Ok(String::new()),
        (undecided, _) => panic!("{undecided:?}"),
    };
    let text = |found: &Result<String, String>| found.clone().unwrap_or_else(|reason| reason);
    let is_as_expected = match expected {
        Ok(actual) => found == Ok(actual.to_owned()),
        Err(why) => found.is_err() && text(&found).contains(why),
    };
    assert!(is_as_expected, "{script}: {found:?}");
}

#[test]
fn an_awaited_event_may_have_come_while_the_suite_was_held_up() {
    let waits = |before: &str| format!("{MADE}; {before}; wait in-vain STOPPED_of_c; end unmet");
    let why =
        "STOPPED of c within 10s was awaited in vain, and the suite itself was held up for 2s";
    comes_to(AWAITED, &waits("pass 10s; held-up 2s"), Err(why));
    let convicts = Ok("STOPPED has not come");
    comes_to(AWAITED, &waits("pass 10s"), convicts);
    comes_to(AWAITED, &waits("pass 10s; held-up 900ms"), convicts);
    comes_to(AWAITED, &waits("pass 5s; held-up 5s; pass 11s"), convicts);
}

#[test]
fn an_event_missing_at_the_end_may_not_have_been_read() {
    let why = "STOPPED of c was awaited in vain, and the suite itself was held up for 1s";
    let script = |before: &str| format!("{MADE}; {before}; end");
    comes_to(AWAITED, &script("pass 10s; held-up 1s"), Err(why));
    comes_to(
        AWAITED,
        &script("held-up 1s; pass 11s"),
        Ok("STOPPED has not come"),
    );
    comes_to(AWAITED, &script("c STOPPED; pass 10s; held-up 1s"), Ok(""));
}

#[test]
fn a_late_event_is_late_by_as_much_as_the_suite_was_running() {
    const IN_TIME: &str = "timing: {of: c, event: stopped, after: stop-called, at-most: 12s}";
    let stops = |held_up: &str| {
        format!("{MADE}; c stop begins; pass 14s; {held_up}; c STOPPED; c stop returns; end")
    };
    let why = "c: STOPPED came 14.002s after StopContainer was called, and the suite itself";
    comes_to(IN_TIME, &stops("held-up 3s"), Err(why));
    let convicts = Ok("14.002s after StopContainer was called");
    comes_to(IN_TIME, &stops("held-up 1s"), convicts);
}

#[test]
fn an_event_may_seem_early_if_its_cause_was_seen_late() {
    const LATER: &str = "timing: {of: c, event: stopped, after: start-returned, at-least: 2s}";
    let starts = |held_up: &str| {
        format!("{MADE}; c start begins; pass 5s; {held_up}; c start returns; c STOPPED; end")
    };
    let why = "c: STOPPED came 1ms after StartContainer returned, and the suite itself";
    comes_to(LATER, &starts("held-up 5s"), Err(why));
    let convicts = Ok("1ms after StartContainer returned");
    comes_to(LATER, &starts("pass 1ms"), convicts);
}

#[test]
fn headers_may_be_read_late() {
    const SOON: &str = "subscription: {of: b, headers-within: 1s}";
    let answered = |held_up: &str| {
        format!("pod run; observe 7 as=b; pass 3s; {held_up}; observe 7 answered proven; end")
    };
    let why = "b: the headers came late or not, and the suite itself was held up for 2.5s";
    comes_to(SOON, &answered("held-up 2500ms"), Err(why));
    comes_to(SOON, &answered("held-up 1s"), Ok("they came later"));
    let never = |held_up: &str| {
        format!("pod run; observe 7 as=b; pass 3s; {held_up}; observe 7 proven; end")
    };
    comes_to(SOON, &never("held-up 2500ms"), Err(why));
    comes_to(SOON, &never("held-up 1s"), Ok("they did not come"));
}

#[test]
fn the_time_for_which_the_suite_was_held_up_is_no_part_of_a_latency() {
    const SOON: &str = "latency: {of: c, event: created, median: 100ms, p99: 1s}";
    let comes =
        |held_up: &str| format!("pod run; c create; pass 2998ms; {held_up}; c CREATED; end");
    comes_to(SOON, &comes("held-up 2950ms"), Ok(""));
    let convicts = Ok("median 2.5s, p99 2.5s, worst 2.5s of 1");
    comes_to(SOON, &comes("held-up 500ms"), convicts);
}

#[test]
fn a_certain_violation_stays_one_while_the_suite_is_held_up() {
    const ONCE: &str = "no-repeats: {of: c}";
    let again = format!("{MADE}; c CREATED; pass 10s; held-up 2s; end");
    comes_to(ONCE, &again, Ok("CREATED, CREATED"));
}
