//! For each aftermath, histories on which it holds, and their neighbours on which it does not.

use expect_test::expect;

use crate::checks::testing::check;

#[test]
fn untold_is_what_no_event_and_no_list_shows() {
    const UNTOLD: &str = "aftermath: {of: c, is: absent}";
    check(
        UNTOLD,
        "pod run; c create fails; pod relist; end",
        expect!["holds"],
    );
    check(
        UNTOLD,
        "pod run; c create fails; c CREATED; pod relist; end",
        expect![[r"
        ORD-01 at #3 #4 #5: c: expected no event: CREATED of c.0.beef
    "]],
    );
    check(
        UNTOLD,
        "pod run; c create fails; pod relist c=created; end",
        expect![[r"
        ORD-01 at #3 #4 #5 #6: c: expected nothing of it in any list: ListContainers shows c.0.beef
    "]],
    );
}

#[test]
fn undone_is_what_was_deleted_if_it_was_created() {
    const UNDONE: &str = "aftermath: {of: c, is: rolled-back}";
    check(
        UNDONE,
        "pod run; c create fails; c CREATED; c DELETED; pod relist; end",
        expect!["holds"],
    );
    check(
        UNDONE,
        "pod run; c create fails; c CREATED; pod relist; end",
        expect![[r#"
            waits for DELETED of c.0.beef of c
            ORD-01 at #3 #4 #5: c: expected DELETED of c.0.beef: DELETED has not come
        "#]],
    );
    check(
        UNDONE,
        "pod run; c create fails; c CREATED; c STARTED; c DELETED; pod relist; end",
        expect![[r"
        ORD-01 at #3 #4 #5 #6 #7: c: expected no STARTED: STARTED of c.0.beef
    "]],
    );
    check(
        UNDONE,
        "pod run; c create fails; pod relist c=exited; end",
        expect![[r"
        ORD-01 at #3 #4 #5 #6: c: expected nothing of it in any list: ListContainers shows c.0.beef
    "]],
    );
}

#[test]
fn told_is_what_lists_and_events_agree_on() {
    const TOLD: &str = "aftermath: {of: c, is: consistent}";
    check(
        TOLD,
        "pod run; c create fails; c CREATED; pod relist c=created; end",
        expect!["holds"],
    );
    check(
        TOLD,
        "pod run; c create fails; pod relist c=created; end",
        expect![[r#"
            waits for CREATED of c.0.beef, which a list shows, of c
            ORD-01 at #3 #4 #5 #6: c: expected CREATED of c.0.beef, which a list shows,: CREATED has not come
        "#]],
    );
    check(
        TOLD,
        "pod run; c create fails; c CREATED; pod relist; end",
        expect![[r#"
            waits for DELETED of c.0.beef of c
            ORD-01 at #3 #4 #5 #6 #7: c: expected DELETED of c.0.beef: DELETED has not come
        "#]],
    );
    check(
        TOLD,
        "pod run; c create fails; pod relist; c CREATED; end",
        expect!["holds"],
    );
    check(
        TOLD,
        "pod run; c create; c CREATED; pod relist; end",
        expect![[r#"
            waits for DELETED of c.0.beef of c
            ORD-01 at #3 #4 #5 #6 #7: c: expected DELETED of c.0.beef: DELETED has not come
        "#]],
    );
    check(
        TOLD,
        "pod run; c create; pod relist; end",
        expect![[r#"
            waits for CREATED of c.0.beef of c
            ORD-01 at #3 #4: c: expected CREATED of c.0.beef: CREATED has not come
        "#]],
    );
}

#[test]
fn what_was_told_is_deleted_if_its_sandbox_is_removed() {
    const TOLD: &str = "aftermath: {of: c, is: consistent}";
    let made = "pod run; pod2 run; c create in=pod fails; c CREATED";
    check(
        TOLD,
        &format!("{made}; pod remove; c DELETED; end"),
        expect!["holds"],
    );
    check(TOLD, &format!("{made}; pod2 remove; end"), expect!["holds"]);
    check(
        TOLD,
        &format!("{made}; pod remove; end"),
        expect![[r#"
            waits for DELETED of c.0.beef of c
            ORD-01 at #5 #6 #7: c: expected DELETED of c.0.beef: DELETED has not come
        "#]],
    );
}

#[test]
fn what_another_call_made_is_not_looked_at() {
    check(
        "aftermath: {of: d, is: absent}",
        "pod run; c create; d create fails; c CREATED; pod relist c=created; end",
        expect!["holds"],
    );
}

#[test]
fn what_was_told_before_the_call_or_of_another_pod_is_not_its_own() {
    const UNTOLD: &str = "aftermath: {of: c, is: absent}";
    check(
        UNTOLD,
        "pod run; d create fails; d CREATED; c create fails; end",
        expect!["holds"],
    );
    check(
        UNTOLD,
        "pod run; pod2 run; d create in=pod2 fails; c create in=pod fails; d CREATED; end",
        expect!["holds"],
    );
}

#[test]
fn a_list_before_the_call_or_in_the_teardown_is_not_looked_at() {
    for script in [
        "pod run; pod relist c=created; c create fails; end",
        "pod run; c create begins; pod relist c=created; c create fails returns; end",
        "pod run; c create fails; end; pod relist c=created",
    ] {
        check("aftermath: {of: c, is: absent}", script, expect!["holds"]);
    }
}

#[test]
fn of_a_sandbox_only_a_ready_one_counts() {
    const UNDONE: &str = "aftermath: {of: pod, is: rolled-back}";
    check(
        UNDONE,
        "pod run fails; pod inspect; end",
        expect![[r"
    ORD-01 at #1 #2 #3 #4: pod: expected nothing of it in any list: ListPodSandbox shows pod.0.beef
"]],
    );
    check(UNDONE, "pod run fails; end", expect!["holds"]);
    check(
        UNDONE,
        "pod run fails; pod CREATED; pod STARTED; end",
        expect![[r"
        ORD-01 at #1 #2 #3 #4: pod: expected no STARTED: STARTED of pod.0.beef
    "]],
    );
}

#[test]
fn without_a_call_nothing_could_be_checked() {
    check(
        "aftermath: {of: d, is: absent}",
        "pod run; c create fails; end",
        expect![[r"
        ORD-01 at: d: expected `d`: the case made none, so that nothing could be checked
    "]],
    );
}
