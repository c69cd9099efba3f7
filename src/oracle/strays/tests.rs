//! What ids an event may tell of, and of which not.

#![expect(
    clippy::needless_pass_by_value,
    clippy::needless_raw_string_hashes,
    reason = "this is how expect-test is used"
)]

use expect_test::{Expect, expect};

use crate::oracle::invariants;
use crate::oracle::script::{history, render};

#[track_caller]
fn check(script: &str, expect: Expect) {
    let violations = invariants(&history(script));
    let own = violations.iter().filter(|found| found.rule == "INV-10");
    expect.assert_eq(&render(own));
}

#[test]
fn what_a_call_has_returned_is_known_also_sooner() {
    check(
        "pod run; c create begins; c CREATED; c create returns; c DELETED; end",
        expect![""],
    );
}

#[test]
fn an_id_that_nothing_tells_of() {
    check(
        "pod run; c create; c CREATED; c STARTED id=other; end",
        expect![[r#"
            INV-10 at #6: other: expected the id of something that a call has made or a list has shown: STARTED of an id that nothing else tells of
        "#]],
    );
}

#[test]
fn an_id_that_a_list_of_others_does_not_show() {
    check(
        "pod run; c create; c CREATED; c STARTED id=other; pod relist c=running; \
         pod find-sandbox pod=ready; end",
        expect![[r#"
            INV-10 at #6: other: expected the id of something that a call has made or a list has shown: STARTED of an id that nothing else tells of
        "#]],
    );
}

#[test]
fn an_id_that_a_list_shows() {
    check(
        "pod run; c create; c CREATED; c STARTED id=d.0.beef; pod relist c=running d=running; end",
        expect![""],
    );
}

#[test]
fn what_a_failed_call_has_made_has_an_id_that_nobody_was_told() {
    check(
        "pod run; c create fails; c CREATED id=made; c DELETED id=made; end",
        expect![""],
    );
}

#[test]
fn a_call_that_fails_later_has_not_made_it() {
    check(
        "pod run; c create; c CREATED id=other; d create fails; end",
        expect![[r#"
            INV-10 at #5: other: expected the id of something that a call has made or a list has shown: CREATED of an id that nothing else tells of
        "#]],
    );
}

#[test]
fn a_shortened_id_is_told_by_another_rule() {
    check("pod run; c create; c CREATED id=c.0; end", expect![""]);
}

#[test]
fn other_pods_are_not_judged() {
    check(
        "pod run; c create; podx CREATED id=other uid=x; end",
        expect![""],
    );
}
