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
        "pod run; observe 7 as=b proven; c create; c CREATED at=last; end",
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
