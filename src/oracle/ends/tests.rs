//! How containers ended: histories in which it changes, and their neighbours.

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

/// After a container has been started.
#[track_caller]
fn then(script: &str, expect: Expect) {
    check(
        &["INV-16"],
        &format!("pod run; c create; c CREATED; c start; c STARTED; {script}"),
        expect,
    );
}

#[test]
fn a_status_tells_what_stopped_told() {
    then("c STOPPED exit=1; pod inspect c=exited:1", expect![]);
    then(
        "c STOPPED exit=1; pod inspect c=exited:2",
        expect![[r#"
        INV-16 at #9 #16 #17: c (c.0.beef): expected exit code 1, as STOPPED told: exit code 2
    "#]],
    );
    then(
        "c STOPPED exit=1 reason=Other; run inspect c=exited:1",
        expect![[r#"
            INV-16 at #9 #16 #17: c (c.0.beef): expected reason `Other`, as STOPPED told: reason `Error`
        "#]],
    );
    then(
        "c STOPPED exit=1 finished=+1ms; pod inspect c=exited:1",
        expect![[r#"
            INV-16 at #9 #16 #17: c (c.0.beef): expected finished_at 1700000000001000002, as STOPPED told: finished_at 1700000000000000002
        "#]],
    );
    then(
        "c STOPPED exit=1; pod inspect c=running",
        expect![[r#"
        INV-16 at #9 #16 #17: c (c.0.beef): expected state EXITED, as STOPPED told: state RUNNING
    "#]],
    );
}

#[test]
fn a_status_from_before_stopped_may_differ() {
    then("pod inspect c=exited:2; c STOPPED exit=1", expect![]);
    then(
        "c STOPPED exit=1; pod inspect c=exited:2 unanswered",
        expect![],
    );
}

#[test]
fn a_later_snapshot_tells_what_stopped_told() {
    then("c STOPPED exit=1; d create; d CREATED", expect![]);
    then(
        "c STOPPED exit=1; d create; d CREATED stale=c:exited:2",
        expect![[r#"
            INV-16 at #9 #12: c (c.0.beef): expected exit code 1, as STOPPED told: exit code 2
        "#]],
    );
    then(
        "c STOPPED exit=1; d create; d CREATED stale=c:running",
        expect![],
    );
    then(
        "d create; d CREATED stale=c:exited:2; c STOPPED exit=1",
        expect![],
    );
    then(
        "d create; c STOPPED exit=1; d CREATED stale=c:exited:2 at=-2ms",
        expect![],
    );
}

// INV-20

/// After a container has been started that promises the exit code 7.
#[track_caller]
fn promised(script: &str, expect: Expect) {
    let started = "pod run; c create exit=7; c CREATED; c start; c STARTED";
    check(&["INV-20"], &format!("{started}; {script}"), expect);
}

#[test]
fn the_exit_code_is_that_of_the_process() {
    promised("c STOPPED exit=7", expect![]);
    promised(
        "c STOPPED exit=255",
        expect![[r#"
        INV-20 at #9: c (c.0.beef): expected exit code 7 in STOPPED: exit code 255, reason `Error`
    "#]],
    );
    promised(
        "c STOPPED exit=255; c stop; pod stop",
        expect![[r#"
        INV-20 at #9: c (c.0.beef): expected exit code 7 in STOPPED: exit code 255, reason `Error`
    "#]],
    );
    promised("c STOPPED missing", expect![]);
}

#[test]
fn what_was_disturbed_may_end_otherwise() {
    promised("c stop; c STOPPED exit=137", expect![]);
    promised(
        "c remove begins; c STOPPED exit=137; c remove returns",
        expect![],
    );
    promised("pod stop; c STOPPED exit=137", expect![]);
    promised(
        "d create; d start; d stop; c STOPPED exit=137",
        expect![[r#"
        INV-20 at #15: c (c.0.beef): expected exit code 7 in STOPPED: exit code 137, reason `Error`
    "#]],
    );
    promised(
        "pod2 run; pod2 stop; c STOPPED exit=137",
        expect![[r#"
        INV-20 at #13: c (c.0.beef): expected exit code 7 in STOPPED: exit code 137, reason `Error`
    "#]],
    );
    let failed = "pod run; c create exit=7; c start fails; c STOPPED exit=128";
    check(&["INV-20"], failed, expect![]);
}

#[test]
fn what_promises_nothing_may_end_as_it_likes() {
    then("c STOPPED exit=255", expect![]);
    check(
        &["INV-20"],
        "pod run; c create; c start; c STOPPED exit=255",
        expect![],
    );
}

/// After a container has been started that ignores SIGTERM.
#[track_caller]
fn stubborn(script: &str, expect: Expect) {
    let started = "pod run; c create mode=ignore; c CREATED; c start; c STARTED";
    check(&["INV-20"], &format!("{started}; {script}"), expect);
}

#[test]
fn what_a_kill_alone_ends_has_its_code() {
    for ended_by in ["c stop", "c remove", "pod stop", "pod remove"] {
        stubborn(&format!("{ended_by}; c STOPPED exit=137"), expect![]);
        stubborn(
            &format!("{ended_by}; c STOPPED exit=0"),
            expect![[r#"
                INV-20 at #11: c (c.0.beef): expected exit code 137 in STOPPED: exit code 0, reason `Completed`
            "#]],
        );
    }
}

#[test]
fn of_what_never_ran_no_kill_tells() {
    let failed = "pod run; c create mode=ignore; c start fails; pod stop; c STOPPED exit=128";
    check(&["INV-20"], failed, expect![]);
    let never = "pod run; c create mode=ignore; pod stop; c STOPPED exit=0";
    check(&["INV-20"], never, expect![]);
    let obeys = "pod run; c create; c start; pod stop; c STOPPED exit=0";
    check(&["INV-20"], obeys, expect![]);
}
