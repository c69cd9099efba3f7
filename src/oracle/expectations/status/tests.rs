//! Containers whose end is explained, and their neighbours of which nobody learns why.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "this is how expect-test is used"
)]

use expect_test::expect;

use crate::oracle::expectations::tests::check;

const EXPLAINED: &str = "explained: {of: c}";
const FAILED: &str = "pod run; c create; c CREATED; c start fails";

#[test]
fn an_event_says_why_a_container_ended() {
    check(
        EXPLAINED,
        &format!("{FAILED}; c STOPPED exit=128 message=why; end"),
        expect!["holds"],
    );
    check(
        EXPLAINED,
        &format!("{FAILED}; c STOPPED exit=128; end"),
        expect![[r#"
            ORD-01 at #8: c (c.0.beef): expected a message in the status of STOPPED: none, reason `Error`
        "#]],
    );
}

#[test]
fn a_status_says_why_a_container_ended() {
    check(
        EXPLAINED,
        &format!("{FAILED}; pod inspect c=exited:128:why d=exited:1; end"),
        expect!["holds"],
    );
    check(
        EXPLAINED,
        &format!("{FAILED}; pod inspect c=exited:128; end"),
        expect![[r#"
            ORD-01 at #15: c (c.0.beef): expected a message in the status of ContainerStatus: none, reason `Error`
        "#]],
    );
    check(
        EXPLAINED,
        &format!("{FAILED}; c STOPPED message=why; pod inspect c=exited:128; end"),
        expect![[r#"
            ORD-01 at #16: c (c.0.beef): expected a message in the status of ContainerStatus: none, reason `Error`
        "#]],
    );
}

#[test]
fn what_has_not_ended_needs_no_words() {
    check(
        EXPLAINED,
        &format!("{FAILED}; pod inspect c=created; end"),
        expect![[r#"
            waits for a status that shows it EXITED of c
            ORD-01 at: c (c.0.beef): expected a status that shows it EXITED: it has not come
        "#]],
    );
    check(
        EXPLAINED,
        "pod run; c create; c CREATED; c STARTED; c STOPPED message=why; end",
        expect!["holds"],
    );
}

#[test]
fn what_is_gone_needs_no_words() {
    check(
        EXPLAINED,
        &format!("{FAILED}; pod inspect c=gone; end"),
        expect!["holds"],
    );
    check(
        EXPLAINED,
        &format!("{FAILED}; pod inspect; end"),
        expect!["holds"],
    );
    check(
        EXPLAINED,
        &format!("{FAILED}; run inspect c=gone; end"),
        expect!["holds"],
    );
    for other in ["d=gone", "c=created unanswered"] {
        check(
            EXPLAINED,
            &format!("{FAILED}; run inspect {other}; end"),
            expect![[r#"
                waits for a status that shows it EXITED of c
                ORD-01 at: c (c.0.beef): expected a status that shows it EXITED: it has not come
            "#]],
        );
    }
}
