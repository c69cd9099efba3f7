//! What checks on subscriptions hold, and what breaks them.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "this is how expect-test is used"
)]

use expect_test::expect;

use crate::oracle::expectations::tests::check;

#[test]
fn a_subscription_sees_what_the_stream_of_all_cases_sees() {
    let same = "same-events: {of: b}";
    check(
        same,
        "pod run; observe 7 as=b proven; c create; c CREATED at=last; c CREATED on=7 at=last; end",
        expect!["holds"],
    );
    check(
        same,
        "pod run; observe 7 as=b proven; c create; c CREATED at=last; pass 1s; end",
        expect![[r#"
            waits for CREATED on b, too (c (c.0.beef) on b, stream 7) of b
            ORD-01 at #3 #4 #7: b, stream 7: expected CREATED on b, too (c (c.0.beef) on b, stream 7): it has not come
        "#]],
    );
}

#[test]
fn a_subscription_may_end_with_an_error_and_not_with_ok() {
    let same = "same-events: {of: b}";
    check(
        same,
        "pod run; observe 7 as=b proven; observe 7 ends=8; c create; c CREATED at=last; end",
        expect!["holds"],
    );
    check(
        same,
        "pod run; observe 7 as=b proven; observe 7 ends=0; c create; c CREATED at=last; end",
        expect![[r#"
            ORD-01 at #3 #5: b, stream 7: expected an end that tells of what has not come: the runtime ended the stream with OK
        "#]],
    );
}

#[test]
fn a_subscription_stays_open() {
    let open = "stays-open: {of: b}";
    check(
        open,
        "observe 7 as=b proven; end; observe 7 cancelled",
        expect!["holds"],
    );
    check(
        open,
        "observe 7 as=b proven; observe 7 ends=0; end",
        expect![[r#"
            ORD-01 at #1 #3: b, stream 7: expected a stream that stays open: the runtime ended it with OK
        "#]],
    );
}

#[test]
fn nothing_comes_from_before_the_subscription() {
    let new = "nothing-older: {of: b}";
    check(
        new,
        "pod run; c create; observe 7 as=b; c CREATED on=7; end",
        expect!["holds"],
    );
    check(
        new,
        "pod run; c create; observe 7 as=b; c CREATED on=7 at=-1s; end",
        expect![[r#"
            ORD-01 at #5 #6: b, stream 7: expected no event from before the subscription: CREATED from 999ms before it
        "#]],
    );
}

#[test]
fn the_headers_come_in_time() {
    let answered = "headers: {of: b, at-most: 1s}";
    check(
        answered,
        "observe 7 as=b; observe 7 answered; end",
        expect!["holds"],
    );
    check(
        answered,
        "observe 7 as=b; pass 1s; observe 7 answered; end",
        expect![[r#"
            ORD-01 at #1 #2: b, stream 7: expected the headers of the response within 1s: they came later
        "#]],
    );
    check(
        answered,
        "observe 7 as=b; end",
        expect![[r#"
        ORD-01 at #1: b, stream 7: expected the headers of the response within 1s: they did not come
    "#]],
    );
}

#[test]
fn the_runtime_ends_a_subscription_as_it_shall() {
    let ended = "ended: {of: b, with: [DEADLINE_EXCEEDED], at-least: 3s}";
    check(
        ended,
        "observe 7 as=b; pass 3s; observe 7 ends=4; end",
        expect!["holds"],
    );
    check(
        ended,
        "observe 7 as=b; pass 2s; observe 7 ends=4; end",
        expect![[r#"
            ORD-01 at #1 #2: b, stream 7: expected an end with DEADLINE_EXCEEDED, not before 3s have passed: it ended with DEADLINE_EXCEEDED after 2.001s
        "#]],
    );
    check(
        ended,
        "observe 7 as=b; pass 3s; observe 7 ends=0; end",
        expect![[r#"
            ORD-01 at #1 #2: b, stream 7: expected an end with DEADLINE_EXCEEDED, not before 3s have passed: the runtime ended it with OK after 3.001s
        "#]],
    );
    check(
        ended,
        "observe 7 as=b; pass 3s; end",
        expect![[r#"
        ORD-01 at #1: b, stream 7: expected an end with DEADLINE_EXCEEDED: the stream stayed open
    "#]],
    );
}

const REPLAY: &str = "same-replay: {of: b}";
/// Something has happened, and then two subscribe, one after the other.
const BOTH: &str = "pod run; c create; observe 7 as=b; resubscribe";

#[test]
fn both_are_told_the_same_of_the_past_or_nothing() {
    check(REPLAY, &format!("{BOTH}; end"), expect!["holds"]);
    let both = "c CREATED at=0; c CREATED on=7 at=0";
    check(REPLAY, &format!("{BOTH}; {both}; end"), expect!["holds"]);
}

#[test]
fn what_is_new_is_no_replay() {
    check(
        REPLAY,
        &format!("{BOTH}; c CREATED on=7; end"),
        expect!["holds"],
    );
}

#[test]
fn one_is_told_of_the_past_and_the_other_is_not() {
    check(
        REPLAY,
        &format!("{BOTH}; c CREATED on=7 at=0; end"),
        expect![[r#"
            ORD-01 at #5 #7 #8: b, stream 7: expected the same of what happened before, on both streams: one tells CREATED and the other does not
        "#]],
    );
    check(
        REPLAY,
        &format!("{BOTH}; c CREATED at=0; end"),
        expect![[r#"
            ORD-01 at #5 #7 #8: b, stream 7: expected the same of what happened before, on both streams: one tells CREATED and this one does not
        "#]],
    );
}

#[test]
fn what_happened_as_a_stream_was_asked_for_is_of_the_past() {
    check(
        REPLAY,
        &format!("{BOTH}; c CREATED on=7 at=-3ms; end"),
        expect![[r#"
            ORD-01 at #5 #7 #8: b, stream 7: expected the same of what happened before, on both streams: one tells CREATED and the other does not
        "#]],
    );
    check(
        REPLAY,
        &format!("{BOTH}; c CREATED on=7 at=-1ms; end"),
        expect!["holds"],
    );
}

#[test]
fn a_replay_needs_another_stream_to_be_compared_with() {
    check(
        REPLAY,
        "pod run; c create; observe 7 as=b; end",
        expect![[r#"
            waits for another stream that is asked for later of b
            ORD-01 at #5: b, stream 7: expected another stream that is asked for later: it has not come
        "#]],
    );
}

#[test]
fn an_event_is_soon_on_every_subscription_of_the_name() {
    let soon = "latency: {of: b, event: created, median: 100ms, p99: 1s}";
    let two = "pod run; observe 7 as=b proven; observe 8 as=b proven; c create";
    check(
        soon,
        &format!("{two}; c CREATED; c CREATED on=7; c CREATED on=8; end"),
        expect!["holds"],
    );
    check(
        soon,
        &format!("{two}; c CREATED; c CREATED on=7; c CREATED on=8 at=-2s; end"),
        expect![[r#"
            ORD-01 at #11: b, stream 7: expected CREATED within 100ms, 99 of 100 within 1s: median 0ns, p99 2s, worst 2s of 2
        "#]],
    );
    check(
        soon,
        &format!("{two}; c CREATED; end"),
        expect![[r#"
            waits for CREATED of b
            ORD-01 at #3: b, stream 7: expected CREATED: it has not come
        "#]],
    );
}
