//! Events that come in time, or too early, or too late.

use expect_test::expect;

use super::check;

const BETWEEN: &str =
    "timing: {of: c, event: stopped, after: stop-called, at-least: 2s, at-most: 12s}";

#[test]
fn an_event_in_time() {
    for after in ["1999ms", "11999ms"] {
        let script = format!("pod run; c create; c stop begins; pass {after}; c STOPPED; end");
        check(BETWEEN, &script, expect!["holds"]);
    }
}

#[test]
fn an_event_too_early() {
    check(
        BETWEEN,
        "pod run; c create; c stop begins; pass 1998ms; c STOPPED; c stop returns; end",
        expect![[r#"
            ORD-01 at #5 #6: c (c.0.beef): expected STOPPED not before 2s have passed: 1.999s after StopContainer was called
        "#]],
    );
}

#[test]
fn an_event_too_late() {
    check(
        BETWEEN,
        "pod run; c create; c stop begins; pass 12s; c STOPPED; c stop returns; end",
        expect![[r#"
            ORD-01 at #5 #6: c (c.0.beef): expected STOPPED within 12s: 12.001s after StopContainer was called
        "#]],
    );
}

#[test]
fn an_event_before_its_call_is_too_early_for_any_bound() {
    let not_before = "timing: {of: c, event: stopped, after: stop-called, at-least: 0s}";
    check(
        not_before,
        "pod run; c create; c STOPPED; c stop; end",
        expect![[r#"
            ORD-01 at #5 #6: c (c.0.beef): expected STOPPED not before 0ns have passed: 1ms before StopContainer was called
        "#]],
    );
    check(
        not_before,
        "pod run; c create; c stop begins; c STOPPED; end",
        expect!["holds"],
    );
}

#[test]
fn an_event_before_its_call_is_not_too_late() {
    check(
        "timing: {of: c, event: stopped, after: stop-returned, at-most: 0s}",
        "pod run; c create; c stop begins; c STOPPED; c stop returns; end",
        expect!["holds"],
    );
}

#[test]
fn an_event_that_does_not_come_has_no_time() {
    check(
        BETWEEN,
        "pod run; c create; c stop; end",
        expect![[r#"
        waits for STOPPED of c
        ORD-01 at #3 #4 #5 #6: c (c.0.beef): expected STOPPED: it has not come
    "#]],
    );
}

#[test]
fn the_latest_such_call_on_the_same_subject_counts() {
    check(
        "timing: {of: c, event: stopped, after: stop-called, at-most: 1s}",
        "pod run; c create; d create; c stop; pass 2s; c stop; c STOPPED; d stop; end",
        expect!["holds"],
    );
}

#[test]
fn a_call_on_another_subject_or_in_the_teardown_does_not_count() {
    check(
        "timing: {of: c, event: stopped, after: stop-called, at-least: 1s}",
        "pod run; c create; d create; c stop begins; pass 1s; c STOPPED; d stop; end; c stop",
        expect!["holds"],
    );
}

#[test]
fn each_edge_is_found() {
    check(
        "timing: {of: pod, event: started, after: sandbox-returned, at-most: 50ms}",
        "pod run; pass 50ms; pod STARTED; end",
        expect![[r#"
            ORD-01 at #2 #3: pod (pod.0.beef): expected STARTED within 50ms: 51ms after RunPodSandbox returned
        "#]],
    );
    check(
        "timing: {of: c, event: stopped, after: start-returned, at-most: 2s}",
        "pod run; c create; c start; pass 2s; c STOPPED; end",
        expect![[r#"
            ORD-01 at #6 #7: c (c.0.beef): expected STOPPED within 2s: 2.001s after StartContainer returned
        "#]],
    );
    check(
        "timing: {of: pod, event: stopped, after: stop-sandbox-called, at-most: 1s}",
        "pod run; pod stop begins; pass 1s; pod STOPPED; end",
        expect![[r#"
            ORD-01 at #3 #4: pod (pod.0.beef): expected STOPPED within 1s: 1.001s after StopPodSandbox was called
        "#]],
    );
}
