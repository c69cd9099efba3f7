//! What a status in an event or a reply says.

use expect_test::expect;

use super::check;

#[test]
fn a_status_with_this_exit_code() {
    let is = "status: {of: c, event: stopped, exit-code: {is: 137}}";
    check(
        is,
        "pod run; c create; c STOPPED exit=137; end",
        expect!["holds"],
    );
    check(
        is,
        "pod run; c create; c STOPPED exit=0; end",
        expect![[r#"
        ORD-01 at #5: c (c.0.beef): expected exit code 137 in STOPPED: exit code 0, reason `Completed`
    "#]],
    );
    check(
        is,
        "pod run; c create; c STARTED; end",
        expect![[r#"
        waits for STOPPED of c
        ORD-01 at #3 #4 #5: c (c.0.beef): expected STOPPED: it has not come
    "#]],
    );
    check(
        is,
        "pod run; c create; c STOPPED missing; end",
        expect![[r#"
        ORD-01 at #5: c (c.0.beef): expected the container's own status in STOPPED: it is not there
    "#]],
    );
}

#[test]
fn a_status_with_any_other_exit_code() {
    let not = "status: {of: c, event: stopped, exit-code: {not: 137}}";
    check(
        not,
        "pod run; c create; c STOPPED exit=128; end",
        expect!["holds"],
    );
    check(
        not,
        "pod run; c create; c STOPPED exit=137; end",
        expect![[r#"
        ORD-01 at #5: c (c.0.beef): expected exit code any but 137 in STOPPED: exit code 137, reason `Error`
    "#]],
    );
}

#[test]
fn a_status_with_the_declared_exit_code() {
    let declared = "status: {of: c, event: stopped, exit-code: declared}";
    check(
        declared,
        "pod run; c create exit=42; c STOPPED exit=42; end",
        expect!["holds"],
    );
    check(
        declared,
        "pod run; c create exit=42; c STOPPED exit=255; end",
        expect![[r#"
            ORD-01 at #5: c (c.0.beef): expected exit code 42 in STOPPED: exit code 255, reason `Error`
        "#]],
    );
}

#[test]
fn a_status_with_one_of_these_reasons() {
    let reason = "status: {of: c, event: stopped, reason: [OOMKilled, Killed]}";
    check(
        reason,
        "pod run; c create; c STOPPED exit=137 reason=Killed; end",
        expect!["holds"],
    );
    check(
        reason,
        "pod run; c create; c STOPPED exit=137; end",
        expect![[r#"
            ORD-01 at #5: c (c.0.beef): expected reason `OOMKilled` or `Killed` in STOPPED: reason `Error`, exit code 137
        "#]],
    );
}

#[test]
fn a_reason_is_case_sensitive() {
    check(
        "status: {of: c, event: stopped, reason: [OOMKilled]}",
        "pod run; c create; c STOPPED exit=137 reason=OomKilled; end",
        expect![[r#"
            ORD-01 at #5: c (c.0.beef): expected reason `OOMKilled` in STOPPED: reason `OomKilled`, exit code 137
        "#]],
    );
}

#[test]
fn sandbox_status() {
    let sandbox_status = "sandbox-status: {of: c}";
    check(
        sandbox_status,
        "pod run; c create; c CREATED; end",
        expect!["holds"],
    );
    check(
        sandbox_status,
        "pod run; c create; c CREATED no-sandbox; end",
        expect![[r#"
            ORD-01 at #5: c (c.0.beef): expected a sandbox status with the UID `uid-of-pod` in CREATED: none
        "#]],
    );
    check(
        sandbox_status,
        "pod run; c create; c CREATED no-metadata; end",
        expect![[r#"
            ORD-01 at #5: c (c.0.beef): expected a sandbox status with the UID `uid-of-pod` in CREATED: one without metadata
        "#]],
    );
    check(
        sandbox_status,
        "pod run; c create; c CREATED uid=x; end",
        expect![[r#"
            ORD-01 at #5: c (c.0.beef): expected a sandbox status with the UID `uid-of-pod` in CREATED: the UID `x`
        "#]],
    );
    check(
        sandbox_status,
        "pod run; c create; c CREATED; end; c DELETED uid=x",
        expect!["holds"],
    );
}

#[test]
fn sandbox_status_of_a_sandbox() {
    let sandbox_status = "sandbox-status: {of: pod}";
    check(
        sandbox_status,
        "pod run; pod STARTED; end",
        expect!["holds"],
    );
    check(
        sandbox_status,
        "pod run; pod STARTED; pod DELETED no-sandbox; end",
        expect![[r#"
            ORD-01 at #4: pod (pod.0.beef): expected a sandbox status with the UID `uid-of-pod` in DELETED: none
        "#]],
    );
}

#[test]
fn own_status() {
    let own_status = "own-status: {of: c}";
    check(
        own_status,
        "pod run; c create; c CREATED; c STOPPED; c DELETED; end",
        expect!["holds"],
    );
    check(
        own_status,
        "pod run; c create; c CREATED missing; end",
        expect![[r#"
            ORD-01 at #5: c (c.0.beef): expected 1 status of the container in CREATED: 0, among 0 statuses
        "#]],
    );
    check(
        own_status,
        "pod run; c create; c CREATED twice; end",
        expect![[r#"
            ORD-01 at #5: c (c.0.beef): expected 1 status of the container in CREATED: 2, among 2 statuses
        "#]],
    );
    check(
        own_status,
        "pod run; c create; c CREATED; c DELETED present; end",
        expect![[r#"
            ORD-01 at #6: c (c.0.beef): expected 0 status of the container in DELETED: 1, among 1 statuses
        "#]],
    );
}

#[test]
fn own_status_beside_others() {
    check(
        "own-status: {of: c}",
        "pod run; d create; d CREATED; c create; c CREATED; c DELETED; end",
        expect!["holds"],
    );
}
