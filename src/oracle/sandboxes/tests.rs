//! What events tell of their sandbox: histories in which it is wrong, and their neighbours.

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

/// After a container has been made in a pod.
#[track_caller]
fn then(script: &str, expect: Expect) {
    check(
        &["INV-18"],
        &format!("pod run; pod STARTED; c create; c CREATED; {script}"),
        expect,
    );
}

#[test]
fn the_sandbox_is_that_which_was_run() {
    then("c STARTED", expect![]);
    then(
        "c STARTED sandbox=other",
        expect![[r#"
        INV-18 at #7: c (c.0.beef): expected the sandbox with the id `pod.0.beef` in STARTED: the id `other.0.beef`
    "#]],
    );
    then(
        "c STARTED pod-name=other",
        expect![[r#"
        INV-18 at #7: c (c.0.beef): expected the sandbox with the name `` in STARTED: the name `other`
    "#]],
    );
    then(
        "pod2 run; c STARTED sandbox=pod2",
        expect![[r#"
        INV-18 at #9: c (c.0.beef): expected the sandbox with the id `pod.0.beef` in STARTED: the id `pod2.0.beef`
    "#]],
    );
    then(
        "pod STOPPED sandbox=other",
        expect![[r#"
        INV-18 at #7: pod (pod.0.beef): expected the sandbox with the id `pod.0.beef` in STOPPED: the id `other.0.beef`
    "#]],
    );
}

#[test]
fn another_uid_or_none_is_told_by_its_own_rule() {
    then("c STARTED uid=x pod-name=other", expect![]);
    then("c STARTED no-sandbox", expect![]);
    then("c STARTED no-metadata", expect![]);
}

#[test]
fn a_sandbox_is_ready_until_it_is_stopped() {
    then(
        "c STARTED not-ready",
        expect![[r#"
        INV-18 at #7: c (c.0.beef): expected the sandbox READY in STARTED: NOTREADY
    "#]],
    );
    then(
        "c STARTED not-ready; pod stop",
        expect![[r#"
        INV-18 at #7: c (c.0.beef): expected the sandbox READY in STARTED: NOTREADY
    "#]],
    );
    then(
        "pod stop begins; c STOPPED not-ready; pod stop returns",
        expect![],
    );
    then("pod stop; c STOPPED", expect![]);
    then("pod remove begins; c STOPPED not-ready", expect![]);
}

#[test]
fn a_sandbox_that_is_being_made_need_not_be_ready() {
    check(
        &["INV-18"],
        "pod run begins; pod CREATED not-ready; pod run returns",
        expect![],
    );
    check(
        &["INV-18"],
        "pod run begins; pod STARTED not-ready; pod run returns",
        expect![[r#"
            INV-18 at #2: pod (pod.0.beef): expected the sandbox READY in STARTED: NOTREADY
        "#]],
    );
}

#[test]
fn a_sandbox_that_has_stopped_is_not_ready() {
    then(
        "pod stop; pod STOPPED ready",
        expect![[r#"
        INV-18 at #9: pod (pod.0.beef): expected the sandbox NOTREADY in STOPPED: READY
    "#]],
    );
    then(
        "pod stop; pod STOPPED; c STOPPED ready",
        expect![[r#"
        INV-18 at #10: c (c.0.beef): expected the sandbox NOTREADY in STOPPED: READY
    "#]],
    );
    then("pod stop; pod STOPPED; c STOPPED ready at=-2ms", expect![]);
    then(
        "pod stop; pod STOPPED; pod remove; c DELETED; pod DELETED",
        expect![],
    );
    then(
        "pod stop; pod STOPPED; pod remove; pod DELETED ready",
        expect![[r#"
            INV-18 at #12: pod (pod.0.beef): expected the sandbox NOTREADY in DELETED: READY
        "#]],
    );
}

#[test]
fn a_sandbox_may_end_by_itself() {
    then("c STARTED not-ready; pod STOPPED; c STOPPED", expect![]);
    then("c STARTED not-ready; pod STOPPED; pod stop", expect![]);
}
