//! `timing`: the arrival time of an event, measured from a call.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call_edge::{CallEdge, edge, edge_name};
use super::duration::{LONGEST_SPAN, Span};
use super::kind_words;
use super::scope::{Scope, Wanted};
use super::subject_events::SubjectEvents;
use super::word::Finding::{Broken, Holds, Unproven};
use super::word::{Finding, Word};
use crate::history::EventKind;
use crate::oracle::{Index, TICK_NS, span};
use crate::outcome::{Fact, Kind, Latency, Limit, Mismatch};

/// The arrival time of an event, measured from the latest such call on the same sandbox or
/// container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a time such as `{of: c, event: stopped, after: stop-called, at-most: 2s}`"
)]
pub struct TimingCheck {
    /// The sandbox or container.
    pub of: String,
    /// The event.
    #[serde(deserialize_with = "kind_words::one")]
    #[schemars(with = "kind_words::Word")]
    pub event: EventKind,
    /// The call, and whether its begin or its return counts.
    pub after: CallEdge,
    /// Not earlier than this.
    #[serde(default, with = "Span", skip_serializing_if = "Option::is_none")]
    pub at_least: Option<Duration>,
    /// Not later than this; a negative span, earlier than the edge, always passes.
    #[serde(default, with = "Span", skip_serializing_if = "Option::is_none")]
    pub at_most: Option<Duration>,
}

impl Word for TimingCheck {
    fn of(&self) -> &str {
        &self.of
    }

    fn validate(&self, scope: &mut dyn Scope<'_>) {
        let known = scope.resolve("of", &self.of, Wanted::Either).is_some();
        match (self.at_least, self.at_most) {
            (None, None) => scope
                .error("this bounds no time")
                .help("add `at-least` or `at-most`"),
            (Some(least), Some(most)) if least > most => {
                scope.error_at("at-least", "this is longer than `at-most`");
            }
            _ => {}
        }
        for (key, span) in [("at-least", self.at_least), ("at-most", self.at_most)] {
            if span.is_some_and(|span| span > LONGEST_SPAN) {
                let most = humantime::format_duration(LONGEST_SPAN);
                scope.error_at(key, format!("nothing may take longer than {most}"));
            }
        }
        if known && !scope.is_called(&self.of, self.after) {
            let (of, call) = (&self.of, call_of(self.after));
            scope.error_at("after", format!("no step calls {call} on `{of}`"));
        }
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::missing(self.event), Kind::TooLate, Kind::TooEarly]
    }

    fn assess(&self, events: &SubjectEvents<'_, '_>) -> Finding {
        let Some(arrival) = events.first(self.event) else {
            return events.awaited(self.event);
        };
        let history = events.index.history;
        let Some(edge) = edge(self.after, history, events.subject) else {
            return Holds;
        };
        let evidence = vec![edge.seq.min(arrival.seq()), edge.seq.max(arrival.seq())];
        let late = arrival.at().since(edge.at);
        let early = edge.at.since(arrival.at());
        let too_early = edge.seq > arrival.seq();
        let (pause, side) = if too_early {
            (early, "before")
        } else {
            (late, "after")
        };
        let cause = format!("{side} {}", edge_name(self.after));
        let came = format!("{pause:?} {cause}");
        let event = self.event;
        let broken = |kind, bound, (pause, cause)| {
            let actual = [Fact::Event(event), Fact::Pause(pause), Fact::Cause(cause)];
            Broken {
                mismatch: Mismatch::new(kind, [Fact::Within(bound)], actual),
                evidence: evidence.clone(),
            }
        };
        let at_most = self.at_most.map(|bound| history.scaled(bound));
        if let Some(bound) = at_most.filter(|bound| late > *bound) {
            let held_up = history.held_up(edge.at, arrival.at());
            if late.saturating_sub(held_up) <= bound {
                return Unproven(own_fault(event, &came, held_up));
            }
            return broken(Kind::TooLate, bound, (pause, cause));
        }
        // Workloads and grace periods of a case are scaled as well, and never shrunk.
        let at_least = self.at_least.map(|bound| history.scaled(bound).max(bound));
        if let Some(bound) = at_least.filter(|bound| too_early || late < *bound) {
            // What both of them were read late for may have come long after one another.
            let last = edge.at.max(arrival.at());
            if let Some(held_up) = history.held_up_before(last, bound) {
                return Unproven(own_fault(event, &came, held_up));
            }
            return broken(Kind::TooEarly, bound, (pause, cause));
        }
        // The time that the runtime says has the same bound.
        let own = arrival.event().own_status();
        let own = own.filter(|_| event == EventKind::Stopped && history.clock_set_by().is_none());
        if let (Some(bound), Some(own)) = (at_least, own)
            && own.finished_at.0 != 0
        {
            let said = span(
                edge.at.realtime_ns,
                own.finished_at.0.saturating_add(TICK_NS),
            );
            if said < bound {
                let cause = format!("after {}, by its finished_at", edge_name(self.after));
                return broken(Kind::TooEarly, bound, (said, cause));
            }
        }
        Holds
    }

    fn latencies(&self, index: &Index<'_>) -> Vec<Latency> {
        let history = index.history;
        let took = history.named(&self.of).filter_map(|subject| {
            let events = SubjectEvents { index, subject };
            let edge = edge(self.after, history, subject)?;
            Some(events.first(self.event)?.at().since(edge.at))
        });
        let bound = self.at_most.map(|bound| history.scaled(bound));
        let limit = Limit::Timing;
        let latency = |took| {
            Some(Latency {
                limit,
                bound: bound?,
                took,
            })
        };
        took.filter_map(latency).collect()
    }
}

