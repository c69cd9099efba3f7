//! `latency`: the time from the return of the call that causes an event to its arrival.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::Span;
use super::kind_words;
use super::scope::{Scope, Wanted};
use super::subject_events::SubjectEvents;
use super::word::Finding::{Broken, Holds, Pending};
use super::word::{Finding, Word};
use crate::history::{
    CaseHistory, EventArrival, EventKind, HostInstant, Observed, Seq, Subject, SubjectKind,
};
use crate::oracle::Index;
use crate::outcome::{Fact, Kind, Latency, Limit, Mismatch};

/// The time from the return of the call that causes an event to its arrival, over all containers
/// of the name, or all subscriptions; zero if it arrives before. STOPPED of a container that ends
/// by itself is due at the return of its start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a latency such as `{of: c, event: stopped, median: 100ms, p99: 1s}`"
)]
pub struct LatencyCheck {
    /// The sandboxes or containers.
    pub of: String,
    /// The event.
    #[serde(deserialize_with = "kind_words::one")]
    #[schemars(with = "kind_words::Word")]
    pub event: EventKind,
    /// The upper bound of the median.
    #[serde(with = "Span")]
    pub median: Duration,
    /// The upper bound of the 99th percentile; with fewer than 100 events, of all.
    #[serde(with = "Span")]
    pub p99: Duration,
}

impl Word for LatencyCheck {
    fn of(&self) -> &str {
        &self.of
    }

    fn validate(&self, scope: &mut dyn Scope<'_>) {
        scope.resolve("of", &self.of, Wanted::Any);
        if self.median > self.p99 {
            scope.error_at("median", "this is longer than `p99`");
        }
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![
            Kind::missing(self.event),
            Kind::TooSlow,
            Kind::NothingObserved,
        ]
    }

    fn assess(&self, events: &SubjectEvents<'_, '_>) -> Finding {
        let name = events.subject.binding().unwrap_or_default();
        let mut all = Vec::new();
        for (place, subject) in events.index.history.named(name).enumerate() {
            if place == 0 && subject.id != events.subject.id {
                return Holds;
            }
            let events = SubjectEvents {
                index: events.index,
                subject,
            };
            let Some(arrival) = events.first(self.event) else {
                return events.awaited(self.event);
            };
            all.extend(transit_time(events.index, arrival));
        }
        if all.is_empty() {
            let arrivals = events.subject.arrivals.iter();
            return uncaused(arrivals.map(EventArrival::seq).collect());
        }
        self.within_bounds(events.index.history, all)
    }

    fn assess_subscription(&self, history: &CaseHistory, observed: &Observed) -> Vec<Finding> {
        vec![self.assess_observed(history, observed)]
    }

    fn latencies(&self, index: &Index<'_>) -> Vec<Latency> {
        let history = index.history;
        let came = history.named(&self.of).filter_map(|subject| {
            let events = SubjectEvents { index, subject };
            events.first(self.event)
        });
        let mut lags: Vec<_> = came
            .filter_map(|seen| transit_time(index, seen))
            .map(|(took, _)| took)
            .collect();
        lags.sort_unstable();
        let percentile = |percent: usize| lags.get((lags.len() * percent).div_ceil(100).max(1) - 1);
        let bounds = [
            (Limit::LatencyMedian, self.median, percentile(50)),
            (Limit::LatencyP99, self.p99, percentile(99)),
        ];
        let latency = |(limit, bound, took): (Limit, Duration, Option<&Duration>)| {
            let (bound, took) = (history.scaled(bound), *took?);
            Some(Latency { limit, bound, took })
        };
        bounds.into_iter().filter_map(latency).collect()
    }
}

/// When an event is due: once the call that causes it has returned.
fn due(index: &Index<'_>, subject: &Subject, kind: EventKind) -> Option<HostInstant> {
    let ends_itself =
        matches!(&subject.kind, SubjectKind::Container(spec) if spec.declared_exit.is_some());
    let cause = match kind {
        EventKind::Stopped if ends_itself => EventKind::Started,
        _ => kind,
    };
    let mut made = index.transitions(&subject.id).iter();
    Some(made.find(|made| made.needed == cause)?.ended.at)
}

/// The time since an event was due, without the time for which the suite was held up, and the entry
/// of its arrival.
fn transit_time(index: &Index<'_>, seen: &EventArrival) -> Option<(Duration, Seq)> {
    let event = seen.event();
    let mut subjects = index.history.subjects().iter();
    let subject = subjects.find(|subject| subject.id == event.container)?;
    let due = due(index, subject, event.kind)?;
    Some((index.history.not_held_up(due, seen.at()), seen.seq()))
}

