//! `stays: open`: the runtime does not end a subscription before the steps are over.

use super::ends_with::how_it_ended;
use crate::checks::word::Finding::{self, Broken, Holds};
use crate::history::{CaseHistory, Observed, StreamEnd};
use crate::outcome::{Fact, Kind, Mismatch};

pub(super) const KINDS: &[Kind] = &[Kind::SubscriptionEnded];

/// The runtime has not ended the subscription when the steps are over.
pub(super) fn assess(history: &CaseHistory, observed: &Observed) -> Finding {
    match observed.ended() {
        Some((ended, end)) if history.within_steps(ended.seq) && *end != StreamEnd::Cancelled => {
            Broken {
                mismatch: Mismatch::new(
                    Kind::SubscriptionEnded,
                    [],
                    [Fact::End(how_it_ended(end))],
                ),
                evidence: vec![observed.opened().seq, ended.seq],
            }
        }
        _ => Holds,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::checks::testing::check;

    #[test]
    fn a_subscription_stays_open() {
        let open = "subscription: {of: b, stays: open}";
        check(
            open,
            "observe 7 as=b proven; end; observe 7 cancelled",
            expect!["holds"],
        );
        check(
            open,
            "observe 7 as=b proven; observe 7 ends=0; end",
            expect![[r#"
            ORD-01 at #1 #3: b, stream 7: expected a stream that stays open: the runtime ended it with OK
        "#]],
        );
    }
}
