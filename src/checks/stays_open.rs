//! `stays-open`: the runtime has not ended the subscription.

use super::ended::how_it_ended;
use super::name_refs::{SubscriptionRef, check_on};
use super::scope::{Scope, Wanted};
use super::word::Finding::{Broken, Holds};
use super::word::{Finding, Word};
use crate::history::{CaseHistory, Observed, StreamEnd};
use crate::outcome::{Fact, Kind, Mismatch};

check_on! {
    /// The check `stays-open`.
    StaysOpenCheck(SubscriptionRef)
}

impl Word for StaysOpenCheck {
    fn of(&self) -> &str {
        &self.0.of
    }

    fn validate(&self, scope: &mut dyn Scope<'_>) {
        scope.resolve("of", &self.0.of, Wanted::Subscription);
    }

    fn assess_subscription(&self, history: &CaseHistory, observed: &Observed) -> Finding {
        match observed.ended() {
            Some((ended, end))
                if history.within_steps(ended.seq) && *end != StreamEnd::Cancelled =>
            {
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
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::checks::testing::check;

    #[test]
    fn a_subscription_stays_open() {
        let open = "stays-open: {of: b}";
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
