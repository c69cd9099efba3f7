//! INV-21: a runtime ends no event stream while it runs.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::{Body, CallFault, CallId, Entry, Seq, StatusCode, StreamEnd, SubscriptionId};
use crate::limits;
use crate::oracle::index::Index;
use crate::oracle::invariants::{Invariant, MUST_MUST};
use crate::oracle::streams::{later_answer, unexpected_end};
use crate::outcome::{Fact, Kind, Mismatch, Violation};

pub(in crate::oracle) const RULE: Invariant = Invariant {
    id: "INV-21",
    name: "invariant::streams-stay-open",
    sentence: "A runtime ends no event stream while it runs.",
    source: "kubelet 1.26 to 1.37, evented.go: five retries without a pause, of which one restart \
                 of the runtime uses up all, then no events until the kubelet restarts; \
                 kubernetes#129827",
    requirements: &["R1"],
    kinds: &[Kind::StreamEnded],
    compares_clocks: false,
    of_foreign_pods: true,
    levels: MUST_MUST,
    check,
};

/// Finds each stream that a runtime ended although it kept running. Calls that fail with
/// UNAVAILABLE show that the runtime itself stopped.
fn check(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    let history = index.history;
    let own = history
        .entries()
        .iter()
        .filter_map(|entry| match &entry.body {
            Body::SubscriptionEnded { subscription, end } => Some((*subscription, &**entry, end)),
            _ => None,
        });
    let observed = history.observed().filter(|observed| {
        let observer = observed.observer();
        // A stream that asks for its end gets it, and one that is not read may.
        observer.deadline.is_none() && !observer.stalls
    });
    let observed = observed.filter_map(|observed| {
        let (entry, end) = observed.ended()?;
        Some((observed.id(), entry, end))
    });
    let ends = own
        .chain(observed)
        .filter_map(|(subscription, entry, end)| {
            let actual = unexpected_end(end)?;
            let alive = later_answer(history, entry)?;
            Some(broken(rule, subscription, &actual, [entry.seq, alive.seq]))
        });
    ends.collect()
}

/// The answers of a runtime after it had ended streams: over the whole run, since a case may make
/// no further call.
#[derive(Debug, Default)]
pub(in crate::oracle) struct Ends {
    /// Streams that may end: they request it, or are not read.
    excused: BTreeSet<SubscriptionId>,
    open: Vec<Ended>,
    proven: Vec<(Ended, Seq)>,
    /// The calls that began after the first of the open ends.
    asked: BTreeMap<CallId, Seq>,
}

#[derive(Clone, Debug)]
struct Ended {
    stream: SubscriptionId,
    seq: Seq,
    actual: String,
}

impl Ends {
    /// Processes the next entry of the run.
    pub(in crate::oracle) fn push(&mut self, entry: &Entry) {
        match &entry.body {
            Body::SubscriptionOpened {
                subscription,
                observer: Some(observer),
            } if observer.deadline.is_some() || observer.stalls => {
                self.excused.insert(*subscription);
            }
            Body::SubscriptionEnded { subscription, end } => {
                let actual = unexpected_end(end).filter(|_| !is_of_connection(end));
                let has_room = self.open.len() + self.proven.len() < limits::RUN_CONTAINERS;
                if let Some(actual) = actual
                    && !self.excused.remove(subscription)
                    && has_room
                {
                    let (stream, seq) = (*subscription, entry.seq);
                    self.open.push(Ended {
                        stream,
                        seq,
                        actual,
                    });
                }
            }
            Body::CallBegan { call, .. } if !self.open.is_empty() => {
                self.asked.insert(*call, entry.seq);
            }
            Body::CallEnded { call, result, .. } => {
                if let Some(began) = self.asked.remove(call) {
                    self.answered(began, entry.seq, result.as_ref().map(|_| ()));
                }
            }
            _ => {}
        }
    }

    fn answered(&mut self, began: Seq, ended: Seq, result: Result<(), &CallFault>) {
        let (before, after): (Vec<_>, Vec<_>) =
            self.open.drain(..).partition(|open| open.seq < began);
        self.open = after;
        match result {
            Ok(()) => {
                let proven = before.into_iter().map(|open| (open, ended));
                self.proven.extend(proven);
            }
            Err(fault) if fault.code == StatusCode::UNAVAILABLE => {}
            Err(_) => self.open.extend(before),
        }
        if self.open.is_empty() {
            self.asked.clear();
        }
    }

