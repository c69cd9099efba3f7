//! `events: same-as-main-stream`: a subscription delivers the events of the main stream.

use crate::checks::word::Finding::{self, Broken, Holds, Pending};
use crate::history::{CaseHistory, Observed, StreamEnd};
use crate::oracle::difference;
use crate::outcome::{Fact, Kind, Mismatch};

pub(super) const KINDS: &[Kind] = &[
    Kind::NothingObserved,
    Kind::SilentEnd,
    Kind::MissingOnSubscription,
    Kind::MissingOnMainStream,
    Kind::DifferentOrder,
];

/// Once it is live, the subscription delivers the events of the main stream, or ends with an error.
pub(super) fn assess(history: &CaseHistory, observed: &Observed) -> Finding {
    if observed.proven().is_none() {
        return Pending {
            missing: Mismatch::unobserved("an event"),
            evidence: vec![observed.opened().seq],
        };
    }
    let ended = observed.ended();
    let ended = ended.filter(|(ended, _)| history.within_steps(ended.seq));
    if let Some((ended, StreamEnd::Closed)) = ended {
        return Broken {
            mismatch: Mismatch::new(Kind::SilentEnd, [], []),
            evidence: vec![observed.opened().seq, ended.seq],
        };
    }
    match difference(history, observed) {
        None => Holds,
        Some(found) => {
            let evidence = found.evidence;
            let subject = [Fact::Subject(found.subject)];
            let expected = found.mismatch.expected.iter().cloned().chain(subject);
            let mismatch = Mismatch {
                expected: expected.collect(),
                ..found.mismatch
            };
            if found.is_open {
                let missing = mismatch;
                Pending { missing, evidence }
            } else {
                Broken { mismatch, evidence }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::checks::testing::check;

    #[test]
    fn a_subscription_delivers_the_events_of_the_main_stream() {
        let same = "subscription: {of: b, events: same-as-main-stream}";
        check(
            same,
            "pod run; observe 7 as=b proven; c create; c CREATED at=last; c CREATED on=7 at=last; end",
            expect!["holds"],
        );
        check(
            same,
            "pod run; observe 7 as=b proven; c create; c CREATED at=last; pass 1s; end",
            expect![[r#"
            waits for CREATED on b, too (c (c.0.beef) on b, stream 7) of b
            ORD-01 at #3 #4 #7: b, stream 7: expected CREATED on b, too (c (c.0.beef) on b, stream 7): it has not come
        "#]],
        );
    }

    #[test]
    fn a_subscription_may_end_with_an_error_and_not_with_ok() {
        let same = "subscription: {of: b, events: same-as-main-stream}";
        check(
            same,
            "pod run; observe 7 as=b proven; observe 7 ends=8; c create; c CREATED at=last; end",
            expect!["holds"],
        );
        check(
            same,
            "pod run; observe 7 as=b proven; observe 7 ends=0; c create; c CREATED at=last; end",
            expect![[r#"
                ORD-01 at #3 #5: b, stream 7: expected an end that reports what has not come: the runtime ended the stream with OK
            "#]],
        );
    }
}
