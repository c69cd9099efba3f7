//! Histories in which several subscribers see the same, and the nearest in which they do not.

#![expect(
    clippy::needless_pass_by_value,
    clippy::needless_raw_string_hashes,
    reason = "this is how expect-test is used"
)]

use expect_test::{Expect, expect};

use super::{is_split, is_told_elsewhere};
use crate::history::EventKind;
use crate::oracle::invariants;
use crate::oracle::script::{history, render};

/// What the rule says of a script in which there is a live observer from the beginning.
#[track_caller]
fn check(script: &str, expect: Expect) {
    let history = history(&format!(
        "pod run; observe 7 as=b proven; c create begins; {script}"
    ));
    let found = invariants(&history);
    let told = render(found.iter().filter(|found| found.rule == "INV-12"));
    expect.assert_eq(if told.is_empty() { "holds" } else { &told });
}

#[test]
fn all_subscribers_see_the_same() {
    check(
        "c CREATED at=last; c CREATED on=7 at=last; c create returns; end",
        expect!["holds"],
    );
}

#[test]
fn one_subscriber_misses_an_event() {
    check(
        "c CREATED at=last; c create returns; pass 1s; end",
        expect![[r#"
        INV-12 at #3 #4 #6: c (c.0.beef) on b, stream 7: expected CREATED on b, too: it has not come
    "#]],
    );
}

#[test]
fn one_subscriber_gets_what_the_others_do_not() {
    check(
        "c CREATED on=7 at=last; c create returns; pass 1s; end",
        expect![[r#"
        INV-12 at #3 #4 #6: c (c.0.beef) on b, stream 7: expected CREATED of b on the stream of all cases, too: it has not come
    "#]],
    );
}

#[test]
fn what_came_on_one_stream_at_the_end_is_under_way_on_another() {
    check("c CREATED at=last; c create returns; end", expect!["holds"]);
    check(
        "c CREATED on=7 at=last; c create returns; end",
        expect!["holds"],
    );
}

#[test]
fn what_is_overtaken_by_a_later_event_is_no_longer_under_way() {
    check(
        "c CREATED at=last; d create; d CREATED on=7 at=last; c create returns; end",
        expect![[r#"
            INV-12 at #3 #4 #6: c (c.0.beef) on b, stream 7: expected CREATED on b, too: it has not come
        "#]],
    );
}

#[test]
fn one_subscriber_sees_another_order() {
    check(
        "c CREATED at=last; c STARTED at=last; c STARTED on=7 at=last; c CREATED on=7 at=last; \
         c create returns; end",
        expect![[r#"
            INV-12 at #3 #4 #8: c (c.0.beef) on b, stream 7: expected STARTED on b in the same place as on other streams: it came in another one
        "#]],
    );
}

#[test]
fn what_came_in_another_place_is_told_while_the_steps_go_on() {
    check(
        "c CREATED at=last; c STARTED at=last; c STARTED on=7 at=last; c CREATED on=7 at=last; \
         c create returns",
        expect![[r#"
            INV-12 at #3 #4 #8: c (c.0.beef) on b, stream 7: expected STARTED on b in the same place as on other streams: it came in another one
        "#]],
    );
}

#[test]
fn a_stream_of_all_cases_that_ended_lacks_what_came_meanwhile() {
    check(
        "unsubscribe; c CREATED on=7 at=last; subscribe; c create returns; end",
        expect!["holds"],
    );
}

#[test]
fn who_has_left_misses_nothing_that_comes_later() {
    check(
        "c CREATED at=last; c CREATED on=7 at=last; observe 7 cancelled; c STARTED at=last; \
         c create returns; end",
        expect!["holds"],
    );
}

#[test]
fn who_has_left_misses_what_came_before_its_last() {
    check(
        "c CREATED at=last; c STARTED at=last; c STARTED on=7 at=last; observe 7 cancelled; \
         c create returns",
        expect![[r#"
            INV-12 at #3 #4 #6: c (c.0.beef) on b, stream 7: expected CREATED on b, too: it has not come
        "#]],
    );
}

#[test]
fn what_was_before_the_subscription_was_live_is_not_missed() {
    check("c CREATED at=-1s; c create returns; end", expect!["holds"]);
}

#[test]
fn while_the_steps_go_on_it_may_still_come() {
    check("c CREATED at=last; c create returns", expect!["holds"]);
}

/// A history with an observer from the beginning, up to the call that makes `c`.
fn observed(script: &str) -> crate::history::CaseHistory {
    history(&format!(
        "pod run; observe 7 as=b proven; c create begins; {script}"
    ))
}

#[test]
fn events_are_split_where_a_subscriber_has_what_the_stream_of_all_cases_lacks() {
    let made = "c CREATED at=last; c CREATED on=7 at=last; c create returns";
    assert!(!is_split(&observed(&format!("{made}; end"))));
    assert!(is_split(&observed(&format!("{made}; c STARTED on=7; end"))));
    // What only the stream of all cases has is a subscriber's loss.
    assert!(!is_split(&observed(&format!("{made}; c STARTED; end"))));
    // After the steps, the case's subscriptions are given up.
    assert!(!is_split(&observed(&format!(
        "{made}; end; c STARTED on=7"
    ))));
}

#[test]
fn an_event_is_told_elsewhere_if_it_is_of_that_kind_and_container() {
    let history = observed(
        "c CREATED; c create returns; d create; d CREATED; c CREATED on=7; d STARTED on=7; end",
    );
    let subjects = history.subjects().iter();
    let of = |name: &str| {
        let mut subjects = subjects.clone();
        subjects.find(|subject| subject.id.as_str().starts_with(name))
    };
    let (c, d) = (of("c.").unwrap(), of("d.").unwrap());
    assert!(is_told_elsewhere(&history, c, EventKind::Created));
    assert!(!is_told_elsewhere(&history, c, EventKind::Started));
    assert!(is_told_elsewhere(&history, d, EventKind::Started));
    assert!(!is_told_elsewhere(&history, d, EventKind::Created));
}