fn own_fault(event: EventKind, came: &str, held_up: Duration) -> String {
    format!("{event} came {came}, and the suite itself was held up for {held_up:?} meanwhile")
}

fn call_of(edge: CallEdge) -> &'static str {
    match edge {
        CallEdge::SandboxReturned => "RunPodSandbox",
        CallEdge::StartReturned => "StartContainer",
        CallEdge::StopCalled | CallEdge::StopReturned => "StopContainer",
        CallEdge::StopSandboxCalled => "StopPodSandbox",
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::checks::testing::check;

    const BETWEEN: &str =
        "timing: {of: c, event: stopped, after: stop-called, at-least: 2s, at-most: 12s}";

    #[test]
    fn an_event_in_time() {
        for after in ["1999ms", "11999ms"] {
            let script = format!("pod run; c create; c stop begins; pass {after}; c STOPPED; end");
            check(BETWEEN, &script, expect!["holds"]);
        }
    }

    #[test]
    fn an_event_too_early() {
        check(
            BETWEEN,
            "pod run; c create; c stop begins; pass 1998ms; c STOPPED; c stop returns; end",
            expect![[r#"
            ORD-01 at #5 #6: c (c.0.beef): expected STOPPED not before 2s have passed: 1.999s after StopContainer was called
        "#]],
        );
    }

    #[test]
    fn an_end_that_the_runtime_says_was_too_early() {
        let stopped = "pod run; c create; c start; c stop begins; pass 3s; c STOPPED";
        for finished in ["", "finished=-1s"] {
            let script = format!("{stopped} {finished}; c stop returns; end");
            check(BETWEEN, &script, expect!["holds"]);
        }
        let script = format!("{stopped} finished=-1100ms; c stop returns; end");
        check(
            BETWEEN,
            &script,
            expect![[r#"
            ORD-01 at #7 #8: c (c.0.beef): expected STOPPED not before 2s have passed: 1.911s after StopContainer was called, by its finished_at
        "#]],
        );
    }

    #[test]
    fn an_event_too_late() {
        check(
            BETWEEN,
            "pod run; c create; c stop begins; pass 12s; c STOPPED; c stop returns; end",
            expect![[r#"
            ORD-01 at #5 #6: c (c.0.beef): expected STOPPED within 12s: 12.001s after StopContainer was called
        "#]],
        );
    }

    #[test]
    fn an_event_before_its_call_is_too_early_for_any_bound() {
        let not_before = "timing: {of: c, event: stopped, after: stop-called, at-least: 0s}";
        check(
            not_before,
            "pod run; c create; c STOPPED; c stop; end",
            expect![[r#"
            ORD-01 at #5 #6: c (c.0.beef): expected STOPPED not before 0ns have passed: 1ms before StopContainer was called
        "#]],
        );
        check(
            not_before,
            "pod run; c create; c stop begins; c STOPPED; end",
            expect!["holds"],
        );
    }

    #[test]
    fn an_event_before_its_call_is_not_too_late() {
        check(
            "timing: {of: c, event: stopped, after: stop-returned, at-most: 0s}",
            "pod run; c create; c stop begins; c STOPPED; c stop returns; end",
            expect!["holds"],
        );
    }

    #[test]
    fn an_event_that_does_not_come_has_no_time() {
        check(
            BETWEEN,
            "pod run; c create; c stop; end",
            expect![[r#"
                waits for STOPPED of c
                ORD-01 at #3 #4 #5 #6: c (c.0.beef): expected STOPPED: STOPPED has not come
            "#]],
        );
    }

    #[test]
    fn the_latest_such_call_on_the_same_subject_counts() {
        check(
            "timing: {of: c, event: stopped, after: stop-called, at-most: 1s}",
            "pod run; c create; d create; c stop; pass 2s; c stop; c STOPPED; d stop; end",
            expect!["holds"],
        );
    }

    #[test]
    fn a_call_on_another_subject_or_in_the_teardown_does_not_count() {
        check(
            "timing: {of: c, event: stopped, after: stop-called, at-least: 1s}",
            "pod run; c create; d create; c stop begins; pass 1s; c STOPPED; d stop; end; c stop",
            expect!["holds"],
        );
    }

    #[test]
    fn each_edge_is_found() {
        check(
            "timing: {of: pod, event: started, after: sandbox-returned, at-most: 50ms}",
            "pod run; pass 50ms; pod STARTED; end",
            expect![[r#"
            ORD-01 at #2 #3: pod (pod.0.beef): expected STARTED within 50ms: 51ms after RunPodSandbox returned
        "#]],
        );
        check(
            "timing: {of: c, event: stopped, after: start-returned, at-most: 2s}",
            "pod run; c create; c start; pass 2s; c STOPPED; end",
            expect![[r#"
            ORD-01 at #6 #7: c (c.0.beef): expected STOPPED within 2s: 2.001s after StartContainer returned
        "#]],
        );
        check(
            "timing: {of: pod, event: stopped, after: stop-sandbox-called, at-most: 1s}",
            "pod run; pod stop begins; pass 1s; pod STOPPED; end",
            expect![[r#"
            ORD-01 at #3 #4: pod (pod.0.beef): expected STOPPED within 1s: 1.001s after StopPodSandbox was called
        "#]],
        );
    }
}