/// Nothing says when the events were due.
fn uncaused(evidence: Vec<Seq>) -> Finding {
    Pending {
        missing: Mismatch::unobserved("the return of a call that causes it"),
        evidence,
    }
}

impl LatencyCheck {
    /// Assesses all subscriptions of the name, at the first of them.
    fn assess_observed(&self, history: &CaseHistory, observed: &Observed) -> Finding {
        let named = || {
            let all = history.observed();
            all.filter(|other| other.observer().binding == self.of)
        };
        if named()
            .next()
            .is_some_and(|first| first.id() != observed.id())
        {
            return Holds;
        }
        let index = Index::new(history);
        let mut spans = Vec::new();
        for observed in named() {
            let Some(proven) = observed.proven() else {
                continue;
            };
            let live = observed.events().filter(|seen| {
                let within = history.within_steps(seen.seq()) && seen.seq() > proven.seq;
                seen.event().kind == self.event && within
            });
            spans.extend(live.filter_map(|seen| transit_time(&index, &seen)));
        }
        if spans.is_empty() {
            return Pending {
                missing: Mismatch::missing(self.event, []),
                evidence: vec![observed.opened().seq],
            };
        }
        self.within_bounds(history, spans)
    }

    /// Compares the times of one or more events with the bounds.
    fn within_bounds(&self, history: &CaseHistory, mut all: Vec<(Duration, Seq)>) -> Finding {
        all.sort_unstable();
        let percentile = |percent: usize| all[(all.len() * percent).div_ceil(100) - 1];
        let [(median, _), (p99, _), (worst, slowest)] = [50, 99, 100].map(percentile);
        let bounds = [self.median, self.p99].map(|bound| history.scaled(bound));
        if median <= bounds[0] && p99 <= bounds[1] {
            return Holds;
        }
        let (event, number) = (self.event, all.len());
        Broken {
            mismatch: Mismatch::new(
                Kind::TooSlow,
                [Fact::Within(bounds[0]), Fact::P99(bounds[1])],
                [
                    Fact::Event(event),
                    Fact::Median(median),
                    Fact::P99(p99),
                    Fact::Worst(worst),
                    Fact::Count(i64::try_from(number).unwrap_or(i64::MAX)),
                ],
            ),
            evidence: vec![slowest],
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::checks::testing::check;

    const LATENCY: &str = "latency: {of: c, event: created, median: 10ms, p99: 50ms}";

    #[test]
    fn an_event_is_in_time_on_every_subscription_of_the_name() {
        let soon = "latency: {of: b, event: created, median: 100ms, p99: 1s}";
        let two = "pod run; observe 7 as=b proven; observe 8 as=b proven; c create";
        check(
            soon,
            &format!("{two}; c CREATED; c CREATED on=7; c CREATED on=8; end"),
            expect!["holds"],
        );
        check(
            soon,
            &format!("{two}; c CREATED; c CREATED on=7; pass 2s; c CREATED on=8; end"),
            expect![[r#"
                ORD-01 at #11: b, stream 7: expected CREATED within 100ms, 99 of 100 within 1s: median 2ms, p99 2.003s, worst 2.003s of 2
            "#]],
        );
        check(
            soon,
            &format!("{two}; c CREATED; end"),
            expect![[r#"
                waits for CREATED of b
                ORD-01 at #3: b, stream 7: expected CREATED: CREATED has not come
            "#]],
        );
    }

    #[test]
    fn half_of_the_events_and_99_of_100_come_in_time() {
        let life = |late: &str| format!("c create; pass {late}; c CREATED");
        let lives = |spans: &[&str]| {
            let lives: Vec<_> = spans.iter().map(|span| life(span)).collect();
            format!("pod run; {}; end", lives.join("; "))
        };
        check(LATENCY, &lives(&["1ms", "9ms", "49ms"]), expect!["holds"]);
        check(
            LATENCY,
            &lives(&["1ms", "10ms", "49ms"]),
            expect![[r#"
        ORD-01 at #11: c (c.0.beef): expected CREATED within 10ms, 99 of 100 within 50ms: median 11ms, p99 50ms, worst 50ms of 3
    "#]],
        );
        check(
            LATENCY,
            &lives(&["1ms", "9ms", "50ms"]),
            expect![[r#"
        ORD-01 at #11: c (c.0.beef): expected CREATED within 10ms, 99 of 100 within 50ms: median 10ms, p99 51ms, worst 51ms of 3
    "#]],
        );
        check(
            LATENCY,
            "pod run; c create; end",
            expect![[r#"
                waits for CREATED of c
                ORD-01 at #3 #4: c (c.0.beef): expected CREATED: CREATED has not come
            "#]],
        );
    }
}
