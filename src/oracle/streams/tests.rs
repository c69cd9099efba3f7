//! Which subscriptions of a case a runtime may end, and which not.

#![expect(
    clippy::needless_pass_by_value,
    clippy::needless_raw_string_hashes,
    reason = "this is how expect-test is used"
)]

use expect_test::{Expect, expect};

use crate::oracle::script::{history, render};
use crate::oracle::{Undecided, invariants, judge};
use crate::outcome::Level;

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

/// What an awaited event comes to that does not come.
#[track_caller]
fn awaited_in_vain(how: &str, after: &str) -> Result<(), String> {
    let case = crate::oracle::expectations::tests::case(Level::Must, "no-repeats: {of: pod}");
    let script = format!("pod run; {how}; wait in-vain STOPPED_of_c; end unmet; {after}");
    let judgement = judge(&case, &history(&script));
    if let Some(Undecided::Error(reason)) = judgement.undecided {
        return Err(reason);
    }
    assert_eq!(judgement.violations.len(), 1, "{script}");
    Ok(())
}

#[test]
fn what_a_runtime_that_was_lost_did_not_send_nobody_can_demand() {
    let lost = "pod stop fails";
    let ended = "stream ends UNAVAILABLE";
    let why = "the event stream ended, and so did the runtime: it ended with UNAVAILABLE";
    assert_eq!(awaited_in_vain(ended, lost), Err(why.to_owned()));
    assert_eq!(
        awaited_in_vain(ended, "pod remove begins"),
        Err(why.to_owned())
    );
    let why = "the event stream ended, and so did the runtime: the runtime ended it with OK";
    assert_eq!(awaited_in_vain("stream ends", lost), Err(why.to_owned()));
    // One that goes on owes it all the same.
    assert_eq!(awaited_in_vain(ended, "pod stop"), Ok(()));
    assert_eq!(awaited_in_vain("resubscribe", lost), Ok(()));
    assert_eq!(awaited_in_vain("pass 1s", lost), Ok(()));
}
