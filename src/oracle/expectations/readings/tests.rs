//! For each check, histories on which it holds, is broken, or is still waiting.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "this is how expect-test is used"
)]

use expect_test::expect;

use crate::oracle::expectations::tests::check;

const SHOWN: &str = "shown: {of: c, event: stopped}";
const GONE: &str = "shown: {of: c, event: deleted, within: 100ms}";
const LIFE: &str = "pod run; c create; c CREATED; c start; c STARTED";

#[test]
fn what_is_asked_after_stopped_shows_exited() {
    let script = format!("{LIFE}; pod inspect c=running; c STOPPED; pod inspect c=exited; end");
    check(SHOWN, &script, expect!["holds"]);
}

#[test]
fn what_is_asked_after_stopped_does_not_show_running() {
    let script = format!("{LIFE}; c STOPPED; pod inspect c=running; end");
    check(
        SHOWN,
        &script,
        expect![[r#"
        ORD-01 at #9 #16 #17: c (c.0.beef): expected what was asked after STOPPED to show as much: ContainerStatus shows it RUNNING, 7ms after it
    "#]],
    );
}

#[test]
fn a_list_after_stopped_does_not_show_running() {
    check(
        SHOWN,
        &format!("{LIFE}; c STOPPED; pod relist c=running; end"),
        expect![[r#"
            ORD-01 at #9 #10 #11: c (c.0.beef): expected what was asked after STOPPED to show as much: ListContainers shows it RUNNING, 1ms after it
        "#]],
    );
}

#[test]
fn what_was_asked_before_the_event_came_does_not_count() {
    let script = format!("{LIFE}; pod relist begins; c STOPPED; pod relist returns c=running; end");
    check(
        SHOWN,
        &script,
        expect![[r#"
        waits for a list or status that was asked for after STOPPED of c
        ORD-01 at #10: c (c.0.beef): expected a list or status that was asked for after STOPPED: it has not come
    "#]],
    );
}

#[test]
fn a_container_that_is_being_removed_may_be_gone() {
    let script = format!("{LIFE}; c STOPPED; c remove begins; pod inspect c=gone; end");
    check(SHOWN, &script, expect!["holds"]);
}

#[test]
fn a_container_that_nobody_removes_is_not_gone() {
    let script = format!("{LIFE}; c STOPPED; pod inspect c=gone; end");
    check(
        SHOWN,
        &script,
        expect![[r#"
        ORD-01 at #9 #16 #17: c (c.0.beef): expected what was asked after STOPPED to show as much: ContainerStatus does not show it, 7ms after it
    "#]],
    );
}

#[test]
fn a_container_is_not_gone_before_its_removal() {
    check(
        SHOWN,
        &format!("{LIFE}; c STOPPED; pod inspect c=gone; c remove; end"),
        expect![[r#"
            ORD-01 at #9 #16 #17: c (c.0.beef): expected what was asked after STOPPED to show as much: ContainerStatus does not show it, 7ms after it
        "#]],
    );
}

#[test]
fn an_answer_that_fails_shows_nothing() {
    check(
        SHOWN,
        &format!("{LIFE}; c STOPPED; pod inspect c=exited unanswered; end"),
        expect![[r#"
            waits for a list or status that was asked for after STOPPED of c
            ORD-01 at #9: c (c.0.beef): expected a list or status that was asked for after STOPPED: it has not come
        "#]],
    );
}

#[test]
fn what_is_deleted_may_be_shown_for_a_moment() {
    let script = format!(
        "{LIFE}; c STOPPED; c remove; c DELETED; pod relist c=exited; pass 100ms; \
         pod inspect c=gone; end"
    );
    check(GONE, &script, expect!["holds"]);
}

#[test]
fn what_is_deleted_is_not_shown_for_longer() {
    let script =
        format!("{LIFE}; c STOPPED; c remove; c DELETED; pass 99ms; pod relist c=exited; end");
    check(
        GONE,
        &script,
        expect![[r#"
            ORD-01 at #12 #13 #14: c (c.0.beef): expected what was asked after DELETED to show as much: ListContainers shows it EXITED, 100ms after it
        "#]],
    );
}

#[test]
fn a_sandbox_is_shown_as_its_events_tell() {
    let script = "pod run; pod STARTED; pod stop; pod STOPPED; pod inspect; end";
    check("shown: {of: pod, event: stopped}", script, expect!["holds"]);
    let listed = script.replace("pod inspect", "run inspect");
    check(
        "shown: {of: pod, event: stopped}",
        &listed,
        expect!["holds"],
    );
}

#[test]
fn a_sandbox_that_is_listed_after_deleted_is_not() {
    let script = "pod run; pod STARTED; pod remove; pod DELETED; pod inspect; end";
    check(
        "shown: {of: pod, event: deleted}",
        script,
        expect![[r#"
        ORD-01 at #6 #11 #12: pod (pod.0.beef): expected what was asked after DELETED to show as much: PodSandboxStatus shows it NOTREADY, 5ms after it
    "#]],
    );
}

#[test]
fn a_sandbox_that_a_list_of_all_shows_after_deleted_is_not() {
    check(
        "shown: {of: pod, event: deleted}",
        "pod run; pod STARTED; pod remove; pod DELETED; run inspect; end",
        expect![[r#"
            ORD-01 at #6 #7 #8: pod (pod.0.beef): expected what was asked after DELETED to show as much: ListPodSandbox shows it NOTREADY, 1ms after it
        "#]],
    );
}

#[test]
fn an_answer_or_not_found_is_one() {
    let script = format!("{LIFE}; pod inspect c=gone; end");
    check("answered: {of: c}", &script, expect!["holds"]);
}

#[test]
fn another_fault_is_none() {
    let script = format!("{LIFE}; pod inspect c=running unanswered; end");
    check(
        "answered: {of: c}",
        &script,
        expect![[r#"
        ORD-01 at #15 #16: c (c.0.beef): expected a status of ContainerStatus, or NOT_FOUND: UNAVAILABLE
    "#]],
    );
}

#[test]
fn nothing_was_asked() {
    check(
        "answered: {of: c}",
        &format!("{LIFE}; end"),
        expect![[r#"
        waits for the answer to a call that asks for its status of c
        ORD-01 at: c (c.0.beef): expected the answer to a call that asks for its status: it has not come
    "#]],
    );
}

#[test]
fn an_end_stays() {
    let script = format!("{LIFE}; c STOPPED exit=1; pod inspect c=exited:1; end");
    check("final: {of: c}", &script, expect!["holds"]);
}

#[test]
fn an_end_changes() {
    let script = format!("{LIFE}; c STOPPED exit=255; pod inspect c=exited:1; end");
    check(
        "final: {of: c}",
        &script,
        expect![[r#"
            ORD-01 at #9 #16 #17: c (c.0.beef): expected exit code 255, as STOPPED reported: exit code 1
        "#]],
    );
}

#[test]
fn an_end_of_which_nobody_has_asked_waits() {
    let script = format!("{LIFE}; pod inspect c=running; c STOPPED; end");
    check(
        "final: {of: c}",
        &script,
        expect![[r#"
        waits for a status that was asked for after STOPPED of c
        ORD-01 at: c (c.0.beef): expected a status that was asked for after STOPPED: it has not come
    "#]],
    );
}

const ALL: &str = "all-containers: {of: c}";

#[test]
fn all_containers_are_those_that_stay() {
    let script = "pod run; d create; d CREATED; e create; e CREATED; pod relist d=created e=created; \
                  c create; e remove; c CREATED without=e; pod relist d=created c=created; end";
    check(ALL, script, expect!["holds"]);
}

#[test]
fn a_container_is_missing() {
    let script = "pod run; d create; d CREATED; pod relist d=created; c create; \
                  c CREATED without=d; pod relist d=created c=created; end";
    check(
        ALL,
        script,
        expect![[r#"
        ORD-01 at #7 #10 #11: c (c.0.beef): expected the containers that the lists before and after show: CREATED lacks d.0.beef, which both show
    "#]],
    );
}

#[test]
fn a_container_is_another_sandboxs() {
    let script = "pod run; d create; d CREATED; pod relist d=created; c create; \
                  c CREATED; pod relist c=created; pod relist c=created; end";
    check(
        ALL,
        &script.replace("pod relist d=created", "pod relist"),
        expect![[r#"
        ORD-01 at #7 #10 #11: c (c.0.beef): expected the containers that the lists before and after show: CREATED has d.0.beef, which neither shows
    "#]],
    );
}

#[test]
fn a_list_after_the_cause_began_is_none_before_the_event() {
    let script = "pod run; d create; d CREATED; c create begins; pod relist d=created; \
                  c create returns; c CREATED; pod relist d=created c=created; end";
    check(
        ALL,
        script,
        expect![[r#"
        waits for an event between two lists of its sandbox's containers of c
        ORD-01 at: c (c.0.beef): expected an event between two lists of its sandbox's containers: it has not come
    "#]],
    );
}
