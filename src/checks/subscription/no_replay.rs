//! `replay: none`: no event on a subscription was created before the subscription was requested.

use std::time::Duration;

use crate::checks::word::Finding::{self, Broken, Holds};
use crate::history::{CaseHistory, Observed};
use crate::outcome::{Fact, Kind, Mismatch};

pub(super) const KINDS: &[Kind] = &[Kind::EventBeforeSubscription];

/// No event of the case was created before the subscription was requested.
pub(super) fn assess(history: &CaseHistory, observed: &Observed) -> Finding {
    let opened = observed.opened();
    let of_case = |id: &_| history.subjects().iter().any(|subject| subject.id == *id);
    let mut events = observed.events();
    let old = events.find(|seen| {
        let event = seen.event();
        event.created_at.0 < opened.at.realtime_ns && of_case(&event.container)
    });
    let Some(old) = old else {
        return Holds;
    };
    let age_ns = opened.at.realtime_ns.abs_diff(old.event().created_at.0);
    let age = Duration::from_nanos(age_ns);
    Broken {
        mismatch: Mismatch::new(
            Kind::EventBeforeSubscription,
            [],
            [Fact::Event(old.event().kind), Fact::Pause(age)],
        ),
        evidence: vec![opened.seq, old.seq()],
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::checks::testing::check;

    #[test]
    fn no_event_is_from_before_the_request() {
        let new = "subscription: {of: b, replay: none}";
        check(
            new,
            "pod run; c create; observe 7 as=b; c CREATED on=7; end",
            expect!["holds"],
        );
        check(
            new,
            "pod run; c create; observe 7 as=b; c CREATED on=7 at=-1s; end",
            expect![[r#"
            ORD-01 at #5 #6: b, stream 7: expected no event from before the subscription: CREATED from 999ms before it
        "#]],
        );
    }
}