    /// The streams that a runtime ended although it kept running, without those that a case has
    /// reported.
    pub(in crate::oracle) fn violations(
        &self,
        rule: &Invariant,
        reported: &[Violation],
    ) -> Vec<Violation> {
        let is_new = |(ended, _): &&(Ended, Seq)| {
            let same = |reported: &Violation| {
                reported.rule == rule.id && reported.evidence.contains(&ended.seq)
            };
            !reported.iter().any(same)
        };
        let new = self.proven.iter().filter(is_new);
        new.map(|(ended, alive)| broken(rule, ended.stream, &ended.actual, [ended.seq, *alive]))
            .collect()
    }
}

/// Whether the connection may have ended, as when the runtime restarts.
fn is_of_connection(end: &StreamEnd) -> bool {
    matches!(end, StreamEnd::Failed(fault) if fault.code == StatusCode::UNAVAILABLE)
}

fn broken(rule: &Invariant, stream: SubscriptionId, actual: &str, evidence: [Seq; 2]) -> Violation {
    rule.violation(
        format!("stream {}", stream.0),
        Mismatch::new(Kind::StreamEnded, [], [Fact::End(actual.to_owned())]),
        evidence.to_vec(),
    )
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::RULE;
    use crate::oracle::rules::testing::{after_create, check};

    /// Checks the rule on a subscription that ends before a call that succeeds.
    #[track_caller]
    fn subscription_ends(subscription: &str, expect: Expect) {
        let script = format!("observe 7 {subscription} proven; observe 7 ends=8; pod run");
        check(&RULE, &script, expect);
    }

    #[test]
    fn a_subscription_of_a_case_stays_open() {
        subscription_ends(
            "as=b",
            expect![[r#"
                INV-21 at #3 #5: stream 7: expected a stream that stays open as long as the runtime runs: it ended with RESOURCE_EXHAUSTED; after five such ends a kubelet up to 1.37 follows no events until it is restarted
            "#]],
        );
    }

    #[test]
    fn a_stream_that_asks_for_its_end_or_is_not_read_may_end() {
        subscription_ends("as=b deadline=3s", expect![]);
        subscription_ends("as=b stalls", expect![]);
    }

    #[test]
    fn a_stream_that_ends_while_the_runtime_answers_is_reported() {
        after_create(
            "stream ends; c start; end",
            expect![[r#"
                INV-21 at #7 #9: stream 0: expected a stream that stays open as long as the runtime runs: the runtime ended it with OK; after five such ends a kubelet up to 1.37 follows no events until it is restarted
            "#]],
        );
        after_create("stream ends UNAVAILABLE; c start fails; end", expect![]);
        after_create(
            "stream ends UNAVAILABLE; end; pod stop",
            expect![[r#"
                INV-21 at #7 #10: stream 0: expected a stream that stays open as long as the runtime runs: it ended with UNAVAILABLE; after five such ends a kubelet up to 1.37 follows no events until it is restarted
            "#]],
        );
    }

    #[test]
    fn a_runtime_that_is_gone_ends_its_streams() {
        after_create(
            "stream ends UNAVAILABLE; c start fails; pod stop; end",
            expect![],
        );
        after_create(
            "c start begins; stream ends UNAVAILABLE; c start returns fails; pod stop; end",
            expect![],
        );
        after_create("stream ends UNAVAILABLE; end", expect![]);
        // It answers until it has stopped.
        after_create(
            "stream ends UNAVAILABLE; pod stop; c start fails; end",
            expect![],
        );
    }

    #[test]
    fn a_runtime_that_refuses_a_call_is_running() {
        after_create(
            "stream ends; c start refused; pod stop; end",
            expect![[r#"
                INV-21 at #7 #11: stream 0: expected a stream that stays open as long as the runtime runs: the runtime ended it with OK; after five such ends a kubelet up to 1.37 follows no events until it is restarted
            "#]],
        );
    }

    #[test]
    fn a_stream_that_we_gave_up_is_no_end() {
        after_create("resubscribe; c start; c STARTED; end", expect![]);
    }
}
