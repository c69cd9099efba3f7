//! What statuses must say: histories in which one does not, and their neighbours.

#![expect(
    clippy::needless_pass_by_value,
    clippy::needless_raw_string_hashes,
    reason = "this is how expect-test is used"
)]

use expect_test::{Expect, expect};

use super::super::invariants::invariants;
use crate::oracle::script::{history, render};

/// What a history breaks, of these rules.
#[track_caller]
fn check(rules: &[&str], script: &str, expect: Expect) {
    let found = invariants(&history(script));
    let found = found
        .iter()
        .filter(|found| rules.contains(&found.rule.as_str()));
    expect.assert_eq(&render(found));
}

// INV-14

#[test]
fn an_event_shows_its_own_container_once() {
    let own =
        |script: &str, expect| check(&["INV-14"], &format!("pod run; c create; {script}"), expect);
    own("c CREATED; c STARTED; c STOPPED; c DELETED", expect![]);
    own(
        "c CREATED missing",
        expect![[r#"
            INV-14 at #5: c (c.0.beef): expected one status of it among the 0 in CREATED: it is missing from CREATED
        "#]],
    );
    own(
        "c CREATED; c STOPPED missing",
        expect![[r#"
            INV-14 at #6: c (c.0.beef): expected one status of it among the 0 in STOPPED: it is missing from STOPPED
        "#]],
    );
    own(
        "c CREATED; c STARTED twice",
        expect![[r#"
            INV-14 at #6: c (c.0.beef): expected one status of it among the 2 in STARTED: there are 2 in STARTED
        "#]],
    );
    own(
        "c CREATED; c TYPE=9 missing",
        expect![[r#"
            INV-14 at #6: c (c.0.beef): expected one status of it among the 0 in UNKNOWN(9): it is missing from UNKNOWN(9)
        "#]],
    );
}

#[test]
fn what_is_deleted_need_not_be_shown() {
    let own =
        |script: &str, expect| check(&["INV-14"], &format!("pod run; c create; {script}"), expect);
    own("c CREATED; c DELETED; c STOPPED missing", expect![]);
    own("c CREATED; c DELETED present", expect![]);
    own(
        "c CREATED; c STOPPED missing; c DELETED",
        expect![[r#"
            INV-14 at #6: c (c.0.beef): expected one status of it among the 0 in STOPPED: it is missing from STOPPED
        "#]],
    );
}

#[test]
fn a_sandbox_is_no_container_of_its_own() {
    check(&["INV-14"], "pod run; pod STARTED; pod STOPPED", expect![]);
    check(&["INV-14"], "pod run; foreign CREATED missing", expect![]);
}

// INV-17

/// After a container has been made and started.
#[track_caller]
fn timed(script: &str, expect: Expect) {
    let made = "pod run; c create; c CREATED; c start";
    check(&["INV-17"], &format!("{made}; {script}"), expect);
}

#[test]
fn what_runs_or_has_exited_was_started() {
    timed("c STARTED", expect![]);
    timed(
        "c STARTED started=0",
        expect![[r#"
        INV-17 at #8: c (c.0.beef): expected started_at in STARTED: none, of what is RUNNING
    "#]],
    );
    timed(
        "c STOPPED started=0",
        expect![[r#"
        INV-17 at #8: c (c.0.beef): expected started_at in STOPPED: none, of what is EXITED
    "#]],
    );
    timed("c STARTED state=created started=0", expect![]);
}

#[test]
fn what_has_exited_is_finished() {
    timed("c STOPPED", expect![]);
    timed(
        "c STOPPED finished=0",
        expect![[r#"
        INV-17 at #8: c (c.0.beef): expected finished_at in STOPPED: none, of what is EXITED
    "#]],
    );
    timed(
        "c STARTED state=exited finished=0",
        expect![[r#"
        INV-17 at #8: c (c.0.beef): expected finished_at in STARTED: none, of what is EXITED
    "#]],
    );
    timed("c STARTED finished=0", expect![]);
}

#[test]
fn what_was_never_started_has_no_such_time() {
    let made = "pod run; c create; c CREATED";
    let unstarted = |script: &str, expect| check(&["INV-17"], &format!("{made}; {script}"), expect);
    unstarted("c start fails; c STOPPED started=0", expect![]);
    unstarted("c stop; c STOPPED started=0", expect![]);
    unstarted(
        "c start fails; c STOPPED started=0 finished=0",
        expect![[r#"
        INV-17 at #8: c (c.0.beef): expected finished_at in STOPPED: none, of what is EXITED
    "#]],
    );
}

#[test]
fn times_are_in_order() {
    timed(
        "c STARTED started=-11ms",
        expect![[r#"
            INV-17 at #8: c (c.0.beef): expected created_at not 10.999999ms after started_at in STARTED: created_at after started_at
        "#]],
    );
    timed("c STARTED started=-10000001ns", expect![]);
    timed(
        "c STOPPED started=+11ms",
        expect![[r#"
            INV-17 at #8: c (c.0.beef): expected started_at not 10.999999ms after finished_at in STOPPED: started_at after finished_at
        "#]],
    );
    timed("c STOPPED started=+9ms", expect![]);
    timed(
        "c STOPPED finished=-11ms",
        expect![[r#"
            INV-17 at #8: c (c.0.beef): expected started_at not 10.999999ms after finished_at in STOPPED: started_at after finished_at
        "#]],
    );
}

#[test]
fn an_exit_is_told_after_it_has_happened() {
    timed(
        "c STOPPED at=-60ms",
        expect![[r#"
            INV-17 at #8: c (c.0.beef): expected finished_at not 51.000002ms after the event's created_at in STOPPED: finished_at after the event's created_at
        "#]],
    );
    timed("c STOPPED at=-10ms", expect![]);
    timed("c STARTED state=exited finished=+60ms", expect![]);
}

#[test]
fn siblings_have_times_too() {
    timed(
        "c STARTED started=0; d create; d CREATED",
        expect![[r#"
            INV-17 at #8: c (c.0.beef): expected started_at in STARTED: none, of what is RUNNING
            INV-17 at #11: d (d.0.beef): expected started_at in CREATED, of c.0.beef: none, of what is RUNNING
        "#]],
    );
    timed("c STARTED; d create; d CREATED", expect![]);
}

#[test]
fn started_is_not_made_before_the_start() {
    timed("c STARTED", expect![]);
    timed("c STARTED started=+300ms at=+295ms", expect![]);
    timed(
        "c STARTED started=+300ms at=+200ms",
        expect![[r#"
            INV-17 at #8: c (c.0.beef): expected started_at not 91.000001ms after the event's created_at in STARTED: started_at after the event's created_at
        "#]],
    );
    timed(
        "d create; d CREATED; c STARTED started=+300ms at=+400ms; d STARTED at=+200ms",
        expect![],
    );
    timed("c CREATED state=running started=+300ms", expect![]);
    timed(
        "c STARTED state=exited started=+300ms finished=+500ms at=+400ms",
        expect![],
    );
}
