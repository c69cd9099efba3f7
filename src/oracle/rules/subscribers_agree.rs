//! INV-12: all subscribers get the same events in the same order.

use crate::history::StepsEnd;
use crate::oracle::clocks::held_up_at_the_end;
use crate::oracle::index::Index;
use crate::oracle::invariants::{Invariant, OBSERVERS};
use crate::oracle::subscribers::difference;
use crate::outcome::{Kind, Violation};

pub(in crate::oracle) const RULE: Invariant = Invariant {
    id: "INV-12",
    name: "invariant::subscribers-agree",
    sentence: "All subscribers that listen and read see the same events of each container in the \
                   same order.",
    source: "containerd#7318 (subscribers took events from each other); R3 of the kubelet",
    requirements: &["R3"],
    kinds: &[
        Kind::MissingOnSubscription,
        Kind::MissingOnMainStream,
        Kind::DifferentOrder,
    ],
    compares_clocks: true,
    of_foreign_pods: false,
    levels: OBSERVERS,
    check,
};

/// Finds each subscription of the case whose events of a container differ from those of the stream
/// of all cases.
fn check(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    let history = index.history;
    let is_unread = held_up_at_the_end(history).is_some();
    let complete = history.steps_end() == Some(&StepsEnd::Complete) && !is_unread;
    let differing = history.observed().filter_map(|observed| {
        let found = difference(history, observed)?;
        (complete || !found.is_open)
            .then(|| rule.violation(found.subject, found.mismatch, found.evidence))
    });
    differing.collect()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::oracle::index::Index;
    use crate::oracle::invariants::invariants;
    use crate::oracle::script::{history, render};

    /// Checks the rule on a script with a live observer from the beginning.
    #[track_caller]
    fn with_observer(script: &str, expect: Expect) {
        let history = history(&format!(
            "pod run; observe 7 as=b proven; c create begins; {script}"
        ));
        let found = invariants(&Index::new(&history));
        let lines = render(found.iter().filter(|found| found.rule == "INV-12"));
        expect.assert_eq(if lines.is_empty() { "holds" } else { &lines });
    }

    #[test]
    fn all_subscribers_see_the_same() {
        with_observer(
            "c CREATED at=last; c CREATED on=7 at=last; c create returns; end",
            expect!["holds"],
        );
    }

    #[test]
    fn one_subscriber_misses_an_event() {
        with_observer(
            "c CREATED at=last; c create returns; pass 1s; end",
            expect![[r#"
        INV-12 at #3 #4 #6: c (c.0.beef) on b, stream 7: expected CREATED on b, too: it has not come
    "#]],
        );
    }

    #[test]
    fn one_subscriber_gets_an_event_that_the_others_do_not() {
        with_observer(
            "c CREATED on=7 at=last; c create returns; pass 1s; end",
            expect![[r#"
        INV-12 at #3 #4 #6: c (c.0.beef) on b, stream 7: expected CREATED of b on the stream of all cases, too: it has not come
    "#]],
        );
    }

    #[test]
    fn an_event_on_one_stream_at_the_end_may_be_under_way_on_another() {
        with_observer("c CREATED at=last; c create returns; end", expect!["holds"]);
        with_observer(
            "c CREATED on=7 at=last; c create returns; end",
            expect!["holds"],
        );
    }

    #[test]
    fn an_event_that_a_later_one_overtakes_is_no_longer_under_way() {
        with_observer(
            "c CREATED at=last; d create; d CREATED on=7 at=last; c create returns; end",
            expect![[r#"
            INV-12 at #3 #4 #6: c (c.0.beef) on b, stream 7: expected CREATED on b, too: it has not come
        "#]],
        );
    }

    #[test]
    fn one_subscriber_sees_another_order() {
        with_observer(
            "c CREATED at=last; c STARTED at=last; c STARTED on=7 at=last; c CREATED on=7 at=last; \
         c create returns; end",
            expect![[r#"
            INV-12 at #3 #4 #8: c (c.0.beef) on b, stream 7: expected STARTED on b in the same place as on other streams: it came in another one
        "#]],
        );
    }

    #[test]
    fn an_event_in_another_place_is_reported_while_the_steps_go_on() {
        with_observer(
            "c CREATED at=last; c STARTED at=last; c STARTED on=7 at=last; c CREATED on=7 at=last; \
         c create returns",
            expect![[r#"
            INV-12 at #3 #4 #8: c (c.0.beef) on b, stream 7: expected STARTED on b in the same place as on other streams: it came in another one
        "#]],
        );
    }

    #[test]
    fn a_stream_of_all_cases_that_ended_lacks_the_events_since() {
        with_observer(
            "unsubscribe; c CREATED on=7 at=last; subscribe; c create returns; end",
            expect!["holds"],
        );
    }

    #[test]
    fn a_cancelled_subscription_misses_no_later_event() {
        with_observer(
            "c CREATED at=last; c CREATED on=7 at=last; observe 7 cancelled; c STARTED at=last; \
         c create returns; end",
            expect!["holds"],
        );
    }

    #[test]
    fn a_cancelled_subscription_misses_an_event_before_its_last() {
        with_observer(
            "c CREATED at=last; c STARTED at=last; c STARTED on=7 at=last; observe 7 cancelled; \
         c create returns",
            expect![[r#"
            INV-12 at #3 #4 #6: c (c.0.beef) on b, stream 7: expected CREATED on b, too: it has not come
        "#]],
        );
    }

    #[test]
    fn an_event_before_the_subscription_was_live_is_not_missed() {
        with_observer("c CREATED at=-1s; c create returns; end", expect!["holds"]);
    }

    #[test]
    fn an_event_may_still_come_while_the_steps_go_on() {
        with_observer("c CREATED at=last; c create returns", expect!["holds"]);
    }
}
