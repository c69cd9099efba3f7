//! INV-02: no event twice on one stream.

use std::collections::BTreeMap;

use crate::history::{EventArrival, Subject};
use crate::oracle::index::Index;
use crate::oracle::invariants::{Invariant, MUST_SHOULD, by_stream};
use crate::outcome::{Fact, Kind, Mismatch, Violation};

pub(in crate::oracle) const RULE: Invariant = Invariant {
    id: "INV-02",
    name: "invariant::no-duplicate-events",
    sentence: "A stream delivers each event of a container at most once.",
    source: "cri-o#6625, cri-o#6631, containerd#4769",
    requirements: &["R8"],
    kinds: &[Kind::DuplicateEvent, Kind::LateDuplicateEvent],
    compares_clocks: false,
    of_foreign_pods: true,
    levels: MUST_SHOULD,
    check,
};

fn check(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    let history = index.history;
    let first = |subject: &Subject| {
        by_stream(subject).into_values().find_map(|arrivals| {
            let mut seen = BTreeMap::new();
            arrivals.into_iter().find_map(|arrival| {
                let kind = arrival.event().kind;
                let earlier: &EventArrival = seen.insert(kind, arrival)?;
                let pause = arrival.at().since(earlier.at());
                let mismatch = Mismatch::new(
                    Kind::DuplicateEvent,
                    [Fact::Event(kind)],
                    [Fact::Event(kind), Fact::Pause(pause)],
                );
                Some(rule.violation_by(subject, mismatch, [earlier, arrival]))
            })
        })
    };
    history.subjects().iter().filter_map(first).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::oracle::rules::testing::{after_create, check_all};

    #[test]
    fn an_event_that_comes_twice_is_a_repetition() {
        after_create(
            "c STOPPED; c STOPPED",
            expect![[r#"
        INV-02 at #6 #7: c (c.0.beef): expected one STOPPED event: STOPPED again after 1ms
    "#]],
        );
    }

    #[test]
    fn a_repetition_across_other_containers_events_is_found() {
        check_all(
            "pod run; c create; d create; c CREATED; d CREATED; c CREATED",
            expect![[r#"
            INV-02 at #7 #9: c (c.0.beef): expected one CREATED event: CREATED again after 2ms
        "#]],
        );
    }

    #[test]
    fn the_same_event_of_two_containers_is_no_repetition() {
        check_all(
            "pod run; c create; d create; c CREATED; d CREATED",
            expect![],
        );
    }

    #[test]
    fn a_replay_to_a_new_subscriber_is_no_repetition() {
        after_create(
            "c STARTED; resubscribe; c CREATED; c STARTED; c STOPPED",
            expect![],
        );
    }

    #[test]
    fn a_new_subscriber_can_get_a_duplicate() {
        after_create(
            "resubscribe; c CREATED; c CREATED",
            expect![[r#"
            INV-02 at #8 #9: c (c.0.beef): expected one CREATED event: CREATED again after 1ms
        "#]],
        );
    }

    #[test]
    fn an_event_after_deleted_is_out_of_order_and_repeated() {
        after_create(
            "c STOPPED; c DELETED; c STOPPED",
            expect![[r#"
                INV-01 at #7 #8: c (c.0.beef): expected STOPPED before DELETED: STOPPED after DELETED
                INV-02 at #6 #8: c (c.0.beef): expected one STOPPED event: STOPPED again after 2ms
            "#]],
        );
    }
}
