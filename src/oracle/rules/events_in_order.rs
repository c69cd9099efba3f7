//! INV-01: the order of a container's events.

use crate::history::EventArrival;
use crate::oracle::index::Index;
use crate::oracle::invariants::{Invariant, MUST_SHOULD};
use crate::oracle::life::rank;
use crate::outcome::{Fact, Kind, Mismatch, Violation};

pub(in crate::oracle) const RULE: Invariant = Invariant {
    id: "INV-01",
    name: "invariant::events-in-order",
    sentence: "The events of a container come in the order CREATED, STARTED, STOPPED, DELETED, \
                   and none after DELETED.",
    source: "KEP-3386, Runtime Service Changes; cri-o#9738",
    requirements: &["R9", "R10"],
    kinds: &[Kind::EventOutOfOrder, Kind::LateEventOutOfOrder],
    compares_clocks: false,
    of_foreign_pods: true,
    levels: MUST_SHOULD,
    check,
};

fn check(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    let history = index.history;
    let ranked = |arrival: &EventArrival| rank(arrival.event().kind).is_some();
    rule.on_each_pair(history, ranked, |earlier, later| {
        let (before, after) = (earlier.event().kind, later.event().kind);
        (rank(before)? > rank(after)?).then(|| {
            Mismatch::new(
                Kind::EventOutOfOrder,
                [Fact::Event(after), Fact::Before(before)],
                [Fact::Event(after), Fact::After(before)],
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::oracle::rules::testing::{after_create, check_all};

    #[test]
    fn a_whole_life_breaks_nothing() {
        after_create(
            "c start; c STARTED; c stop; c STOPPED exit=137; c remove; c DELETED; end",
            expect![],
        );
    }

    #[test]
    fn stopped_before_started_is_out_of_order() {
        after_create(
            "c start; c STOPPED; c STARTED; end",
            expect![[r#"
                INV-01 at #8 #9: c (c.0.beef): expected STARTED before STOPPED: STARTED after STOPPED
                INV-27 at #8 #9: c (c.0.beef): expected a state after that in the snapshot before, in STARTED of c: c RUNNING, which was over then
            "#]],
        );
    }

    #[test]
    fn stopped_without_started_is_in_order() {
        after_create("c STOPPED; c remove; c DELETED; end", expect![""]);
    }

    #[test]
    fn created_after_started_is_out_of_order() {
        check_all(
            "pod run; c create; c STARTED; c CREATED",
            expect![[r#"
        INV-01 at #5 #6: c (c.0.beef): expected CREATED before STARTED: CREATED after STARTED
    "#]],
        );
    }

    #[test]
    fn a_container_may_be_known_by_started_alone() {
        check_all("pod run; c create; c STARTED", expect![]);
    }

    #[test]
    fn nothing_may_follow_deleted() {
        after_create(
            "c DELETED; c STOPPED",
            expect![[r#"
        INV-01 at #6 #7: c (c.0.beef): expected STOPPED before DELETED: STOPPED after DELETED
    "#]],
        );
    }

    #[test]
    fn nothing_need_follow_deleted() {
        after_create("c DELETED", expect![]);
    }

    #[test]
    fn an_unknown_type_does_not_hide_a_wrong_order() {
        after_create(
            "c STOPPED; c TYPE=9; c STARTED",
            expect![[r#"
                INV-01 at #6 #8: c (c.0.beef): expected STARTED before STOPPED: STARTED after STOPPED
                INV-03 at #7: c (c.0.beef): expected a type from 0 to 3: type 9
                INV-19 at #7: c (c.0.beef): expected a state from before a call that causes it in UNKNOWN(9): EXITED
            "#]],
        );
    }

    #[test]
    fn interleaved_containers_are_ordered_each_by_itself() {
        check_all(
            "pod run; c create; d create; c CREATED; c STARTED; d CREATED; c STOPPED; d STARTED",
            expect![[r#"
                INV-19 at #9: c (c.0.beef): expected a state from before a call that causes it in CREATED: RUNNING
            "#]],
        );
    }

    #[test]
    fn a_wrong_order_is_found_among_interleaved_containers() {
        check_all(
            "pod run; c create; d create; d CREATED; c STARTED; d STARTED; c CREATED",
            expect![[r#"
                INV-01 at #8 #10: c (c.0.beef): expected CREATED before STARTED: CREATED after STARTED
                INV-19 at #10: d (d.0.beef): expected a state from before a call that causes it in CREATED: RUNNING
                INV-27 at #7: c (c.0.beef): expected a state in which it was between the cause and the arrival of CREATED of d: absent, which was over before
            "#]],
        );
    }

    #[test]
    fn a_container_made_again_begins_anew() {
        after_create(
            "c STARTED; c STOPPED; c DELETED; c create; c CREATED; c STARTED",
            expect![],
        );
    }

    #[test]
    fn a_late_event_of_an_earlier_container_of_the_name_is_found() {
        after_create(
            "c STOPPED; c DELETED; c create; c CREATED; c#0 STARTED",
            expect![[r#"
                INV-01 at #7 #11: c (c.0.beef): expected STARTED before DELETED: STARTED after DELETED
                INV-27 at #10 #11: c (c.0.beef): expected a state after that in the snapshot before, in STARTED of c: c RUNNING, which was over then
            "#]],
        );
    }

    #[test]
    fn a_sandbox_is_held_to_the_order_too() {
        check_all(
            "pod run; pod STARTED; pod CREATED",
            expect![[r#"
        INV-01 at #3 #4: pod (pod.0.beef): expected CREATED before STARTED: CREATED after STARTED
    "#]],
        );
    }

    #[test]
    fn an_event_may_come_before_its_call_returns() {
        check_all(
            "pod run begins; pod CREATED; pod run returns; \
         c create begins; c CREATED; c create returns; c start begins; c STARTED; c start returns",
            expect![],
        );
    }

    #[test]
    fn the_teardown_is_judged_too() {
        after_create(
            "end; c DELETED; c STOPPED",
            expect![[r#"
        INV-01 at #7 #8: c (c.0.beef): expected STOPPED before DELETED: STOPPED after DELETED
    "#]],
        );
    }
}
