//! `replay: same-as-main-stream`: a subscription replays the same events as the main stream that is
//! opened next.

use crate::checks::word::Finding::{self, Broken, Holds, Pending};
use crate::history::{Body, CaseHistory, Event, EventArrival, Observed};
use crate::oracle::CLOCKS_APART_NS;
use crate::outcome::{Fact, Kind, Mismatch};

pub(super) const KINDS: &[Kind] = &[Kind::NothingObserved, Kind::ReplaysDiffer];

/// The events from before the request are the same as on the next main stream.
pub(super) fn assess(history: &CaseHistory, observed: &Observed) -> Finding {
    let opened = observed.opened();
    let mut next = history
        .entries()
        .iter()
        .filter(|entry| entry.seq > opened.seq);
    let next = next.find_map(|entry| match entry.body {
        Body::SubscriptionOpened { subscription, .. } => Some((entry.seq, subscription)),
        _ => None,
    });
    let Some((requested, next)) = next else {
        return Pending {
            missing: Mismatch::unobserved("another stream that is asked for later"),
            evidence: vec![opened.seq],
        };
    };
    let since = opened.at.realtime_ns + CLOCKS_APART_NS;
    let is_old = |seen: &EventArrival| seen.event().created_at.0 <= since;
    let subjects = history.subjects();
    let of_case = |seen: &EventArrival| subjects.iter().any(|it| it.id == seen.event().container);
    let here = observed
        .events()
        .filter(|seen| is_old(seen) && of_case(seen));
    let here: Vec<EventArrival> = here.collect();
    let all = subjects.iter().flat_map(|subject| &subject.arrivals);
    let there = all.filter(|seen| seen.subscription() == next && is_old(seen));
    let there: Vec<EventArrival> = there.cloned().collect();
    let lacks = |seen: &&EventArrival, others: &[EventArrival]| {
        let same = |other: &EventArrival| {
            let (one, other) = (seen.event(), other.event());
            let identity = |event: &Event| (event.container.clone(), event.kind, event.created_at);
            identity(one) == identity(other)
        };
        !others.iter().any(same)
    };
    let lost = here.iter().find(|seen| lacks(seen, &there));
    let alone = there.iter().find(|seen| lacks(seen, &here));
    let (seen, whose) = match (lost, alone) {
        (None, None) => return Holds,
        (Some(seen), _) => (seen, "the other does not"),
        (None, Some(seen)) => (seen, "this one does not"),
    };
    Broken {
        mismatch: Mismatch::new(
            Kind::ReplaysDiffer,
            [],
            [
                Fact::Event(seen.event().kind),
                Fact::Cause(whose.to_owned()),
            ],
        ),
        evidence: vec![opened.seq, requested, seen.seq()],
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::checks::testing::check;

    const REPLAY: &str = "subscription: {of: b, replay: same-as-main-stream}";

    /// A container is created before the two subscriptions, which are opened in sequence.
    const BOTH: &str = "pod run; c create; observe 7 as=b; resubscribe";

    #[test]
    fn both_replay_the_same_events_or_none() {
        check(REPLAY, &format!("{BOTH}; end"), expect!["holds"]);
        let both = "c CREATED at=0; c CREATED on=7 at=0";
        check(REPLAY, &format!("{BOTH}; {both}; end"), expect!["holds"]);
    }

    #[test]
    fn an_event_from_after_the_request_is_no_replay() {
        check(
            REPLAY,
            &format!("{BOTH}; c CREATED on=7; end"),
            expect!["holds"],
        );
    }

    #[test]
    fn one_replays_an_event_and_the_other_does_not() {
        check(
            REPLAY,
            &format!("{BOTH}; c CREATED on=7 at=0; end"),
            expect![[r#"
                ORD-01 at #5 #7 #8: b, stream 7: expected the same of what happened before, on both streams: one has CREATED and the other does not
            "#]],
        );
        check(
            REPLAY,
            &format!("{BOTH}; c CREATED at=0; end"),
            expect![[r#"
                ORD-01 at #5 #7 #8: b, stream 7: expected the same of what happened before, on both streams: one has CREATED and this one does not
            "#]],
        );
    }

    #[test]
    fn an_event_from_the_time_of_the_request_is_a_replay() {
        check(
            REPLAY,
            &format!("{BOTH}; c CREATED on=7 at=-3ms; end"),
            expect![[r#"
                ORD-01 at #5 #7 #8: b, stream 7: expected the same of what happened before, on both streams: one has CREATED and the other does not
            "#]],
        );
        check(
            REPLAY,
            &format!("{BOTH}; c CREATED on=7 at=-1ms; end"),
            expect!["holds"],
        );
    }

    #[test]
    fn a_replay_needs_another_stream_to_be_compared_with() {
        check(
            REPLAY,
            "pod run; c create; observe 7 as=b; end",
            expect![[r#"
            waits for another stream that is asked for later of b
            ORD-01 at #5: b, stream 7: expected another stream that is asked for later: it has not come
        "#]],
        );
    }
}
