//! What is told of the order of events, and of events that come twice: INV-01 and INV-02.

use expect_test::expect;

use super::{check, then};

// INV-01

#[test]
fn a_whole_life_breaks_nothing() {
    then(
        "c start; c STARTED; c stop; c STOPPED exit=137; c remove; c DELETED; end",
        expect![],
    );
}

#[test]
fn stopped_before_started_is_out_of_order() {
    then(
        "c start; c STOPPED; c STARTED; end",
        expect![[r#"
        INV-01 at #8 #9: c (c.0.beef): expected STARTED before STOPPED: STARTED after STOPPED
    "#]],
    );
}

#[test]
fn stopped_without_started_is_in_order() {
    then("c STOPPED; c remove; c DELETED; end", expect![]);
}

#[test]
fn created_after_started_is_out_of_order() {
    check(
        "pod run; c create; c STARTED; c CREATED",
        expect![[r#"
        INV-01 at #5 #6: c (c.0.beef): expected CREATED before STARTED: CREATED after STARTED
    "#]],
    );
}

#[test]
fn a_container_may_be_known_by_started_alone() {
    check("pod run; c create; c STARTED", expect![]);
}

#[test]
fn nothing_may_follow_deleted() {
    then(
        "c DELETED; c STOPPED",
        expect![[r#"
        INV-01 at #6 #7: c (c.0.beef): expected STOPPED before DELETED: STOPPED after DELETED
    "#]],
    );
}

#[test]
fn nothing_need_follow_deleted() {
    then("c DELETED", expect![]);
}

#[test]
fn an_unknown_type_does_not_hide_a_wrong_order() {
    then(
        "c STOPPED; c TYPE=9; c STARTED",
        expect![[r#"
        INV-01 at #6 #8: c (c.0.beef): expected STARTED before STOPPED: STARTED after STOPPED
        INV-03 at #7: c (c.0.beef): expected a type from 0 to 3: type 9
    "#]],
    );
}

#[test]
fn interleaved_containers_are_ordered_each_by_itself() {
    check(
        "pod run; c create; d create; c CREATED; c STARTED; d CREATED; c STOPPED; d STARTED",
        expect![],
    );
}

#[test]
fn a_wrong_order_is_found_among_interleaved_containers() {
    check(
        "pod run; c create; d create; d CREATED; c STARTED; d STARTED; c CREATED",
        expect![[r#"
            INV-01 at #8 #10: c (c.0.beef): expected CREATED before STARTED: CREATED after STARTED
        "#]],
    );
}

#[test]
fn a_container_made_again_begins_anew() {
    then(
        "c STARTED; c STOPPED; c DELETED; c create; c CREATED; c STARTED",
        expect![],
    );
}

#[test]
fn a_late_event_of_an_earlier_container_of_the_name_is_found() {
    then(
        "c STOPPED; c DELETED; c create; c CREATED; c#0 STARTED",
        expect![[r#"
        INV-01 at #7 #11: c (c.0.beef): expected STARTED before DELETED: STARTED after DELETED
    "#]],
    );
}

#[test]
fn a_sandbox_is_held_to_the_order_too() {
    check(
        "pod run; pod STARTED; pod CREATED",
        expect![[r#"
        INV-01 at #3 #4: pod (pod.0.beef): expected CREATED before STARTED: CREATED after STARTED
    "#]],
    );
}

#[test]
fn an_event_may_come_before_its_call_returns() {
    check(
        "pod run begins; pod CREATED; pod run returns; \
         c create begins; c CREATED; c create returns; c start begins; c STARTED; c start returns",
        expect![],
    );
}

#[test]
fn the_teardown_is_judged_too() {
    then(
        "end; c DELETED; c STOPPED",
        expect![[r#"
        INV-01 at #7 #8: c (c.0.beef): expected STOPPED before DELETED: STOPPED after DELETED
    "#]],
    );
}

// INV-02

#[test]
fn an_event_that_comes_twice_is_a_repetition() {
    then(
        "c STOPPED; c STOPPED",
        expect![[r#"
        INV-02 at #6 #7: c (c.0.beef): expected one STOPPED event: STOPPED again after 1ms
    "#]],
    );
}

#[test]
fn a_repetition_across_other_containers_events_is_found() {
    check(
        "pod run; c create; d create; c CREATED; d CREATED; c CREATED",
        expect![[r#"
            INV-02 at #7 #9: c (c.0.beef): expected one CREATED event: CREATED again after 2ms
        "#]],
    );
}

#[test]
fn the_same_event_of_two_containers_is_no_repetition() {
    check(
        "pod run; c create; d create; c CREATED; d CREATED",
        expect![],
    );
}

#[test]
fn a_replay_to_a_new_subscriber_is_no_repetition() {
    then(
        "c STARTED; resubscribe; c CREATED; c STARTED; c STOPPED",
        expect![],
    );
}

#[test]
fn a_new_subscriber_can_be_told_twice() {
    then(
        "resubscribe; c CREATED; c CREATED",
        expect![[r#"
            INV-02 at #8 #9: c (c.0.beef): expected one CREATED event: CREATED again after 1ms
        "#]],
    );
}

#[test]
fn an_event_after_deleted_is_out_of_order_and_repeated() {
    then(
        "c STOPPED; c DELETED; c STOPPED",
        expect![[r#"
        INV-01 at #7 #8: c (c.0.beef): expected STOPPED before DELETED: STOPPED after DELETED
        INV-02 at #6 #8: c (c.0.beef): expected one STOPPED event: STOPPED again after 2ms
    "#]],
    );
}
