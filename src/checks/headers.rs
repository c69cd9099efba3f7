//! `headers`: the headers of the response come in time.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration;
use super::scope::{Scope, Wanted};
use super::word::Finding::{Broken, Holds, Unproven};
use super::word::{Finding, Word};
use crate::history::{CaseHistory, Observed};
use crate::outcome::{Fact, Kind, Latency, Limit, Mismatch};

/// When the headers of a subscription's response came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a subscription and a time such as `{of: b, at-most: 1s}`"
)]
pub struct HeadersCheck {
    /// The subscription.
    pub of: String,
    /// How long after it was asked for.
    #[serde(with = "duration")]
    #[schemars(with = "duration::Text")]
    pub at_most: Duration,
}

impl Word for HeadersCheck {
    fn of(&self) -> &str {
        &self.of
    }

    fn validate(&self, scope: &mut dyn Scope<'_>) {
        scope.resolve("of", &self.of, Wanted::Subscription);
    }

    fn assess_subscription(&self, history: &CaseHistory, observed: &Observed) -> Finding {
        let bound = history.stretched(self.at_most);
        let opened = observed.opened();
        let took = observed
            .answered()
            .map(|answered| answered.at.since(opened.at));
        if took.is_some_and(|took| took <= bound) {
            return Holds;
        }
        let until = observed.answered().map(|answered| answered.at);
        let until = until.or(history.steps_ended_at()).unwrap_or(opened.at);
        let held_up = history.held_up(opened.at, until);
        if !held_up.is_zero() && until.since(opened.at).saturating_sub(held_up) <= bound {
            let late = format!("the suite itself was held up for {held_up:?}");
            return Unproven(format!(
                "the headers came late or not, and {late} meanwhile"
            ));
        }
        let mut evidence = vec![opened.seq];
        evidence.extend(observed.answered().map(|answered| answered.seq));
        let kind = match took {
            Some(_) => Kind::LateHeaders,
            None => Kind::MissingHeaders,
        };
        Broken {
            mismatch: Mismatch::new(kind, [Fact::Within(bound)], []),
            evidence,
        }
    }

    fn latencies(&self, history: &CaseHistory) -> Vec<Latency> {
        let named = history
            .observed()
            .filter(|observed| observed.observer().binding == self.of);
        let took = named.filter_map(|observed| {
            let answered = observed.answered()?;
            Some(answered.at.since(observed.opened().at))
        });
        let bound = history.stretched(self.at_most);
        let latency = |took| Latency {
            limit: Limit::Headers,
            bound,
            took,
        };
        took.max().map(latency).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::checks::testing::check;

    #[test]
    fn the_headers_come_in_time() {
        let answered = "headers: {of: b, at-most: 1s}";
        check(
            answered,
            "observe 7 as=b; observe 7 answered; end",
            expect!["holds"],
        );
        check(
            answered,
            "observe 7 as=b; pass 1s; observe 7 answered; end",
            expect![[r#"
            ORD-01 at #1 #2: b, stream 7: expected the headers of the response within 1s: they came later
        "#]],
        );
        check(
            answered,
            "observe 7 as=b; end",
            expect![[r#"
        ORD-01 at #1: b, stream 7: expected the headers of the response within 1s: they did not come
    "#]],
        );
    }
}
