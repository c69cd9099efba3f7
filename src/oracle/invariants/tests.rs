//! For each invariant, histories that break it and their nearest neighbours that do not. Long,
//! because a table of histories reads best when it is whole.

#![expect(
    clippy::needless_pass_by_value,
    clippy::needless_raw_string_hashes,
    reason = "this is how expect-test is used"
)]

use expect_test::{Expect, expect};

use super::invariants;
use crate::oracle::script::{history, render};

/// A container whose events do not matter to the test, up to its creation.
const MADE: &str = "pod run; c create; c CREATED";

#[track_caller]
fn check(script: &str, expect: Expect) {
    expect.assert_eq(&render(&invariants(&history(script))));
}

/// As [`check`], after a container has been made in #1 to #5.
#[track_caller]
fn then(script: &str, expect: Expect) {
    check(&format!("{MADE}; {script}"), expect);
}

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

// INV-03

#[test]
fn a_type_that_the_cri_does_not_define_is_told() {
    then(
        "c TYPE=9",
        expect![[r#"
        INV-03 at #6: c (c.0.beef): expected a type from 0 to 3: type 9
    "#]],
    );
}

#[test]
fn an_empty_id_is_told() {
    then(
        "c STARTED id=",
        expect![[r#"
        INV-03 at #6: : expected a container id: an empty one
    "#]],
    );
}

#[test]
fn a_shortened_id_is_told() {
    then(
        "c STARTED id=c.0",
        expect![[r#"
        INV-03 at #6: c.0: expected the whole id c.0.beef: the shortened id c.0
    "#]],
    );
}

#[test]
fn an_id_that_is_not_the_beginning_of_another_may_be_anothers() {
    then(
        "c STARTED id=d.0",
        expect![[r#"
        INV-10 at #6: d.0: expected the id of something that a call has made or a list has shown: STARTED of an id that nothing else tells of
    "#]],
    );
}

// INV-04

#[test]
fn a_time_in_seconds_is_recognized() {
    then(
        "c STARTED at=s",
        expect![[r#"
        INV-04 at #6: c (c.0.beef): expected created_at from 1699999999001000000 to 1700000001007000000: 1700000000, which looks like seconds
        INV-05 at #5 #6: c (c.0.beef): expected created_at of 1700000000006000000 or later: 1700000000, which is 1699999998306000000 ns earlier
    "#]],
    );
}

#[test]
fn a_time_in_milliseconds_is_recognized() {
    then(
        "c STARTED at=ms",
        expect![[r#"
        INV-04 at #6: c (c.0.beef): expected created_at from 1699999999001000000 to 1700000001007000000: 1700000000007, which looks like milliseconds
        INV-05 at #5 #6: c (c.0.beef): expected created_at of 1700000000006000000 or later: 1700000000007, which is 1699998300005999993 ns earlier
    "#]],
    );
}

#[test]
fn a_time_in_microseconds_is_recognized() {
    then(
        "c STARTED at=us",
        expect![[r#"
        INV-04 at #6: c (c.0.beef): expected created_at from 1699999999001000000 to 1700000001007000000: 1700000000007000, which looks like microseconds
        INV-05 at #5 #6: c (c.0.beef): expected created_at of 1700000000006000000 or later: 1700000000007000, which is 1698300000005993000 ns earlier
    "#]],
    );
}

#[test]
fn a_time_that_is_not_set_is_told() {
    check(
        "pod run; c create; c CREATED at=0",
        expect![[r#"
        INV-04 at #5: c (c.0.beef): expected created_at from 1699999999001000000 to 1700000001006000000: 0, which means not set
    "#]],
    );
}

#[test]
fn a_time_to_come_is_told() {
    then(
        "c STARTED at=+1001ms",
        expect![[r#"
        INV-04 at #6: c (c.0.beef): expected created_at from 1699999999001000000 to 1700000001007000000: 1700000001008000000
    "#]],
    );
}

#[test]
fn clocks_may_differ_by_a_second() {
    then("c STARTED at=+1s", expect![]);
}

#[test]
fn a_time_long_before_the_case_is_told() {
    check(
        "pod run; c create; c CREATED at=-1100ms",
        expect![[r#"
        INV-04 at #5: c (c.0.beef): expected created_at from 1699999999001000000 to 1700000001006000000: 1699999998906000000
    "#]],
    );
}

#[test]
fn a_time_a_second_before_the_case_is_accepted() {
    check("pod run; c create; c CREATED at=-1005ms", expect![]);
}

#[test]
fn the_most_absurd_times_are_told() {
    check(
        "pod run; c create; c CREATED at=last; c STARTED at=first",
        expect![[r#"
        INV-04 at #5: c (c.0.beef): expected created_at from 1699999999001000000 to 1700000001006000000: 9223372036854775807
        INV-05 at #5 #6: c (c.0.beef): expected created_at of 9223372036854775807 or later: -9223372036854775808, which is 18446744073709551615 ns earlier
    "#]],
    );
}

// INV-05

#[test]
fn created_at_that_goes_back_is_told() {
    then(
        "c STARTED at=-2ms",
        expect![[r#"
        INV-05 at #5 #6: c (c.0.beef): expected created_at of 1700000000006000000 or later: 1700000000005000000, which is 1000000 ns earlier
    "#]],
    );
}

#[test]
fn created_at_that_stays_is_accepted() {
    then("c STARTED at=-1ms", expect![]);
}

#[test]
fn created_at_of_two_containers_is_for_another_rule() {
    then(
        "d create; d CREATED at=-10ms",
        expect![[r#"
            INV-23 at #5 #8: pod (pod.0.beef): expected CREATED of d, which came after CREATED of c, to be made after it, too, and not 7000000 ns before: its created_at is earlier
        "#]],
    );
}

#[test]
fn created_at_goes_back_in_a_replay() {
    then(
        "c STARTED; resubscribe; c CREATED at=-4ms; c STARTED at=-3ms",
        expect![],
    );
}

// INV-06

#[test]
fn an_event_without_a_sandbox_is_told() {
    then(
        "c STARTED no-sandbox",
        expect![[r#"
        INV-06 at #6: c (c.0.beef): expected pod_sandbox_status with the UID `uid-of-pod`: no pod_sandbox_status in STARTED
    "#]],
    );
}

#[test]
fn a_sandbox_without_metadata_is_told() {
    then(
        "c STARTED no-metadata",
        expect![[r#"
        INV-06 at #6: c (c.0.beef): expected pod_sandbox_status with the UID `uid-of-pod`: no metadata in the pod_sandbox_status of STARTED
    "#]],
    );
}

#[test]
fn an_empty_uid_is_told() {
    then(
        "c STARTED uid=",
        expect![[r#"
        INV-06 at #6: c (c.0.beef): expected pod_sandbox_status with the UID `uid-of-pod`: the UID `` in STARTED
    "#]],
    );
}

#[test]
fn another_uid_is_told() {
    then(
        "c STARTED uid=x",
        expect![[r#"
        INV-06 at #6: c (c.0.beef): expected pod_sandbox_status with the UID `uid-of-pod`: the UID `x` in STARTED
    "#]],
    );
}

#[test]
fn the_uid_of_the_pod_is_accepted() {
    then("c STARTED uid=uid-of-pod", expect![]);
}

#[test]
fn the_uid_of_another_pod_of_the_case_is_told() {
    check(
        "pod run; pod2 run; c create in=pod; c CREATED uid=uid-of-pod2",
        expect![[r#"
            INV-06 at #7: c (c.0.beef): expected pod_sandbox_status with the UID `uid-of-pod`: the UID `uid-of-pod2` in CREATED
        "#]],
    );
}

#[test]
fn a_sandboxs_own_event_needs_the_uid_too() {
    check(
        "pod run; pod STARTED; pod STOPPED no-sandbox",
        expect![[r#"
        INV-06 at #4: pod (pod.0.beef): expected pod_sandbox_status with the UID `uid-of-pod`: no pod_sandbox_status in STOPPED
    "#]],
    );
}

#[test]
fn an_event_without_a_sandbox_before_its_call_returns_is_told() {
    check(
        "pod run; c create begins; c CREATED no-sandbox; c create returns",
        expect![[r#"
            INV-06 at #4: c (c.0.beef): expected pod_sandbox_status with the UID `uid-of-pod`: no pod_sandbox_status in CREATED
        "#]],
    );
}

#[test]
fn an_event_with_another_uid_before_its_call_returns_is_told() {
    check(
        "pod run; c create begins; c CREATED uid=x; c create returns",
        expect![[r#"
            INV-06 at #4: c (c.0.beef): expected pod_sandbox_status with the UID `uid-of-pod`: the UID `x` in CREATED
        "#]],
    );
}

#[test]
fn an_event_of_a_foreign_container_is_nobodys() {
    then(
        "foreign CREATED; foreign CREATED no-sandbox; foreign CREATED uid=",
        expect![],
    );
}

// INV-07

#[test]
fn a_status_without_an_id_is_told() {
    check(
        "pod run; c create; c CREATED status-lacks=id",
        expect![[r#"
            INV-07 at #5: c (c.0.beef): expected an id, metadata, an image and created_at in each status: status 0 of CREATED has no id
            INV-14 at #5: c (c.0.beef): expected one status of it among the 1 in CREATED: it is missing from CREATED
        "#]],
    );
}

#[test]
fn a_status_without_metadata_is_told() {
    check(
        "pod run; c create; c CREATED status-lacks=metadata",
        expect![[r#"
        INV-07 at #5: c (c.0.beef): expected an id, metadata, an image and created_at in each status: status 0 of CREATED has no metadata
    "#]],
    );
}

#[test]
fn a_status_without_an_image_is_told() {
    check(
        "pod run; c create; c CREATED status-lacks=image",
        expect![[r#"
            INV-07 at #5: c (c.0.beef): expected an id, metadata, an image and created_at in each status: status 0 of CREATED has no image
            INV-13 at #5: c (c.0.beef): expected a kubelet takes the event: the kubelet panics: the status of container c.0.beef has no image, and the kubelet dereferences it
        "#]],
    );
}

#[test]
fn a_status_without_a_time_is_told() {
    check(
        "pod run; c create; c CREATED status-lacks=time",
        expect![[r#"
        INV-07 at #5: c (c.0.beef): expected an id, metadata, an image and created_at in each status: status 0 of CREATED has no created_at
    "#]],
    );
}

#[test]
fn no_status_at_all_is_no_empty_one() {
    check(
        "pod run; c create; c CREATED missing",
        expect![[r#"
            INV-14 at #5: c (c.0.beef): expected one status of it among the 0 in CREATED: it is missing from CREATED
        "#]],
    );
}

// INV-08

#[test]
fn stopped_with_a_running_container_is_too_old() {
    then(
        "c STOPPED state=running",
        expect![[r#"
        INV-08 at #6: c (c.0.beef): expected EXITED in STOPPED: RUNNING in STOPPED
    "#]],
    );
}

#[test]
fn started_with_a_created_container_is_too_old() {
    then(
        "c STARTED state=created",
        expect![[r#"
        INV-08 at #6: c (c.0.beef): expected RUNNING or EXITED in STARTED: CREATED in STARTED
    "#]],
    );
}

#[test]
fn started_with_an_exited_container_is_newer_and_accepted() {
    then("c STARTED state=exited", expect![]);
}

#[test]
fn created_with_an_exited_container_is_newer_and_accepted() {
    check("pod run; c create; c CREATED state=exited", expect![]);
}

#[test]
fn created_with_an_unknown_state_is_told() {
    check(
        "pod run; c create; c CREATED state=unknown",
        expect![[r#"
        INV-08 at #5: c (c.0.beef): expected CREATED, RUNNING or EXITED in CREATED: UNKNOWN(3) in CREATED
    "#]],
    );
}

#[test]
fn deleted_that_still_shows_the_container_is_told() {
    then(
        "c STOPPED; c DELETED present",
        expect![[r#"
        INV-08 at #7: c (c.0.beef): expected no status of it in DELETED: EXITED in DELETED
    "#]],
    );
}

#[test]
fn deleted_that_shows_another_container_is_accepted() {
    then("d create; d CREATED; c STOPPED; c DELETED", expect![]);
}

#[test]
fn a_snapshot_without_its_own_container_is_not_too_old() {
    then(
        "c STARTED missing",
        expect![[r#"
            INV-14 at #6: c (c.0.beef): expected one status of it among the 0 in STARTED: it is missing from STARTED
        "#]],
    );
}

// INV-09

/// As [`check`], after `d` has seen its sibling `c` exit in #10.
#[track_caller]
fn beside(script: &str, expect: Expect) {
    let two = "pod run; c create; c CREATED; d create; d CREATED; c STARTED; c STOPPED";
    check(&format!("{two}; {script}"), expect);
}

#[test]
fn a_sibling_that_runs_again_went_back() {
    beside(
        "d STARTED stale=c:running",
        expect![[r#"
        INV-09 at #10 #11: c (c.0.beef): expected EXITED or later in the snapshots that follow: RUNNING after EXITED
    "#]],
    );
    beside("d STARTED", expect![]);
}

#[test]
fn a_sibling_that_was_deleted_stays_away() {
    beside(
        "c DELETED; d STARTED stale=c:exited",
        expect![[r#"
        INV-09 at #11 #12: c (c.0.beef): expected deleted or later in the snapshots that follow: EXITED after deleted
    "#]],
    );
    beside("c DELETED; c create; c CREATED; d STARTED", expect![]);
}

#[test]
fn the_snapshot_of_a_deletion_shows_siblings_too() {
    beside(
        "d STARTED; c DELETED stale=d:created",
        expect![[r#"
        INV-09 at #11 #12: d (d.0.beef): expected RUNNING or later in the snapshots that follow: CREATED after RUNNING
    "#]],
    );
    beside("d STARTED; c DELETED", expect![]);
}

#[test]
fn an_event_that_a_kubelet_drops_for_its_age_may_show_an_earlier_state() {
    beside(
        "d STARTED stale=c:running at=-1500us",
        expect![[r#"
            INV-23 at #10 #11: pod (pod.0.beef): expected STARTED of d, which came after STOPPED of c, to be made after it, too, and not 500000 ns before: its created_at is earlier
        "#]],
    );
    beside(
        "d STARTED stale=c:running at=-1ms",
        expect![[r#"
        INV-09 at #10 #11: c (c.0.beef): expected EXITED or later in the snapshots that follow: RUNNING after EXITED
    "#]],
    );
}

#[test]
fn a_repeated_event_that_goes_back_is_told_as_both() {
    check(
        "pod run; c create; c CREATED; c STARTED state=exited; c STARTED",
        expect![[r#"
            INV-02 at #6 #7: c (c.0.beef): expected one STARTED event: STARTED again after 1ms
            INV-09 at #6 #7: c (c.0.beef): expected EXITED or later in the snapshots that follow: RUNNING after EXITED
        "#]],
    );
}

#[test]
fn an_event_that_shows_less_than_it_says_is_told_by_its_own_rule() {
    check(
        "pod run; c create; c CREATED; d create; d CREATED stale=c:running; \
         c STARTED state=created",
        expect![[r#"
            INV-08 at #9: c (c.0.beef): expected RUNNING or EXITED in STARTED: CREATED in STARTED
        "#]],
    );
}

#[test]
fn a_container_goes_back_in_its_own_event_too() {
    check(
        "pod run; c create; c CREATED state=exited; c STARTED",
        expect![[r#"
            INV-09 at #5 #6: c (c.0.beef): expected EXITED or later in the snapshots that follow: RUNNING after EXITED
        "#]],
    );
    check(
        "pod run; c create; c CREATED state=exited; c STARTED state=exited",
        expect![],
    );
}

// INV-21

#[test]
fn a_runtime_that_ends_a_stream_and_answers_on_is_told() {
    then(
        "stream ends; c start; end",
        expect![[r#"
        INV-21 at #6 #8: stream 0: expected a stream that stays open as long as the runtime runs: the runtime ended it with OK
    "#]],
    );
    then("stream ends UNAVAILABLE; c start fails; end", expect![]);
    then(
        "stream ends UNAVAILABLE; end; pod stop",
        expect![[r#"
        INV-21 at #6 #9: stream 0: expected a stream that stays open as long as the runtime runs: it ended with UNAVAILABLE
    "#]],
    );
}

#[test]
fn a_runtime_that_is_gone_ends_its_streams() {
    then(
        "stream ends UNAVAILABLE; c start fails; pod stop; end",
        expect![],
    );
    then("stream ends UNAVAILABLE; end", expect![]);
}

#[test]
fn a_runtime_that_refuses_a_call_is_there() {
    then(
        "stream ends; c start refused; pod stop; end",
        expect![[r#"
        INV-21 at #6 #10: stream 0: expected a stream that stays open as long as the runtime runs: the runtime ended it with OK
    "#]],
    );
}

#[test]
fn a_stream_that_we_gave_up_is_no_end() {
    then("resubscribe; c start; c STARTED; end", expect![]);
}

// All of them

#[test]
fn one_violation_of_each_rule_is_told_for_a_subject() {
    then(
        "c TYPE=7; c TYPE=8; c STARTED no-sandbox; c STOPPED no-sandbox",
        expect![[r#"
        INV-03 at #6: c (c.0.beef): expected a type from 0 to 3: type 7
        INV-06 at #8: c (c.0.beef): expected pod_sandbox_status with the UID `uid-of-pod`: no pod_sandbox_status in STARTED
    "#]],
    );
}
