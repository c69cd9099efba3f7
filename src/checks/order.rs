//! `order`: one event arrives before another.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::name_refs::EventRef;
use super::scope::{Scope, Wanted};
use super::subject_events::SubjectEvents;
use super::word::Finding::{Broken, Holds, Pending};
use super::word::{Finding, Word};
use crate::outcome::{Fact, Kind, Mismatch};

/// One event arrives before another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "two events such as `{first: {of: c, event: stopped}, then: {of: pod, event: stopped}}`"
)]
pub struct OrderCheck {
    /// This one, of every sandbox or container of the name, comes first.
    pub first: EventRef,
    /// This one comes later.
    pub then: EventRef,
}

impl Word for OrderCheck {
    fn of(&self) -> &str {
        &self.first.of
    }

    fn validate(&self, scope: &mut dyn Scope<'_>) {
        for (key, event) in [("first", &self.first), ("then", &self.then)] {
            scope.enter(key);
            scope.resolve("of", &event.of, Wanted::Either);
            scope.leave();
        }
        if self.first == self.then {
            scope.error_at("then", "an event does not come after itself");
        }
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![
            Kind::missing(self.first.event),
            Kind::missing(self.then.event),
            Kind::AfterOtherEvent,
        ]
    }

    fn assess(&self, events: &SubjectEvents<'_, '_>) -> Finding {
        let Some(arrival) = events.first(self.first.event) else {
            return events.awaited(self.first.event);
        };
        for subject in events.index.history.named(&self.then.of) {
            let others = SubjectEvents {
                index: events.index,
                subject,
            };
            let Some(other) = others.first(self.then.event) else {
                let of = Fact::Of(format!("{} after that", subject.label()));
                return Pending {
                    missing: Mismatch::missing(self.then.event, [of]),
                    evidence: vec![arrival.seq()],
                };
            };
            if other.seq() < arrival.seq() {
                return Broken {
                    mismatch: Mismatch::new(
                        Kind::AfterOtherEvent,
                        [
                            Fact::Event(self.first.event),
                            Fact::Before(self.then.event),
                            Fact::Of(self.then.of.clone()),
                        ],
                        [],
                    ),
                    evidence: vec![other.seq(), arrival.seq()],
                };
            }
        }
        Holds
    }

    fn names(&self) -> Vec<&str> {
        vec![&self.first.of, &self.then.of]
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::checks::testing::check;

    const ORDER: &str = "order: {first: {of: c, event: stopped}, then: {of: pod, event: stopped}}";

    #[test]
    fn one_event_before_another() {
        check(
            ORDER,
            "pod run; c create; c STOPPED; pod STOPPED; end",
            expect!["holds"],
        );
        check(
            ORDER,
            "pod run; c create; pod STOPPED; c STOPPED; end",
            expect![[r#"
            ORD-01 at #5 #6: c (c.0.beef): expected STOPPED before STOPPED of pod: it came later
        "#]],
        );
    }

    #[test]
    fn one_event_before_another_that_has_not_come() {
        check(
            ORDER,
            "pod run; c create; c STOPPED; end",
            expect![[r#"
                waits for STOPPED of pod after that of c
                ORD-01 at #5: c (c.0.beef): expected STOPPED of pod after that: STOPPED has not come
            "#]],
        );
        check(
            ORDER,
            "pod run; c create; pod STOPPED; end",
            expect![[r#"
                waits for STOPPED of c
                ORD-01 at #3 #4: c (c.0.beef): expected STOPPED: STOPPED has not come
            "#]],
        );
    }

    #[test]
    fn each_event_of_a_name_before_another() {
        check(
            ORDER,
            "pod run; c create; c STOPPED; c create; pod STOPPED; c STOPPED; end",
            expect![[r#"
            ORD-01 at #8 #9: c#1 (c.1.beef): expected STOPPED before STOPPED of pod: it came later
        "#]],
        );
    }
}
