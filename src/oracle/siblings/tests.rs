//! Snapshots that lack a sibling, and their neighbours that lack none.

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

/// After two containers have been made.
#[track_caller]
fn then(script: &str, expect: Expect) {
    check(
        &["INV-15"],
        &format!("pod run; c create; c CREATED; d create; d CREATED; {script}"),
        expect,
    );
}

#[test]
fn siblings_are_shown() {
    then("d STARTED", expect![]);
    then(
        "d STARTED without=c",
        expect![[r#"
            INV-15 at #5 #9: c (c.0.beef): expected a status of it among the 1 in STARTED of d: it is missing
        "#]],
    );
    then(
        "pod STOPPED without=c without=d",
        expect![[r#"
            INV-15 at #5 #9: c (c.0.beef): expected a status of it among the 1 in STOPPED of pod: it is missing
        "#]],
    );
    then("pod2 run; e create; e CREATED without=c", expect![]);
}

#[test]
fn each_is_told_once() {
    then(
        "d STARTED without=c; d STOPPED without=c",
        expect![[r#"
            INV-15 at #5 #9: c (c.0.beef): expected a status of it among the 1 in STARTED of d: it is missing
        "#]],
    );
}

#[test]
fn what_is_being_removed_may_be_gone() {
    then(
        "c remove begins; d STARTED without=c; c remove returns",
        expect![],
    );
    then(
        "d STARTED without=c; c remove",
        expect![[r#"
            INV-15 at #5 #9: c (c.0.beef): expected a status of it among the 1 in STARTED of d: it is missing
        "#]],
    );
    then(
        "pod remove begins; d STARTED without=c; pod remove returns",
        expect![],
    );
    then("c DELETED; d STARTED", expect![]);
}

#[test]
fn a_failed_start_may_leave_nothing() {
    then("c start fails; d STARTED without=c", expect![]);
    then(
        "c start begins; d STARTED without=c; c start fails returns",
        expect![],
    );
    then(
        "c start; d STARTED without=c",
        expect![[r#"
            INV-15 at #5 #11: c (c.0.beef): expected a status of it among the 1 in STARTED of d: it is missing
        "#]],
    );
}

#[test]
fn a_snapshot_need_not_be_newer_than_its_event() {
    then("d STARTED without=c at=-6ms", expect![]);
    then(
        "d STARTED without=c at=-2ms",
        expect![[r#"
            INV-15 at #5 #9: c (c.0.beef): expected a status of it among the 1 in STARTED of d: it is missing
        "#]],
    );
    check(
        &["INV-15"],
        "pod run; c create; d create; d CREATED; c CREATED",
        expect![],
    );
}

#[test]
fn streams_are_judged_each_by_itself() {
    then("d STARTED without=c on=7", expect![]);
}

/// Of these, what is told of a snapshot without a container.
#[track_caller]
fn emptied(script: &str, expect: Expect) {
    check(
        &["INV-24"],
        &format!("pod run; c create; c CREATED; d create; d CREATED; {script}"),
        expect,
    );
}

#[test]
fn a_snapshot_is_not_empty_while_its_container_is_there() {
    emptied("d STARTED", expect![]);
    emptied("d STARTED without=c", expect![]);
    emptied(
        "c remove begins; d STARTED missing without=c",
        expect![[r#"
            INV-24 at #10: d (d.0.beef): expected a container in STARTED, as one is there: the snapshot of STARTED is empty
        "#]],
    );
}

#[test]
fn what_is_being_removed_need_not_be_shown() {
    emptied(
        "c remove begins; d remove begins; d STOPPED missing without=c",
        expect![],
    );
    emptied("pod remove begins; d STOPPED missing without=c", expect![]);
}

#[test]
fn a_sibling_that_was_there_before_is_enough() {
    emptied(
        "d remove; d DELETED without=c",
        expect![[r#"
            INV-24 at #11: d (d.0.beef): expected a container in DELETED, as one is there: the snapshot of DELETED is empty
        "#]],
    );
    // `d` was asked for later: the snapshot can have been read before that.
    emptied("c remove; c DELETED without=d", expect![]);
}

#[test]
fn what_is_removed_by_the_beginning_of_its_id_is_removed() {
    then("c remove prefix; d STARTED without=c", expect![]);
    // Two ids begin so, and the runtime can have removed neither.
    then(
        "c.0 create; c.0 CREATED; c remove prefix; d STARTED without=c",
        expect![[r#"
            INV-15 at #5 #14: c (c.0.beef): expected a status of it among the 2 in STARTED of d: it is missing
        "#]],
    );
}
