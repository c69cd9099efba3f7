//! Misses by relists and by calls, and while the suite itself was held up.

use expect_test::{Expect, expect};

use super::{OF_SANDBOXES, RULE, is_sandbox, unannounced_of};
use crate::oracle::index::Index;
use crate::oracle::invariants::invariants;
use crate::oracle::script::{history, render};

/// Checks the missed events of a history, and the event that a driver would still await.
#[track_caller]
fn check(script: &str, expect: Expect) {
    let history = history(script);
    let index = Index::new(&history);
    let found = invariants(&index);
    let missed = found.iter().filter(|found| found.rule == RULE.id);
    let mut containers = history.subjects().iter().filter(|it| !is_sandbox(it));
    let waits = containers.find_map(|it| {
        let awaited = unannounced_of(&index, it)?;
        Some(format!("waits for {awaited} of {}\n", it.label()))
    });
    expect.assert_eq(&(waits.unwrap_or_default() + &render(missed)));
}

/// As [`check`], after a container has been created in #1 to #5.
#[track_caller]
fn then(script: &str, expect: Expect) {
    check(&format!("pod run; c create; c CREATED; {script}"), expect);
}

// Relists

#[test]
fn a_relist_of_a_state_that_an_event_reports_before_or_soon_after_is_no_miss() {
    then("c start; c STARTED; pod relist c=running; end", expect![]);
    then("pod relist c=exited; c STOPPED; end", expect![]);
    then("c remove; pod relist; c DELETED; end", expect![]);
    then("pod relist c=created; end", expect![]);
}

