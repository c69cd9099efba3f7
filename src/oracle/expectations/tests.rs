//! For each check, histories on which it holds, is broken, or is still waiting. Long, because a
//! table of histories reads best when it is whole.

#![expect(
    clippy::needless_pass_by_value,
    clippy::needless_raw_string_hashes,
    reason = "this is how expect-test is used"
)]

use expect_test::{Expect, expect};
use serde_yaml::with::singleton_map_recursive;

use super::{check as broken, pending};
use crate::case::{Case, Check, Expectation, Tier};
use crate::oracle::script::{history, render};
use crate::outcome::{Level, Levels};

pub(in crate::oracle) fn case(level: Level, check: &str) -> Case {
    let yaml = serde_yaml::Deserializer::from_str(check);
    let check: Check = singleton_map_recursive::deserialize(yaml).expect("a check");
    Case {
        name: "order::test".to_owned(),
        id: "ORD-01".to_owned(),
        title: "A test.".to_owned(),
        why: String::new(),
        sources: Vec::new(),
        levels: Levels {
            cache: Some(level),
            hint: Some(level),
            observer: None,
        },
        requirements: Vec::new(),
        tier: Tier::default(),
        tags: Vec::new(),
        needs: Vec::new(),
        exclusive: false,
        silent: false,
        provokes: None,
        steps: Vec::new(),
        expect: vec![Expectation { level, check }],
        definition: String::new(),
    }
}

/// What a check says of a script: what it waits for, and what is broken if nothing more comes.
#[track_caller]
fn says(check: &str, script: &str) -> String {
    let (case, history) = (case(Level::Must, check), history(script));
    let waits = pending(&case, &history).map(|awaited| format!("waits for {awaited}\n"));
    let broken = render(&broken(&case, &history));
    let said = waits.unwrap_or_default() + &broken;
    if said.is_empty() {
        "holds".to_owned()
    } else {
        said
    }
}

#[track_caller]
pub(in crate::oracle) fn check(check: &str, script: &str, expect: Expect) {
    expect.assert_eq(&says(check, script));
}

const LIFE: &str = "events: {of: c, exactly: [created, started, stopped, deleted]}";

#[test]
fn exactly_these_events() {
    check(
        LIFE,
        "pod run; c create; c CREATED; c STARTED; c STOPPED; c DELETED; end",
        expect!["holds"],
    );
}

