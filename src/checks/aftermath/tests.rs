//! For each aftermath, histories on which it holds, and their neighbours on which it does not.

use expect_test::expect;

use crate::checks::testing::check;

#[test]
fn absent_is_what_no_event_and_no_list_shows() {
    const ABSENT: &str = "aftermath: {of: c, is: absent}";
    check(
        ABSENT,
        "pod run; c create fails; pod relist; end",
        expect!["holds"],
    );
    check(
        ABSENT,
        "pod run; c create fails; c CREATED; pod relist; end",
        expect![[r"
        ORD-01 at #3 #4 #5: c: expected no event: CREATED of c.0.beef
    "]],
    );
    check(
        ABSENT,
        "pod run; c create fails; pod relist c=created; end",
        expect![[r"
        ORD-01 at #3 #4 #5 #6: c: expected nothing of it in any list: ListContainers shows c.0.beef
    "]],
    );
}

#[test]
fn an_answer_with_what_an_earlier_call_has_made_is_nothing_new() {
    const ABSENT: &str = "aftermath: {of: twin, is: absent}";
    check(
        ABSENT,
        "pod run; c create; c CREATED; twin create is=c; pod relist c=created; end",
        expect!["holds"],
    );
    check(
        ABSENT,
        "pod run; c create; c CREATED; twin create; twin CREATED; pod relist c=created; end",
        expect![[r#"
            ORD-01 at #6 #7 #8: twin: expected no event: CREATED of twin.0.beef
        "#]],
    );
    check(
        ABSENT,
        "pod run; c create; c CREATED; twin create is=c; \
         pod relist c=created twin=created; end",
        expect![[r#"
            ORD-01 at #6 #7 #8 #9: twin: expected nothing of it in any list: ListContainers shows twin.0.beef
        "#]],
    );
}

#[test]
fn rolled_back_is_what_was_deleted_if_it_was_created() {
    const ROLLED_BACK: &str = "aftermath: {of: c, is: rolled-back}";
    check(
        ROLLED_BACK,
        "pod run; c create fails; c CREATED; c DELETED; pod relist; end",
        expect!["holds"],
    );
    check(
        ROLLED_BACK,
        "pod run; c create fails; c CREATED; pod relist; end",
        expect![[r#"
            waits for DELETED of c.0.beef of c
            ORD-01 at #3 #4 #5: c: expected DELETED of c.0.beef: DELETED has not come
        "#]],
    );
    check(
        ROLLED_BACK,
        "pod run; c create fails; c CREATED; c STARTED; c DELETED; pod relist; end",
        expect![[r"
        ORD-01 at #3 #4 #5 #6 #7: c: expected no STARTED: STARTED of c.0.beef
    "]],
    );
    check(
        ROLLED_BACK,
        "pod run; c create fails; pod relist c=exited; end",
        expect![[r"
        ORD-01 at #3 #4 #5 #6: c: expected nothing of it in any list: ListContainers shows c.0.beef
    "]],
    );
}

#[test]
fn consistent_is_what_lists_and_events_agree_on() {
    const CONSISTENT: &str = "aftermath: {of: c, is: consistent}";
    check(
        CONSISTENT,
        "pod run; c create fails; c CREATED; pod relist c=created; end",
        expect!["holds"],
    );
    check(
        CONSISTENT,
        "pod run; c create fails; pod relist c=created; end",
        expect![[r#"
            waits for CREATED of c.0.beef, which a list shows, of c
            ORD-01 at #3 #4 #5 #6: c: expected CREATED of c.0.beef, which a list shows,: CREATED has not come
        "#]],
    );
    check(
        CONSISTENT,
        "pod run; c create fails; c CREATED; pod relist; end",
        expect![[r#"
            waits for DELETED of c.0.beef of c
            ORD-01 at #3 #4 #5 #6 #7: c: expected DELETED of c.0.beef: DELETED has not come
        "#]],
    );
    check(
        CONSISTENT,
        "pod run; c create fails; pod relist; c CREATED; end",
        expect!["holds"],
    );
    check(
        CONSISTENT,
        "pod run; pod2 run; c create in=pod2 fails; c CREATED; run inspect on-demand; end",
        expect!["holds"],
    );
    check(
        CONSISTENT,
        "pod run; c create; c CREATED; pod relist; end",
        expect![[r#"
            waits for DELETED of c.0.beef of c
            ORD-01 at #3 #4 #5 #6 #7: c: expected DELETED of c.0.beef: DELETED has not come
        "#]],
    );
    check(
        CONSISTENT,
        "pod run; c create; pod relist; end",
        expect![[r#"
            waits for CREATED of c.0.beef of c
            ORD-01 at #3 #4: c: expected CREATED of c.0.beef: CREATED has not come
        "#]],
    );
}

#[test]
fn an_announced_container_is_deleted_with_its_sandbox() {
    const CONSISTENT: &str = "aftermath: {of: c, is: consistent}";
    let created = "pod run; pod2 run; c create in=pod fails; c CREATED";
    check(
        CONSISTENT,
        &format!("{created}; pod remove; c DELETED; end"),
        expect!["holds"],
    );
    check(
        CONSISTENT,
        &format!("{created}; pod2 remove; end"),
        expect!["holds"],
    );
    check(
        CONSISTENT,
        &format!("{created}; pod remove; end"),
        expect![[r#"
            waits for DELETED of c.0.beef of c
            ORD-01 at #5 #6 #7: c: expected DELETED of c.0.beef: DELETED has not come
        "#]],
    );
}

#[test]
fn containers_of_other_calls_do_not_count() {
    check(
        "aftermath: {of: d, is: absent}",
        "pod run; c create; d create fails; c CREATED; pod relist c=created; end",
        expect!["holds"],
    );
}

#[test]
fn events_from_before_the_call_or_of_another_pod_do_not_count() {
    const ABSENT: &str = "aftermath: {of: c, is: absent}";
    check(
        ABSENT,
        "pod run; d create fails; d CREATED; c create fails; end",
        expect!["holds"],
    );
    check(
        ABSENT,
        "pod run; pod2 run; d create in=pod2 fails; c create in=pod fails; d CREATED; end",
        expect!["holds"],
    );
}

#[test]
fn a_list_before_the_call_or_in_the_teardown_does_not_count() {
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
    const ROLLED_BACK: &str = "aftermath: {of: pod, is: rolled-back}";
    check(
        ROLLED_BACK,
        "pod run fails; pod inspect; end",
        expect![[r"
    ORD-01 at #1 #2 #3 #4: pod: expected nothing of it in any list: ListPodSandbox shows pod.0.beef
"]],
    );
    check(ROLLED_BACK, "pod run fails; end", expect!["holds"]);
    check(
        ROLLED_BACK,
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

#[test]
fn a_call_that_may_fail_may_succeed() {
    const UNSTARTED: &str = "aftermath: {of: c, is: unstarted}";
    const ROLLED_BACK: &str = "aftermath: {of: c, is: rolled-back}";
    let listed = "pod relist c=created; end";
    check(
        ROLLED_BACK,
        &format!("pod run; c create; c CREATED; {listed}"),
        expect!["holds"],
    );
    check(
        ROLLED_BACK,
        &format!("pod run; c create; {listed}"),
        expect![[r#"
            waits for CREATED of c.0.beef of c
            ORD-01 at #3 #4: c: expected CREATED of c.0.beef: CREATED has not come
        "#]],
    );
    let created = "pod run; c create; c CREATED";
    for fits in ["c start; c STARTED", "c start fails; c STOPPED"] {
        check(
            UNSTARTED,
            &format!("{created}; {fits}; end"),
            expect!["holds"],
        );
    }
    check(
        UNSTARTED,
        &format!("{created}; c start; end"),
        expect![[r#"
            waits for STARTED of c.0.beef of c
            ORD-01 at #3 #4 #5: c: expected STARTED of c.0.beef: STARTED has not come
        "#]],
    );
    check(
        UNSTARTED,
        &format!("{created}; c start fails; c STARTED; end"),
        expect![[r#"
            ORD-01 at #3 #4 #5 #8: c: expected no STARTED: STARTED of c.0.beef
        "#]],
    );
}
