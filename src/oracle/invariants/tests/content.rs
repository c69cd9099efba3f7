//! What each event tells by itself: INV-03 to INV-07.

use expect_test::expect;

use super::{check, then};

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
            INV-07 at #5: c (c.0.beef): expected an id, metadata, an image, its reference and created_at in each status: status 0 of CREATED has no id
            INV-14 at #5: c (c.0.beef): expected one status of it among the 1 in CREATED: it is missing from CREATED
        "#]],
    );
}

#[test]
fn a_status_without_metadata_is_told() {
    check(
        "pod run; c create; c CREATED status-lacks=metadata",
        expect![[r#"
            INV-07 at #5: c (c.0.beef): expected an id, metadata, an image, its reference and created_at in each status: status 0 of CREATED has no metadata
        "#]],
    );
}

#[test]
fn a_status_without_an_image_is_told() {
    check(
        "pod run; c create; c CREATED status-lacks=image",
        expect![[r#"
            INV-07 at #5: c (c.0.beef): expected an id, metadata, an image, its reference and created_at in each status: status 0 of CREATED has no image
            INV-13 at #5: c (c.0.beef): expected a kubelet takes the event: the kubelet panics: the status of container c.0.beef has no image, and the kubelet dereferences it
        "#]],
    );
}

#[test]
fn a_status_without_a_time_is_told() {
    check(
        "pod run; c create; c CREATED status-lacks=time",
        expect![[r#"
            INV-07 at #5: c (c.0.beef): expected an id, metadata, an image, its reference and created_at in each status: status 0 of CREATED has no created_at
        "#]],
    );
}

#[test]
fn no_status_at_all_is_no_empty_one() {
    check(
        "pod run; c create; c CREATED missing",
        expect![[r#"
            INV-14 at #5: c (c.0.beef): expected one status of it among the 0 in CREATED: it is missing from CREATED
            INV-24 at #5: c (c.0.beef): expected a container in CREATED, as one is there: the snapshot of CREATED is empty
        "#]],
    );
}

#[test]
fn the_image_has_a_reference() {
    then("c STARTED", expect![]);
    then(
        "c STARTED ref=",
        expect![[r#"
            INV-07 at #6: c (c.0.beef): expected an id, metadata, an image, its reference and created_at in each status: status 0 of STARTED has no image_ref
        "#]],
    );
}

#[test]
fn the_reference_of_the_image_stays() {
    then("c STARTED; pod inspect c=running; c STOPPED", expect![]);
    then(
        "c STARTED; c STOPPED ref=sha256:f00d",
        expect![[r#"
            INV-07 at #5 #7: c (c.0.beef): expected image_ref `sha256:beef`, as was shown first: image_ref `sha256:f00d`
        "#]],
    );
    then("c STARTED; d create; d CREATED ref=sha256:f00d", expect![]);
    check(
        "pod run; c create; c CREATED ref=sha256:f00d; pod inspect c=created",
        expect![[r#"
            INV-07 at #5 #13: c (c.0.beef): expected image_ref `sha256:f00d`, as was shown first: image_ref `sha256:beef`
        "#]],
    );
}
