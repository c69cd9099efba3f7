//! Which subscriptions of a case a runtime may end, and which not.

#![expect(
    clippy::needless_pass_by_value,
    clippy::needless_raw_string_hashes,
    reason = "this is how expect-test is used"
)]

use expect_test::{Expect, expect};

use crate::oracle::invariants;
use crate::oracle::script::{history, render};

/// What is told of a subscription that ends before a call that succeeds.
#[track_caller]
fn check(subscription: &str, expect: Expect) {
    let script = format!("observe 7 {subscription} proven; observe 7 ends=8; pod run");
    let violations = invariants(&history(&script));
    let own = violations.iter().filter(|found| found.rule == "INV-21");
    expect.assert_eq(&render(own));
}

#[test]
fn a_subscription_of_a_case_stays_open() {
    check(
        "as=b",
        expect![[r#"
        INV-21 at #3 #5: stream 7: expected a stream that stays open as long as the runtime runs: it ended with RESOURCE_EXHAUSTED
    "#]],
    );
}

#[test]
fn one_that_asks_for_its_end_or_does_not_read_may_end() {
    check("as=b deadline=3s", expect![]);
    check("as=b stalls", expect![]);
}
