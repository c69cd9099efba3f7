//! What an event's snapshot says of its own container and of siblings: INV-08 and INV-09.

use expect_test::{Expect, expect};

use super::{check, then};

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
            INV-24 at #6: c (c.0.beef): expected a container in STARTED, as one is there: the snapshot of STARTED is empty
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
