//! Which events come, in which order, and how often.

use expect_test::expect;

use super::{case, check};
use crate::oracle::expectations::check as broken;
use crate::oracle::script::{history, render};
use crate::outcome::Level;

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
