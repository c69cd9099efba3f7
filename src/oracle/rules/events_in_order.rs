//! The order of the events of each container on a stream: INV-01, in the order of its life; INV-02
//! and INV-25, each once, and none again to a later subscriber; INV-05, with increasing times.

use crate::oracle::invariants::{Broken, Invariant, MUST_SHOULD, SHOULD_SHOULD};
use crate::oracle::life::rank;
use crate::oracle::whole_run::Brief;
use crate::outcome::{Fact, Kind, Mismatch};

pub(in crate::oracle) const ORDER: Invariant = Invariant {
    id: "INV-01",
    name: "invariant::events-in-order",
    sentence: "The events of a container come in the order CREATED, STARTED, STOPPED, DELETED, \
                   and none after DELETED.",
    source: "KEP-3386, Runtime Service Changes; cri-o#9738",
    requirements: &["R9", "R10"],
    kinds: &[Kind::EventOutOfOrder],
    compares_clocks: false,
    of_foreign_pods: true,
    levels: MUST_SHOULD,
    check: |rule, index| rule.on_each_stream(index.history, reordered),
};

/// The first two events of a container on a stream in the wrong order.
pub(in crate::oracle) fn reordered(events: &[Brief]) -> Option<Broken> {
    let ranked = events
        .iter()
        .filter_map(|event| Some((rank(event.kind)?, event)));
    let ranked: Vec<_> = ranked.collect();
    let mut pairs = ranked.windows(2);
    let [(_, earlier), (_, later)] = pairs.find(|pair| pair[0].0 > pair[1].0)? else {
        return None;
    };
    let mismatch = Mismatch::new(
        Kind::EventOutOfOrder,
        [Fact::Event(later.kind), Fact::Before(earlier.kind)],
        [Fact::Event(later.kind), Fact::After(earlier.kind)],
    );
    Some((mismatch, vec![earlier.seq, later.seq]))
}

pub(in crate::oracle) const ONCE: Invariant = Invariant {
    id: "INV-02",
    name: "invariant::no-duplicate-events",
    sentence: "A stream delivers each event of a container at most once.",
    source: "cri-o#6625, cri-o#6631, containerd#4769",
    requirements: &["R8"],
    kinds: &[Kind::DuplicateEvent],
    compares_clocks: false,
    of_foreign_pods: true,
    levels: MUST_SHOULD,
    check: |rule, index| rule.on_each_stream(index.history, repeated),
};

pub(in crate::oracle) const REPLAY: Invariant = Invariant {
    id: "INV-25",
    name: "invariant::no-replay",
    sentence: "An event that one subscriber has got is not sent to a later subscriber.",
    source: "KEP-3386 2026 (no replay, no resumption); R8 of the kubelet",
    requirements: &["R8", "R30"],
    kinds: &[Kind::ReplayedEvent],
    compares_clocks: false,
    of_foreign_pods: true,
    levels: SHOULD_SHOULD,
    // Subscribers that come after a case get its events, too: only the whole run shows it.
    check: |_, _| Vec::new(),
};

/// The first event of a container that comes again on a stream.
pub(in crate::oracle) fn repeated(events: &[Brief]) -> Option<Broken> {
    events.iter().enumerate().find_map(|(place, later)| {
        let mut before = events[..place].iter();
        let earlier = before.find(|earlier| earlier.kind == later.kind)?;
        let pause = Fact::Pause(later.at.since(earlier.at));
        let event = || Fact::Event(later.kind);
        let mismatch = Mismatch::new(Kind::DuplicateEvent, [event()], [event(), pause]);
        Some((mismatch, vec![earlier.seq, later.seq]))
    })
}

/// The first event of a container that two subscribers got, one after the other.
pub(in crate::oracle) fn replayed(events: &[Brief]) -> Option<Broken> {
    events.iter().find_map(|later| {
        let same = |earlier: &&Brief| {
            let same = (earlier.kind, earlier.created_at) == (later.kind, later.created_at);
            same && later.asked > Some(earlier.seq)
        };
        let earlier = events.iter().find(same)?;
        let mismatch = Mismatch::new(Kind::ReplayedEvent, [], [Fact::Event(later.kind)]);
        let proof = [Some(earlier.seq), later.asked, Some(later.seq)];
        Some((mismatch, proof.into_iter().flatten().collect()))
    })
}

