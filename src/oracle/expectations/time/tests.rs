//! For each check, histories on which it holds, is broken, or is still waiting.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "this is how expect-test is used"
)]

use expect_test::expect;

use crate::oracle::expectations::tests::check;

const STAMPED: &str = "stamped: {of: c}";

#[test]
fn an_event_of_a_sandbox_is_not_made_before_its_cause() {
    let of_pod = "stamped: {of: pod}";
    check(
        of_pod,
        "pass 1s; pod run; pod STARTED; end",
        expect!["holds"],
    );
    check(
        of_pod,
        "pass 1s; pod run; pod STARTED at=-40ms; end",
        expect![[r#"
            ORD-01 at #1 #3: pod (pod.0.beef): expected created_at of STARTED not before RunPodSandbox: 38ms before it
        "#]],
    );
}

#[test]
fn an_event_is_made_between_its_cause_and_its_arrival() {
    let script = "pod run; pass 1s; c create; c CREATED; pass 1s; c start; c STARTED; end";
    check(STAMPED, script, expect!["holds"]);
    // The clocks may differ by a tick of the kernel's.
    for made in ["STARTED at=-12ms", "STARTED at=+10ms"] {
        let script = script.replace("STARTED", made);
        check(STAMPED, &script, expect!["holds"]);
    }
    check(
        STAMPED,
        &script.replace("STARTED", "STARTED at=-20ms"),
        expect![[r#"
        ORD-01 at #6 #8: c (c.0.beef): expected created_at of STARTED not before StartContainer: 18ms before it
    "#]],
    );
    check(
        STAMPED,
        &script.replace("STARTED", "STARTED at=+20ms"),
        expect![[r#"
        ORD-01 at #6 #8: c (c.0.beef): expected created_at of STARTED not after its arrival: 20ms after it
    "#]],
    );
}

#[test]
fn a_removal_is_the_cause_of_deleted() {
    let made = "pod run; pod2 run; d create in=pod2; c create in=pod; c CREATED";
    for (removal, expect) in [
        (
            "d remove; pass 1s; c remove",
            expect![[r#"
            ORD-01 at #12 #14: c (c.0.beef): expected created_at of DELETED not before RemoveContainer: 18ms before it
        "#]],
        ),
        (
            "pod2 remove; pass 1s; pod remove",
            expect![[r#"
            ORD-01 at #12 #14: c (c.0.beef): expected created_at of DELETED not before RemovePodSandbox: 18ms before it
        "#]],
        ),
    ] {
        let script = format!("{made}; {removal}; c DELETED at=-20ms; end");
        check(STAMPED, &script, expect);
    }
}

#[test]
fn a_sandbox_is_stopped_and_deleted_by_calls_of_its_own() {
    let stamped = "stamped: {of: pod}";
    let life = "pod run; pod STARTED; pass 1s; pod stop; pod STOPPED; pass 1s; pod remove; \
                pod DELETED; end";
    check(stamped, life, expect!["holds"]);
    let wrong = |event: &str| life.replace(event, &format!("{event} at=-20ms"));
    check(
        stamped,
        &wrong("STOPPED"),
        expect![[r#"
        ORD-01 at #4 #6: pod (pod.0.beef): expected created_at of STOPPED not before StopPodSandbox: 18ms before it
    "#]],
    );
    check(
        stamped,
        &wrong("DELETED"),
        expect![[r#"
        ORD-01 at #7 #9: pod (pod.0.beef): expected created_at of DELETED not before RemovePodSandbox: 18ms before it
    "#]],
    );
}

#[test]
fn stopped_is_made_after_the_exit() {
    let script = "pod run; c create; c start; pass 2s; c STOPPED finished=+1s; end";
    check(STAMPED, script, expect!["holds"]);
    check(
        STAMPED,
        &script.replace("STOPPED", "STOPPED at=-1500ms"),
        expect![[r#"
        ORD-01 at #7: c (c.0.beef): expected created_at of STOPPED not before finished_at: 492.000002ms before it
    "#]],
    );
}

#[test]
fn times_lie_within_the_calls_that_set_them() {
    let script = "pod run; c create; c CREATED; c start; c STARTED; c STOPPED; end";
    check("times: {of: c}", script, expect!["holds"]);
    let wrong = |words: &str| script.replace("STOPPED", &format!("STOPPED {words}"));
    // A tick before the call began, and 50 ms after it has returned.
    for just in ["started=-3000001ns", "started=+57999999ns"] {
        check("times: {of: c}", &wrong(just), expect!["holds"]);
    }
    check(
        "times: {of: c}",
        &wrong("started=+1s"),
        expect![[r#"
        ORD-01 at #9: c (c.0.beef): expected started_at within StartContainer in STOPPED: 942.000001ms after it
    "#]],
    );
    check(
        "times: {of: c}",
        &wrong("started=-1s"),
        expect![[r#"
        ORD-01 at #9: c (c.0.beef): expected started_at within StartContainer in STOPPED: 996.999999ms before it
    "#]],
    );
    check(
        "times: {of: c}",
        &wrong("finished=+1s"),
        expect![[r#"
        ORD-01 at #9: c (c.0.beef): expected finished_at within the start and the event's arrival in STOPPED: 980.000002ms after it
    "#]],
    );
    check(
        "times: {of: c}",
        &wrong("finished=0"),
        expect![[r#"
        ORD-01 at #9: c (c.0.beef): expected finished_at within the start and the event's arrival in STOPPED: 1699999999.997s before it
    "#]],
    );
}

const LATENCY: &str = "latency: {of: c, event: created, median: 10ms, p99: 50ms}";

#[test]
fn half_of_the_events_and_99_of_100_come_in_time() {
    let life = |at: &str| format!("c create; c CREATED at=-{at}");
    let lives = |spans: &[&str]| {
        let lives: Vec<_> = spans.iter().map(|span| life(span)).collect();
        format!("pod run; {}; end", lives.join("; "))
    };
    check(LATENCY, &lives(&["1ms", "10ms", "50ms"]), expect!["holds"]);
    check(
        LATENCY,
        &lives(&["1ms", "11ms", "50ms"]),
        expect![[r#"
        ORD-01 at #11: c (c.0.beef): expected CREATED within 10ms, 99 of 100 within 50ms: median 11ms, p99 50ms, worst 50ms of 3
    "#]],
    );
    check(
        LATENCY,
        &lives(&["1ms", "10ms", "51ms"]),
        expect![[r#"
        ORD-01 at #11: c (c.0.beef): expected CREATED within 10ms, 99 of 100 within 50ms: median 10ms, p99 51ms, worst 51ms of 3
    "#]],
    );
    check(
        LATENCY,
        "pod run; c create; end",
        expect![[r#"
        waits for CREATED of c
        ORD-01 at #3 #4: c (c.0.beef): expected CREATED: it has not come
    "#]],
    );
}
