//! States that were shown too early, and their neighbours that were not.

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

/// After a container has been made, and another.
#[track_caller]
fn then(script: &str, expect: Expect) {
    check(
        &["INV-19"],
        &format!("pod run; c create; c CREATED; d create; {script}"),
        expect,
    );
}

#[test]
fn what_can_be_started_had_not_begun() {
    then(
        "d CREATED stale=c:running; c start",
        expect![[r#"
        INV-19 at #8 #9 #10: c (c.0.beef): expected CREATED in CREATED, as StartContainer found it later: RUNNING
    "#]],
    );
    then("d CREATED stale=c:created; c start", expect![]);
    then(
        "c start begins; d CREATED stale=c:running; c start returns",
        expect![],
    );
    then("d CREATED stale=c:exited; c start fails", expect![]);
    check(
        &["INV-19"],
        "pod run; c create; c CREATED state=exited; c start",
        expect![[r#"
            INV-19 at #5 #6 #7: c (c.0.beef): expected CREATED in CREATED, as StartContainer found it later: EXITED
        "#]],
    );
}

#[test]
fn what_is_found_running_had_not_exited() {
    then(
        "c STARTED; d CREATED stale=c:exited; pod relist c=running",
        expect![[r#"
            INV-19 at #9 #10 #11: c (c.0.beef): expected RUNNING in CREATED, as ListContainers found it later: EXITED
        "#]],
    );
    then(
        "c STARTED; pod relist c=running; d CREATED stale=c:exited",
        expect![],
    );
    then(
        "c STARTED; d CREATED stale=c:exited; pod relist c=exited",
        expect![],
    );
    then(
        "c STARTED; d CREATED stale=c:exited; pod relist c=unknown",
        expect![],
    );
    then(
        "c STARTED state=exited; pod inspect c=running",
        expect![[r#"
        INV-19 at #8 #11 #12: c (c.0.beef): expected RUNNING in STARTED, as ListContainers found it later: EXITED
    "#]],
    );
    then(
        "c STARTED state=exited; pod inspect unlisted c=running",
        expect![[r#"
        INV-19 at #8 #15 #16: c (c.0.beef): expected RUNNING in STARTED, as ContainerStatus found it later: EXITED
    "#]],
    );
}

#[test]
fn a_call_that_was_under_way_proves_nothing() {
    then(
        "c STARTED; pod relist begins; d CREATED stale=c:exited; pod relist returns c=running",
        expect![],
    );
}
