//! `headers-within`: the headers of the response arrive in time.

use std::time::Duration;

use crate::checks::word::Finding::{self, Broken, Holds, Unproven};
use crate::history::{CaseHistory, Observed};
use crate::outcome::{Fact, Kind, Latency, Limit, Mismatch};

pub(super) const KINDS: &[Kind] = &[Kind::LateHeaders, Kind::MissingHeaders];

/// The headers of the response arrive within a time of the request.
pub(super) fn assess(history: &CaseHistory, observed: &Observed, bound: Duration) -> Finding {
    let bound = history.scaled(bound);
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

pub(super) fn times(history: &CaseHistory, name: &str, bound: Duration) -> Vec<Latency> {
    history
        .observed()
        .filter(|observed| observed.observer().binding == name)
        .filter_map(|observed| {
            let answered = observed.answered()?;
            Some(answered.at.since(observed.opened().at))
        })
        .map(|took| Latency {
            limit: Limit::Headers,
            bound: history.scaled(bound),
            took,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::checks::testing::check;

    #[test]
    fn the_headers_come_in_time() {
        let answered = "subscription: {of: b, headers-within: 1s}";
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