pub(in crate::oracle) const INCREASING: Invariant = Invariant {
    id: "INV-05",
    name: "invariant::created-at-never-decreases",
    sentence: "created_at never decreases from one event of a container to the next.",
    source: "kubelet 1.26 to 1.36, pod cache: an older time is dropped",
    requirements: &["R20"],
    kinds: &[Kind::CreatedAtDecreased],
    compares_clocks: true,
    of_foreign_pods: true,
    levels: MUST_SHOULD,
    check: |rule, index| rule.on_each_stream(index.history, decreased),
};

fn decreased(events: &[Brief]) -> Option<Broken> {
    let mut pairs = events.windows(2);
    let pair = pairs.find(|pair| pair[1].created_at < pair[0].created_at)?;
    let [before, after] = [pair[0].created_at.0, pair[1].created_at.0];
    let mismatch = Mismatch::new(
        Kind::CreatedAtDecreased,
        [Fact::Earliest(before)],
        [Fact::Time(after), Fact::ApartNs(before.abs_diff(after))],
    );
    Some((mismatch, vec![pair[0].seq, pair[1].seq]))
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
                INV-01 at #9 #10: c (c.0.beef): expected STARTED before STOPPED: STARTED after STOPPED
                INV-27 at #9 #10: c (c.0.beef): expected a state after that in the snapshot before, in STARTED of c: c RUNNING, which was over then
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
                INV-01 at #7 #8: c (c.0.beef): expected STOPPED before DELETED: STOPPED after DELETED
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
                INV-01 at #7 #9: c (c.0.beef): expected STARTED before STOPPED: STARTED after STOPPED
                INV-03 at #8: c (c.0.beef): expected a type from 0 to 3: type 9
                INV-19 at #8: c (c.0.beef): expected a state from before a call that causes it in UNKNOWN(9): EXITED
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
                INV-01 at #8 #12: c (c.0.beef): expected STARTED before DELETED: STARTED after DELETED
                INV-27 at #11 #12: c (c.0.beef): expected a state after that in the snapshot before, in STARTED of c: c RUNNING, which was over then
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
                INV-01 at #8 #9: c (c.0.beef): expected STOPPED before DELETED: STOPPED after DELETED
            "#]],
        );
    }

    #[test]
    fn an_event_that_comes_twice_is_a_repetition() {
        after_create(
            "c STOPPED; c STOPPED",
            expect![[r#"
                INV-02 at #7 #8: c (c.0.beef): expected one STOPPED event: STOPPED again after 1ms
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
                INV-02 at #9 #10: c (c.0.beef): expected one CREATED event: CREATED again after 1ms
            "#]],
        );
    }

    #[test]
    fn an_event_after_deleted_is_out_of_order_and_repeated() {
        after_create(
            "c STOPPED; c DELETED; c STOPPED",
            expect![[r#"
                INV-01 at #8 #9: c (c.0.beef): expected STOPPED before DELETED: STOPPED after DELETED
                INV-02 at #7 #9: c (c.0.beef): expected one STOPPED event: STOPPED again after 2ms
            "#]],
        );
    }

    #[test]
    fn created_at_that_decreases_is_reported() {
        after_create(
            "c STARTED at=-2ms",
            expect![[r#"
                INV-05 at #6 #7: c (c.0.beef): expected created_at of 1700000000007000000 or later: 1700000000006000000, which is 1000000 ns earlier
            "#]],
        );
    }

    #[test]
    fn created_at_that_stays_is_accepted() {
        after_create("c STARTED at=-1ms", expect![]);
    }

    #[test]
    fn created_at_of_two_containers_is_for_another_rule() {
        after_create(
            "d create; d CREATED at=-10ms",
            expect![[r#"
                INV-23 at #6 #9: pod (pod.0.beef): expected CREATED of d, which came after CREATED of c, to be made after it, too, and not 7000000 ns before: its created_at is earlier
            "#]],
        );
    }

    #[test]
    fn created_at_may_decrease_in_a_replay() {
        after_create(
            "c STARTED; resubscribe; c CREATED at=-4ms; c STARTED at=-3ms",
            expect![],
        );
    }
}
