//! For each invariant, histories that break it and their nearest neighbours that do not.

#![expect(
    clippy::needless_pass_by_value,
    clippy::needless_raw_string_hashes,
    reason = "this is how expect-test is used"
)]

mod content;
mod order;
mod snapshots;

use expect_test::{Expect, expect};

use super::invariants;
use crate::oracle::script::{history, render};

/// A container whose events do not matter to the test, up to its creation.
const MADE: &str = "pod run; c create; c CREATED";

#[track_caller]
fn check(script: &str, expect: Expect) {
    expect.assert_eq(&render(&invariants(&history(script))));
}

/// As [`check`], after a container has been made in #1 to #5.
#[track_caller]
fn then(script: &str, expect: Expect) {
    check(&format!("{MADE}; {script}"), expect);
}

// INV-21

#[test]
fn a_runtime_that_ends_a_stream_and_answers_on_is_told() {
    then(
        "stream ends; c start; end",
        expect![[r#"
        INV-21 at #6 #8: stream 0: expected a stream that stays open as long as the runtime runs: the runtime ended it with OK
    "#]],
    );
    then("stream ends UNAVAILABLE; c start fails; end", expect![]);
    then(
        "stream ends UNAVAILABLE; end; pod stop",
        expect![[r#"
        INV-21 at #6 #9: stream 0: expected a stream that stays open as long as the runtime runs: it ended with UNAVAILABLE
    "#]],
    );
}

#[test]
fn a_runtime_that_is_gone_ends_its_streams() {
    then(
        "stream ends UNAVAILABLE; c start fails; pod stop; end",
        expect![],
    );
    then(
        "c start begins; stream ends UNAVAILABLE; c start returns fails; pod stop; end",
        expect![],
    );
    then("stream ends UNAVAILABLE; end", expect![]);
}

#[test]
fn a_runtime_that_refuses_a_call_is_there() {
    then(
        "stream ends; c start refused; pod stop; end",
        expect![[r#"
        INV-21 at #6 #10: stream 0: expected a stream that stays open as long as the runtime runs: the runtime ended it with OK
    "#]],
    );
}

#[test]
fn a_stream_that_we_gave_up_is_no_end() {
    then("resubscribe; c start; c STARTED; end", expect![]);
}

// All of them

#[test]
fn one_violation_of_each_rule_is_told_for_a_subject() {
    then(
        "c TYPE=7; c TYPE=8; c STARTED no-sandbox; c STOPPED no-sandbox",
        expect![[r#"
        INV-03 at #6: c (c.0.beef): expected a type from 0 to 3: type 7
        INV-06 at #8: c (c.0.beef): expected pod_sandbox_status with the UID `uid-of-pod`: no pod_sandbox_status in STARTED
    "#]],
    );
}