#[test]
fn exactly_these_events_and_no_other_order() {
    check(
        LIFE,
        "pod run; c create; c CREATED; c STARTED; c DELETED; c STOPPED; end",
        expect![[r#"
            ORD-01 at #5 #6 #7 #8: c (c.0.beef): expected CREATED, STARTED, STOPPED, DELETED: CREATED, STARTED, DELETED, STOPPED
        "#]],
    );
}

#[test]
fn exactly_these_events_and_no_more() {
    check(
        LIFE,
        "pod run; c create; c CREATED; c STARTED; c STOPPED; c DELETED; c DELETED; end",
        expect![[r#"
            ORD-01 at #5 #6 #7 #8 #9: c (c.0.beef): expected CREATED, STARTED, STOPPED, DELETED: CREATED, STARTED, STOPPED, DELETED, DELETED
        "#]],
    );
}

#[test]
fn exactly_these_events_and_no_fewer() {
    check(
        LIFE,
        "pod run; c create; c CREATED; c STARTED; c STOPPED; end",
        expect![[r#"
            waits for DELETED of c
            ORD-01 at #3 #4 #5 #6 #7: c (c.0.beef): expected DELETED: it has not come
        "#]],
    );
}

#[test]
fn exactly_these_events_without_one_in_the_middle() {
    check(
        LIFE,
        "pod run; c create; c CREATED; c STOPPED; c DELETED; end",
        expect![[r#"
            ORD-01 at #5 #6 #7: c (c.0.beef): expected CREATED, STARTED, STOPPED, DELETED: CREATED, STOPPED, DELETED
        "#]],
    );
}

#[test]
fn exactly_no_event() {
    check(
        "events: {of: c, exactly: []}",
        "pod run; c create; end",
        expect!["holds"],
    );
    check(
        "events: {of: c, exactly: []}",
        "pod run; c create; c CREATED; end",
        expect![[r#"
            ORD-01 at #5: c (c.0.beef): expected no event: CREATED
        "#]],
    );
}

#[test]
fn events_of_the_teardown_do_not_count() {
    check(
        LIFE,
        "pod run; c create; c CREATED; c STARTED; c STOPPED; end; c DELETED",
        expect![[r#"
            waits for DELETED of c
            ORD-01 at #3 #4 #5 #6 #7 #9: c (c.0.beef): expected DELETED: it has not come
        "#]],
    );
}

#[test]
fn a_replay_to_a_new_subscriber_is_no_second_event() {
    check(
        LIFE,
        "pod run; c create; c CREATED; c STARTED; resubscribe; \
         c CREATED at=-4ms; c STARTED at=-4ms; c STOPPED; c DELETED; end",
        expect!["holds"],
    );
}

#[test]
fn a_second_event_of_the_same_time_on_the_same_stream_is_no_replay() {
    check(
        LIFE,
        "pod run; c create; c CREATED; c STARTED; c STOPPED; c DELETED; c DELETED at=-1ms; end",
        expect![[r#"
            ORD-01 at #5 #6 #7 #8 #9: c (c.0.beef): expected CREATED, STARTED, STOPPED, DELETED: CREATED, STARTED, STOPPED, DELETED, DELETED
        "#]],
    );
}

#[test]
fn a_second_event_on_a_new_stream_is_no_replay() {
    check(
        LIFE,
        "pod run; c create; c CREATED; c STARTED; resubscribe; c STARTED; c STOPPED; c DELETED; end",
        expect![[r#"
            ORD-01 at #5 #6 #9 #10 #11: c (c.0.beef): expected CREATED, STARTED, STOPPED, DELETED: CREATED, STARTED, STARTED, STOPPED, DELETED
        "#]],
    );
}

#[test]
fn events_before_their_call_returns_count() {
    check(
        "events: {of: c, exactly: [created, started]}",
        "pod run; c create begins; c CREATED; c STARTED no-sandbox; c create returns; end",
        expect!["holds"],
    );
}

#[test]
fn each_of_a_name_is_checked() {
    check(
        "events: {of: c, exactly: [created, started]}",
        "pod run; c create; c CREATED; c STARTED; c create; c CREATED; end",
        expect![[r#"
            waits for STARTED of c#1
            ORD-01 at #7 #8 #9: c#1 (c.1.beef): expected STARTED: it has not come
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
        "sandbox-status: {of: c}",
        "own-status: {of: c}",
        "timing: {of: c, event: stopped, after: stop-called, at-most: 1s}",
        "order: {first: {of: c, event: stopped}, then: {of: d, event: stopped}}",
        "order: {first: {of: d, event: stopped}, then: {of: c, event: stopped}}",
        "announced: {of: c}",
    ] {
        let history = history("pod run; d create; d CREATED; d STOPPED; c create fails; end");
        let found = render(&broken(&case(Level::Must, check_of_c), &history));
        assert!(
            found.contains("the case made none"),
            "{check_of_c}: {found}"
        );
    }
}

const INCLUDES: &str = "includes: {of: c, in-order: [started, stopped]}";

#[test]
fn events_among_others() {
    check(
        INCLUDES,
        "pod run; c create; c CREATED; c STARTED; c TYPE=9; c STOPPED; c DELETED; end",
        expect!["holds"],
    );
}

#[test]
fn events_among_others_out_of_order() {
    check(
        INCLUDES,
        "pod run; c create; c STOPPED; c STARTED; end",
        expect![[r#"
            ORD-01 at #5 #6: c (c.0.beef): expected STARTED, STOPPED, in this order: STOPPED, STARTED
        "#]],
    );
}

#[test]
fn events_among_others_of_which_one_is_missing() {
    check(
        INCLUDES,
        "pod run; c create; c STOPPED; c DELETED; end",
        expect![[r#"
            waits for STARTED of c
            ORD-01 at #3 #4 #5 #6: c (c.0.beef): expected STARTED: it has not come
        "#]],
    );
}

#[test]
fn never_such_an_event() {
    let never = "never: {of: c, event: deleted}";
    check(
        never,
        "pod run; c create; c STOPPED; end; c DELETED",
        expect!["holds"],
    );
    check(
        never,
        "pod run; c create; c STOPPED; c DELETED; end",
        expect![[r#"
            ORD-01 at #5 #6: c (c.0.beef): expected no DELETED: STOPPED, DELETED
        "#]],
    );
}

#[test]
fn no_repeats() {
    let no_repeats = "no-repeats: {of: pod}";
    check(
        no_repeats,
        "pod run; pod STARTED; pod STOPPED; end",
        expect!["holds"],
    );
    check(
        no_repeats,
        "pod run; pod STOPPED; pod STARTED; pod STOPPED; end",
        expect![[r#"
            ORD-01 at #3 #4 #5: pod (pod.0.beef): expected STOPPED once: STOPPED, STARTED, STOPPED
        "#]],
    );
}

#[test]
fn a_status_with_this_exit_code() {
    let is = "status: {of: c, event: stopped, exit-code: {is: 137}}";
    check(
        is,
        "pod run; c create; c STOPPED exit=137; end",
        expect!["holds"],
    );
    check(
        is,
        "pod run; c create; c STOPPED exit=0; end",
        expect![[r#"
        ORD-01 at #5: c (c.0.beef): expected exit code 137 in STOPPED: exit code 0, reason `Completed`
    "#]],
    );
    check(
        is,
        "pod run; c create; c STARTED; end",
        expect![[r#"
        waits for STOPPED of c
        ORD-01 at #3 #4 #5: c (c.0.beef): expected STOPPED: it has not come
    "#]],
    );
    check(
        is,
        "pod run; c create; c STOPPED missing; end",
        expect![[r#"
        ORD-01 at #5: c (c.0.beef): expected the container's own status in STOPPED: it is not there
    "#]],
    );
}

#[test]
fn a_status_with_any_other_exit_code() {
    let not = "status: {of: c, event: stopped, exit-code: {not: 137}}";
    check(
        not,
        "pod run; c create; c STOPPED exit=128; end",
        expect!["holds"],
    );
    check(
        not,
        "pod run; c create; c STOPPED exit=137; end",
        expect![[r#"
        ORD-01 at #5: c (c.0.beef): expected exit code any but 137 in STOPPED: exit code 137, reason `Error`
    "#]],
    );
}

#[test]
fn a_status_with_the_declared_exit_code() {
    let declared = "status: {of: c, event: stopped, exit-code: declared}";
    check(
        declared,
        "pod run; c create exit=42; c STOPPED exit=42; end",
        expect!["holds"],
    );
    check(
        declared,
        "pod run; c create exit=42; c STOPPED exit=255; end",
        expect![[r#"
            ORD-01 at #5: c (c.0.beef): expected exit code 42 in STOPPED: exit code 255, reason `Error`
        "#]],
    );
}

#[test]
fn a_status_with_one_of_these_reasons() {
    let reason = "status: {of: c, event: stopped, reason: [OOMKilled, Killed]}";
    check(
        reason,
        "pod run; c create; c STOPPED exit=137 reason=Killed; end",
        expect!["holds"],
    );
    check(
        reason,
        "pod run; c create; c STOPPED exit=137; end",
        expect![[r#"
            ORD-01 at #5: c (c.0.beef): expected reason `OOMKilled` or `Killed` in STOPPED: reason `Error`, exit code 137
        "#]],
    );
}

#[test]
fn a_reason_is_case_sensitive() {
    check(
        "status: {of: c, event: stopped, reason: [OOMKilled]}",
        "pod run; c create; c STOPPED exit=137 reason=OomKilled; end",
        expect![[r#"
            ORD-01 at #5: c (c.0.beef): expected reason `OOMKilled` in STOPPED: reason `OomKilled`, exit code 137
        "#]],
    );
}

#[test]
fn sandbox_status() {
    let sandbox_status = "sandbox-status: {of: c}";
    check(
        sandbox_status,
        "pod run; c create; c CREATED; end",
        expect!["holds"],
    );
    check(
        sandbox_status,
        "pod run; c create; c CREATED no-sandbox; end",
        expect![[r#"
            ORD-01 at #5: c (c.0.beef): expected a sandbox status with the UID `uid-of-pod` in CREATED: none
        "#]],
    );
    check(
        sandbox_status,
        "pod run; c create; c CREATED no-metadata; end",
        expect![[r#"
            ORD-01 at #5: c (c.0.beef): expected a sandbox status with the UID `uid-of-pod` in CREATED: one without metadata
        "#]],
    );
    check(
        sandbox_status,
        "pod run; c create; c CREATED uid=x; end",
        expect![[r#"
            ORD-01 at #5: c (c.0.beef): expected a sandbox status with the UID `uid-of-pod` in CREATED: the UID `x`
        "#]],
    );
    check(
        sandbox_status,
        "pod run; c create; c CREATED; end; c DELETED uid=x",
        expect!["holds"],
    );
}

#[test]
fn sandbox_status_of_a_sandbox() {
    let sandbox_status = "sandbox-status: {of: pod}";
    check(
        sandbox_status,
        "pod run; pod STARTED; end",
        expect!["holds"],
    );
    check(
        sandbox_status,
        "pod run; pod STARTED; pod DELETED no-sandbox; end",
        expect![[r#"
            ORD-01 at #4: pod (pod.0.beef): expected a sandbox status with the UID `uid-of-pod` in DELETED: none
        "#]],
    );
}

#[test]
fn own_status() {
    let own_status = "own-status: {of: c}";
    check(
        own_status,
        "pod run; c create; c CREATED; c STOPPED; c DELETED; end",
        expect!["holds"],
    );
    check(
        own_status,
        "pod run; c create; c CREATED missing; end",
        expect![[r#"
            ORD-01 at #5: c (c.0.beef): expected 1 status of the container in CREATED: 0, among 0 statuses
        "#]],
    );
    check(
        own_status,
        "pod run; c create; c CREATED twice; end",
        expect![[r#"
            ORD-01 at #5: c (c.0.beef): expected 1 status of the container in CREATED: 2, among 2 statuses
        "#]],
    );
    check(
        own_status,
        "pod run; c create; c CREATED; c DELETED present; end",
        expect![[r#"
            ORD-01 at #6: c (c.0.beef): expected 0 status of the container in DELETED: 1, among 1 statuses
        "#]],
    );
}

#[test]
fn own_status_beside_others() {
    check(
        "own-status: {of: c}",
        "pod run; d create; d CREATED; c create; c CREATED; c DELETED; end",
        expect!["holds"],
    );
}

const BETWEEN: &str =
    "timing: {of: c, event: stopped, after: stop-called, at-least: 2s, at-most: 12s}";

#[test]
fn an_event_in_time() {
    for after in ["1999ms", "11999ms"] {
        let script = format!("pod run; c create; c stop begins; pass {after}; c STOPPED; end");
        check(BETWEEN, &script, expect!["holds"]);
    }
}

#[test]
fn an_event_too_early() {
    check(
        BETWEEN,
        "pod run; c create; c stop begins; pass 1998ms; c STOPPED; c stop returns; end",
        expect![[r#"
            ORD-01 at #5 #6: c (c.0.beef): expected STOPPED not before 2s have passed: 1.999s after StopContainer was called
        "#]],
    );
}

#[test]
fn an_event_too_late() {
    check(
        BETWEEN,
        "pod run; c create; c stop begins; pass 12s; c STOPPED; c stop returns; end",
        expect![[r#"
            ORD-01 at #5 #6: c (c.0.beef): expected STOPPED within 12s: 12.001s after StopContainer was called
        "#]],
    );
}

#[test]
fn an_event_before_its_call_is_too_early_for_any_bound() {
    let not_before = "timing: {of: c, event: stopped, after: stop-called, at-least: 0s}";
    check(
        not_before,
        "pod run; c create; c STOPPED; c stop; end",
        expect![[r#"
            ORD-01 at #5 #6: c (c.0.beef): expected STOPPED not before 0ns have passed: 1ms before StopContainer was called
        "#]],
    );
    check(
        not_before,
        "pod run; c create; c stop begins; c STOPPED; end",
        expect!["holds"],
    );
}

#[test]
fn an_event_before_its_call_is_not_too_late() {
    check(
        "timing: {of: c, event: stopped, after: stop-returned, at-most: 0s}",
        "pod run; c create; c stop begins; c STOPPED; c stop returns; end",
        expect!["holds"],
    );
}

#[test]
fn an_event_that_does_not_come_has_no_time() {
    check(
        BETWEEN,
        "pod run; c create; c stop; end",
        expect![[r#"
        waits for STOPPED of c
        ORD-01 at #3 #4 #5 #6: c (c.0.beef): expected STOPPED: it has not come
    "#]],
    );
}

#[test]
fn the_latest_such_call_on_the_same_subject_counts() {
    check(
        "timing: {of: c, event: stopped, after: stop-called, at-most: 1s}",
        "pod run; c create; d create; c stop; pass 2s; c stop; c STOPPED; d stop; end",
        expect!["holds"],
    );
}

#[test]
fn a_call_on_another_subject_or_in_the_teardown_does_not_count() {
    check(
        "timing: {of: c, event: stopped, after: stop-called, at-least: 1s}",
        "pod run; c create; d create; c stop begins; pass 1s; c STOPPED; d stop; end; c stop",
        expect!["holds"],
    );
}

#[test]
fn each_edge_is_found() {
    check(
        "timing: {of: pod, event: started, after: sandbox-returned, at-most: 50ms}",
        "pod run; pass 50ms; pod STARTED; end",
        expect![[r#"
            ORD-01 at #2 #3: pod (pod.0.beef): expected STARTED within 50ms: 51ms after RunPodSandbox returned
        "#]],
    );
    check(
        "timing: {of: c, event: stopped, after: start-returned, at-most: 2s}",
        "pod run; c create; c start; pass 2s; c STOPPED; end",
        expect![[r#"
            ORD-01 at #6 #7: c (c.0.beef): expected STOPPED within 2s: 2.001s after StartContainer returned
        "#]],
    );
    check(
        "timing: {of: pod, event: stopped, after: stop-sandbox-called, at-most: 1s}",
        "pod run; pod stop begins; pass 1s; pod STOPPED; end",
        expect![[r#"
            ORD-01 at #3 #4: pod (pod.0.beef): expected STOPPED within 1s: 1.001s after StopPodSandbox was called
        "#]],
    );
}

const ORDER: &str = "order: {first: {of: c, event: stopped}, then: {of: pod, event: stopped}}";

#[test]
fn one_event_before_another() {
    check(
        ORDER,
        "pod run; c create; c STOPPED; pod STOPPED; end",
        expect!["holds"],
    );
    check(
        ORDER,
        "pod run; c create; pod STOPPED; c STOPPED; end",
        expect![[r#"
            ORD-01 at #5 #6: c (c.0.beef): expected STOPPED before STOPPED of pod: it came later
        "#]],
    );
}

#[test]
fn one_event_before_another_that_has_not_come() {
    check(
        ORDER,
        "pod run; c create; c STOPPED; end",
        expect![[r#"
        waits for STOPPED of pod after that of c
        ORD-01 at #5: c (c.0.beef): expected STOPPED of pod after that: it has not come
    "#]],
    );
    check(
        ORDER,
        "pod run; c create; pod STOPPED; end",
        expect![[r#"
        waits for STOPPED of c
        ORD-01 at #3 #4: c (c.0.beef): expected STOPPED: it has not come
    "#]],
    );
}

#[test]
fn each_event_of_a_name_before_another() {
    check(
        ORDER,
        "pod run; c create; c STOPPED; c create; pod STOPPED; c STOPPED; end",
        expect![[r#"
            ORD-01 at #8 #9: c#1 (c.1.beef): expected STOPPED before STOPPED of pod: it came later
        "#]],
    );
}

const ANNOUNCED: &str = "announced: {of: c}";

#[test]
fn an_exit_that_the_relist_shows_is_announced() {
    check(
        ANNOUNCED,
        "pod run; c create; pod relist c=exited; c STOPPED; end",
        expect!["holds"],
    );
    check(
        ANNOUNCED,
        "pod run; c create; c STARTED; pod relist c=exited; end",
        expect![[r#"
            waits for STOPPED, for the relist shows it EXITED of c
            ORD-01 at #3 #4 #5 #6 #7: c (c.0.beef): expected STOPPED, for the relist shows it EXITED: it has not come
        "#]],
    );
}

#[test]
fn an_absence_that_the_relist_shows_is_announced() {
    check(
        ANNOUNCED,
        "pod run; c create; pod relist; c DELETED; end",
        expect!["holds"],
    );
    check(
        ANNOUNCED,
        "pod run; c create; pod relist d=exited; c STOPPED; end",
        expect![[r#"
            waits for DELETED, for the relist does not show it of c
            ORD-01 at #3 #4 #5 #6 #7: c (c.0.beef): expected DELETED, for the relist does not show it: it has not come
        "#]],
    );
}

#[test]
fn a_start_that_the_relist_shows_is_announced() {
    check(
        ANNOUNCED,
        "pod run; c create; pod relist c=running; c STARTED; end",
        expect!["holds"],
    );
    check(
        ANNOUNCED,
        "pod run; c create; pod relist c=running; c CREATED; end",
        expect![[r#"
            waits for STARTED, for the relist shows it RUNNING of c
            ORD-01 at #3 #4 #5 #6 #7: c (c.0.beef): expected STARTED, for the relist shows it RUNNING: it has not come
        "#]],
    );
    check(
        ANNOUNCED,
        "pod run; c create; pod relist c=created; c STARTED; end",
        expect![[r#"
            waits for CREATED, for the relist shows it CREATED of c
            ORD-01 at #3 #4 #5 #6 #7: c (c.0.beef): expected CREATED, for the relist shows it CREATED: it has not come
        "#]],
    );
}

#[test]
fn every_relist_counts() {
    check(
        ANNOUNCED,
        "pod run; c create; pod relist c=running; pod relist c=exited; c STOPPED; end",
        expect![[r#"
            waits for STARTED, for the relist shows it RUNNING of c
            ORD-01 at #3 #4 #5 #6 #9: c (c.0.beef): expected STARTED, for the relist shows it RUNNING: it has not come
        "#]],
    );
}

#[test]
fn a_relist_of_another_sandbox_or_in_vain_or_in_the_teardown_does_not_count() {
    check(
        ANNOUNCED,
        "pod run; c create; pod relist c=exited; c STOPPED; pod relist fails; \
         pod2 run; pod2 relist; end; pod relist",
        expect!["holds"],
    );
}

#[test]
fn a_relist_before_the_container_was_there_says_nothing_of_it() {
    check(
        ANNOUNCED,
        "pod run; pod relist; c create; c CREATED; end",
        expect!["holds"],
    );
}
