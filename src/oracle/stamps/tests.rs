//! Pods whose events come out of order, and their neighbours whose events do not.

#![expect(
    clippy::needless_pass_by_value,
    clippy::needless_raw_string_hashes,
    reason = "this is how expect-test is used"
)]

use expect_test::{Expect, expect};

use super::super::invariants::invariants;
use crate::oracle::script::{history, render};

#[track_caller]
fn check(script: &str, expect: Expect) {
    let found = invariants(&history(script));
    expect.assert_eq(&render(found.iter().filter(|found| found.rule == "INV-23")));
}

#[test]
fn the_events_of_two_containers_come_in_order() {
    let script = "pod run; c create; d create; c CREATED; d CREATED";
    check(script, expect![]);
    check(&format!("{script} at=-1ms"), expect![]);
    check(
        &format!("{script} at=-2ms"),
        expect![[r#"
            INV-23 at #7 #8: pod (pod.0.beef): expected CREATED of d, which came after CREATED of c, to be made after it, too, and not 1000000 ns before: its created_at is earlier
        "#]],
    );
}

#[test]
fn a_sandboxs_own_events_count() {
    let script = "pod run; pod STARTED; c create; c CREATED";
    check(script, expect![]);
    check(
        &format!("{script} at=-4ms"),
        expect![[r#"
            INV-23 at #3 #6: pod (pod.0.beef): expected CREATED of c, which came after STARTED of pod, to be made after it, too, and not 1000000 ns before: its created_at is earlier
        "#]],
    );
    let script = "pod run; c create; c CREATED; pod STOPPED";
    check(script, expect![]);
    check(
        &format!("{script} at=-2ms"),
        expect![[r#"
            INV-23 at #5 #6: pod (pod.0.beef): expected STOPPED of pod, which came after CREATED of c, to be made after it, too, and not 1000000 ns before: its created_at is earlier
        "#]],
    );
}

#[test]
fn the_newest_of_all_before_counts() {
    check(
        "pod run; c create; d create; e create; c CREATED; d CREATED at=-1ms; e CREATED at=-3ms",
        expect![[r#"
            INV-23 at #10 #11: pod (pod.0.beef): expected CREATED of e, which came after CREATED of d, to be made after it, too, and not 1000000 ns before: its created_at is earlier
        "#]],
    );
}

#[test]
fn a_pod_is_told_once() {
    check(
        "pod run; c create; c CREATED; pod STOPPED at=-2ms; pod DELETED at=-4ms",
        expect![[r#"
            INV-23 at #5 #6: pod (pod.0.beef): expected STOPPED of pod, which came after CREATED of c, to be made after it, too, and not 1000000 ns before: its created_at is earlier
        "#]],
    );
}

#[test]
fn each_pod_is_told() {
    let turned = "pod run; c create; d create; c CREATED; d CREATED at=-2ms";
    let both = format!("{turned}; pod2 run; e create; f create; e CREATED; f CREATED at=-2ms");
    check(
        &both,
        expect![[r#"
        INV-23 at #7 #8: pod (pod.0.beef): expected CREATED of d, which came after CREATED of c, to be made after it, too, and not 1000000 ns before: its created_at is earlier
        INV-23 at #15 #16: pod2 (pod2.0.beef): expected CREATED of f, which came after CREATED of e, to be made after it, too, and not 1000000 ns before: its created_at is earlier
    "#]],
    );
}

#[test]
fn the_events_of_one_container_are_for_another_rule() {
    let script = "pod run; pod STARTED; c create; c CREATED; c STARTED";
    check(&format!("{script} at=-2ms"), expect![]);
    check(&format!("{script} at=-3ms"), expect![]);
    check(
        &format!("{script} at=-5ms"),
        expect![[r#"
            INV-23 at #3 #7: pod (pod.0.beef): expected STARTED of c, which came after STARTED of pod, to be made after it, too, and not 1000000 ns before: its created_at is earlier
        "#]],
    );
}

#[test]
fn what_is_told_again_to_a_new_stream_may_come_late() {
    let script = "pod run; c create; c CREATED; d create; resubscribe; c STARTED; d CREATED";
    check(script, expect![]);
    check(&format!("{script} at=-3ms"), expect![]);
    check(
        &format!("{script} at=-2ms"),
        expect![[r#"
            INV-23 at #10 #11: pod (pod.0.beef): expected CREATED of d, which came after STARTED of c, to be made after it, too, and not 1000000 ns before: its created_at is earlier
        "#]],
    );
}

#[test]
fn pods_and_streams_are_not_compared() {
    check(
        "pod run; c create; c CREATED; pod2 run; d create; d CREATED at=-21ms",
        expect![],
    );
    check(
        "pod run; c create; d create; c CREATED; d CREATED at=-2ms on=7",
        expect![],
    );
}

/// What is told of events that were made when their call had returned.
#[track_caller]
fn made_late(script: &str, expect: Expect) {
    let found = invariants(&history(script));
    expect.assert_eq(&render(found.iter().filter(|found| found.rule == "INV-26")));
}

#[test]
fn an_event_is_made_within_its_call() {
    made_late("pod run; c create; c CREATED at=-1ms", expect![]);
    made_late("pod run; c create; c CREATED", expect![]);
    made_late(
        "pod run; c create; pass 20ms; c CREATED",
        expect![[r#"
            INV-26 at #3 #4 #5: c (c.0.beef): expected CREATED to be made before CreateContainer returned: its created_at is later
        "#]],
    );
    made_late(
        "pod run; c create; c start; c STARTED at=+20ms; c remove; c DELETED at=+20ms",
        expect![[r#"
            INV-26 at #5 #6 #7: c (c.0.beef): expected STARTED to be made before StartContainer returned: its created_at is later
        "#]],
    );
}

#[test]
fn an_event_that_arrives_late_was_made_in_time() {
    made_late(
        "pod run; c create; pass 20ms; c CREATED at=-21ms",
        expect![],
    );
}

#[test]
fn the_end_of_a_process_may_be_noticed_after_the_stop() {
    made_late(
        "pod run; c create; c start; c stop; c STOPPED at=+20ms",
        expect![],
    );
    made_late(
        "pod run; c create; c start fails; c STARTED at=+20ms",
        expect![],
    );
}