#[test]
fn a_list_by_labels_need_not_show_a_container_without_them() {
    then("pod inspect c=created unlisted; end", expect![]);
    then(
        "run inspect c=created unlisted; end",
        expect![[r#"
    waits for DELETED of c
    INV-11 at #8 #9: c (c.0.beef): expected DELETED within 10s of a relist that does not show it: DELETED has not come
"#]],
    );
}

#[test]
fn a_state_that_no_event_reports_is_a_miss() {
    then(
        "pod relist c=running; end",
        expect![[r#"
        waits for STARTED of c
        INV-11 at #6 #7: c (c.0.beef): expected STARTED within 10s of a relist that shows it RUNNING: STARTED has not come
    "#]],
    );
    then(
        "pod relist c=exited; end",
        expect![[r#"
        waits for STOPPED of c
        INV-11 at #6 #7: c (c.0.beef): expected STOPPED within 10s of a relist that shows it EXITED: STOPPED has not come
    "#]],
    );
    then(
        "pod relist; end",
        expect![[r#"
        waits for DELETED of c
        INV-11 at #6 #7: c (c.0.beef): expected DELETED within 10s of a relist that does not show it: DELETED has not come
    "#]],
    );
}

#[test]
fn an_event_long_after_the_relist_is_a_miss() {
    then(
        "pod relist c=exited; pass 10s; c STOPPED; end",
        expect![[r#"
        INV-11 at #6 #7 #8: c (c.0.beef): expected STOPPED within 10s of a relist that shows it EXITED: STOPPED came 10.001s later
    "#]],
    );
    then(
        "pod relist c=exited; pass 9s999ms; c STOPPED; end",
        expect![],
    );
}

#[test]
fn a_relist_of_the_teardown_shows_nothing_of_the_case() {
    then("end; pod relist c=exited", expect![]);
}

#[test]
fn a_transition_while_no_stream_was_live_is_no_miss() {
    then("resubscribe; proven; pod relist c=exited; end", expect![]);
    then("pod relist c=exited; resubscribe; end", expect![]);
    then(
        "unsubscribe; pod relist c=exited; subscribe; end",
        expect![],
    );
    then(
        "pod relist c=exited; pass 11s; resubscribe; end",
        expect![[r#"
        waits for STOPPED of c
        INV-11 at #6 #7: c (c.0.beef): expected STOPPED within 10s of a relist that shows it EXITED: STOPPED has not come
    "#]],
    );
}

#[test]
fn a_list_that_fails_shows_nothing() {
    then("pod relist fails; end", expect![]);
}

// Calls

#[test]
fn each_call_that_succeeds_has_its_event() {
    check(
        "pod run; c create; end",
        expect![[r#"
    waits for CREATED of c
    INV-11 at #3 #4: c (c.0.beef): expected CREATED within 10s of CreateContainer: CREATED has not come
"#]],
    );
    then(
        "c start; end",
        expect![[r#"
    waits for STARTED of c
    INV-11 at #6 #7: c (c.0.beef): expected STARTED within 10s of StartContainer: STARTED has not come
"#]],
    );
    then(
        "c start; c STARTED; c stop; end",
        expect![[r#"
    waits for STOPPED of c
    INV-11 at #9 #10: c (c.0.beef): expected STOPPED within 10s of StopContainer: STOPPED has not come
"#]],
    );
    then(
        "c remove; end",
        expect![[r#"
    waits for DELETED of c
    INV-11 at #6 #7: c (c.0.beef): expected DELETED within 10s of RemoveContainer: DELETED has not come
"#]],
    );
    then(
        "c start; c STARTED; c stop; c STOPPED; c remove; c DELETED; end",
        expect![],
    );
}

#[test]
fn a_removal_stops_a_running_container() {
    then(
        "c start; c STARTED; c remove; c DELETED; end",
        expect![[r#"
    waits for STOPPED of c
    INV-11 at #9 #10: c (c.0.beef): expected STOPPED within 10s of RemoveContainer: STOPPED has not come
"#]],
    );
    then("c remove; c DELETED; end", expect![]);
}

#[test]
fn a_sandbox_takes_its_containers_with_it() {
    let two = "c start; c STARTED; d create; d CREATED";
    then(
        &format!("{two}; pod stop; end"),
        expect![[r#"
    waits for STOPPED of c
    INV-11 at #12 #13: c (c.0.beef): expected STOPPED within 10s of StopPodSandbox: STOPPED has not come
"#]],
    );
    then(&format!("{two}; pod stop; c STOPPED; end"), expect![]);
    then(
        &format!("{two}; pod stop; c STOPPED; pod remove; c DELETED; end"),
        expect![[r#"
        waits for DELETED of d
        INV-11 at #15 #16: d (d.0.beef): expected DELETED within 10s of RemovePodSandbox: DELETED has not come
    "#]],
    );
    then(
        &format!("{two}; pod remove; c STOPPED; c DELETED; d DELETED; end"),
        expect![],
    );
    then(
        "pod2 run; d create in=pod2; d CREATED; pod2 remove; d DELETED; end",
        expect![],
    );
}

#[test]
fn a_container_that_never_ran_need_not_stop() {
    then("c stop; end", expect![]);
    then("pod stop; end", expect![]);
    then("c start fails; c stop; c remove; c DELETED; end", expect![]);
    then(
        "c start begins; c stop; c start returns; c STARTED; end",
        expect![],
    );
}

#[test]
fn a_call_that_fails_proves_nothing() {
    then("c start fails; end", expect![]);
    then(
        "c start; c STARTED; c stop fails; c remove fails; end",
        expect![],
    );
    check("pod run; c create fails; end", expect![]);
}

#[test]
fn an_event_long_after_its_call_is_a_miss() {
    then(
        "c start; pass 10s; c STARTED; end",
        expect![[r#"
    INV-11 at #6 #7 #8: c (c.0.beef): expected STARTED within 10s of StartContainer: STARTED came 10.001s later
"#]],
    );
    then("c start; pass 9s999ms; c STARTED; end", expect![]);
    then(
        "c start begins; c STARTED; pass 20s; c start returns; end",
        expect![],
    );
}

#[test]
fn a_repeated_call_needs_no_other_event() {
    then("c remove; c DELETED; pass 20s; c remove; end", expect![]);
}

#[test]
fn no_event_is_due_on_a_stream_that_ended() {
    then("resubscribe; proven; c start; end", expect![]);
    then("c start; resubscribe; end", expect![]);
    then(
        "c start; end; resubscribe",
        expect![[r#"
    waits for STARTED of c
    INV-11 at #6 #7: c (c.0.beef): expected STARTED within 10s of StartContainer: STARTED has not come
"#]],
    );
    then(
        "c start; pass 11s; resubscribe; end",
        expect![[r#"
    waits for STARTED of c
    INV-11 at #6 #7: c (c.0.beef): expected STARTED within 10s of StartContainer: STARTED has not come
"#]],
    );
    check("pod run; resubscribe; c create; end", expect![]);
    check(
        "pod run; resubscribe; proven; c create; end",
        expect![[r#"
    waits for CREATED of c
    INV-11 at #6 #7: c (c.0.beef): expected CREATED within 10s of CreateContainer: CREATED has not come
"#]],
    );
}

#[test]
fn steps_that_broke_off_give_an_event_the_time_it_may_take() {
    then(
        "c start; end error",
        expect![[r#"
    waits for STARTED of c
"#]],
    );
    then(
        "c start; pass 9s999ms; end error",
        expect![[r#"
    waits for STARTED of c
"#]],
    );
    then(
        "c start; pass 11s; end error",
        expect![[r#"
    waits for STARTED of c
    INV-11 at #6 #7: c (c.0.beef): expected STARTED within 10s of StartContainer: STARTED has not come
"#]],
    );
    then(
        "pod relist c=exited; end error",
        expect![[r#"
    waits for STOPPED of c
"#]],
    );
    then(
        "c start",
        expect![[r#"
    waits for STARTED of c
"#]],
    );
}

#[test]
fn calls_of_the_teardown_and_of_others_need_no_event() {
    then("end; c start", expect![]);
    then("c start foreign; end", expect![]);
}

// While the suite itself was held up

#[test]
fn an_event_that_the_suite_has_not_read_in_time_is_no_miss() {
    then("c start; pass 12s; held-up 3s; c STARTED; end", expect![""]);
    then(
        "c start; pass 12s; held-up 1s; c STARTED; end",
        expect![[r#"
        INV-11 at #6 #7 #9: c (c.0.beef): expected STARTED within 10s of StartContainer: STARTED came 11.002s later
    "#]],
    );
    then(
        "c start; pass 11s; held-up 2s; end",
        expect![[r#"
    waits for STARTED of c
"#]],
    );
    then(
        "c start; held-up 2s; pass 11s; end",
        expect![[r#"
    waits for STARTED of c
    INV-11 at #6 #7: c (c.0.beef): expected STARTED within 10s of StartContainer: STARTED has not come
"#]],
    );
}

#[test]
fn a_change_on_a_stream_that_was_opened_after_the_creation_has_its_event() {
    let then = |script: &str, expect| {
        let again = "c start; c STARTED; unsubscribe; subscribe; proven; pod relist c=running";
        then(&format!("{again}; {script}; end"), expect);
    };
    then("pod relist c=running", expect![[""]]);
    then("pod relist c=exited; c STOPPED", expect![[""]]);
    then(
        "pod relist c=exited",
        expect![[r#"
        waits for STOPPED of c
        INV-11 at #14 #15: c (c.0.beef): expected STOPPED within 10s of a relist that shows it EXITED: STOPPED has not come
    "#]],
    );
    then("unsubscribe; pod relist c=exited", expect![[""]]);
}

// Sandboxes

#[test]
fn a_sandbox_that_runs_stops_and_is_removed_has_the_events_of_that() {
    let judged =
        |script: &str, expect| crate::oracle::rules::testing::check(&OF_SANDBOXES, script, expect);
    judged(
        "pod run; pod STARTED; pod stop; pod STOPPED; pod remove; pod DELETED; end",
        expect![],
    );
    judged("pod run fails; end", expect![]);
    judged(
        "pod run; end; pod stop",
        expect![[r#"
        INV-33 at #1 #2: pod (pod.0.beef): expected STARTED within 10s of RunPodSandbox: STARTED has not come
    "#]],
    );
    judged(
        "pod run; pod STARTED; pod stop; end",
        expect![[r#"
        INV-33 at #4 #5: pod (pod.0.beef): expected STOPPED within 10s of StopPodSandbox: STOPPED has not come
    "#]],
    );
    judged(
        "pod run; pod STARTED; pod stop; pod STOPPED; pod remove; end",
        expect![[r#"
            INV-33 at #7 #8: pod (pod.0.beef): expected DELETED within 10s of RemovePodSandbox: DELETED has not come
        "#]],
    );
    judged(
        "pod run; pod STARTED; pod remove; pod DELETED; end",
        expect![[r#"
            INV-33 at #4 #5: pod (pod.0.beef): expected STOPPED within 10s of RemovePodSandbox: STOPPED has not come
        "#]],
    );
    judged(
        "pod run; pod STARTED; c create; pod stop; pod STOPPED; end",
        expect![""],
    );
}
