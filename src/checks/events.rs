//! The events of a sandbox or container. `events`: exactly these, in this order; `includes`: these,
//! among others; `never`: no such event; `no-repeats`: none comes twice.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind_words;
use super::name_refs::{EventRef, NameRef, check_on};
use super::scope::{Scope, Wanted};
use super::subject_events::SubjectEvents;
use super::word::Finding::Holds;
use super::word::{Finding, Word};
use crate::history::EventKind;
use crate::outcome::{Fact, Kind};

/// Exactly these events, in this order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "events such as `{of: c, exactly: [created, started]}`"
)]
pub struct EventsCheck {
    /// The sandbox or container.
    pub of: String,
    /// The events.
    #[serde(deserialize_with = "kind_words::list")]
    #[schemars(with = "Vec<kind_words::Word>")]
    pub exactly: Vec<EventKind>,
}

impl Word for EventsCheck {
    fn of(&self) -> &str {
        &self.of
    }

    fn validate(&self, scope: &mut dyn Scope<'_>) {
        scope.resolve("of", &self.of, Wanted::Either);
    }

    fn kinds(&self) -> Vec<Kind> {
        let missing = self.exactly.iter().copied().map(Kind::missing);
        let wrong = [Kind::WrongEvents, Kind::WrongOrder];
        missing.chain(wrong).collect()
    }

    fn assess(&self, events: &SubjectEvents<'_, '_>) -> Finding {
        let kinds = events.kinds();
        if kinds == self.exactly {
            Holds
        } else if self.exactly.starts_with(&kinds) {
            events.awaited(self.exactly[kinds.len()])
        } else {
            let sorted = |kinds: &[EventKind]| {
                let mut kinds = kinds.to_vec();
                kinds.sort_unstable();
                kinds
            };
            let kind = if sorted(&kinds) == sorted(&self.exactly) {
                Kind::WrongOrder
            } else {
                Kind::WrongEvents
            };
            events.broken(kind, Fact::Events(self.exactly.clone()))
        }
    }
}

/// These events, in this order; others may come before, between and after them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "events such as `{of: c, in-order: [started, stopped]}`"
)]
pub struct IncludesCheck {
    /// The sandbox or container.
    pub of: String,
    /// The events.
    #[serde(deserialize_with = "kind_words::list")]
    #[schemars(with = "Vec<kind_words::Word>")]
    pub in_order: Vec<EventKind>,
}

impl Word for IncludesCheck {
    fn of(&self) -> &str {
        &self.of
    }

    fn validate(&self, scope: &mut dyn Scope<'_>) {
        scope.resolve("of", &self.of, Wanted::Either);
        if self.in_order.is_empty() {
            scope.error_at("in-order", "without an event this cannot fail");
        }
    }

    fn kinds(&self) -> Vec<Kind> {
        let missing = self.in_order.iter().copied().map(Kind::missing);
        missing.chain([Kind::WrongOrder]).collect()
    }

    fn assess(&self, events: &SubjectEvents<'_, '_>) -> Finding {
        let kinds = events.kinds();
        if let Some(missing) = self.in_order.iter().find(|kind| !kinds.contains(kind)) {
            return events.awaited(*missing);
        }
        let mut rest = kinds.iter();
        let in_place = self
            .in_order
            .iter()
            .all(|kind| rest.any(|seen| seen == kind));
        if in_place {
            Holds
        } else {
            events.broken(Kind::WrongOrder, Fact::Events(self.in_order.clone()))
        }
    }
}

check_on! {
    NeverCheck(EventRef)
}

impl Word for NeverCheck {
    fn of(&self) -> &str {
        &self.0.of
    }

    fn validate(&self, scope: &mut dyn Scope<'_>) {
        scope.resolve("of", &self.0.of, Wanted::Either);
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::UnwantedEvent]
    }

    fn assess(&self, events: &SubjectEvents<'_, '_>) -> Finding {
        match events.first(self.0.event) {
            None => Holds,
            Some(_) => events.broken(Kind::UnwantedEvent, Fact::Event(self.0.event)),
        }
    }
}

check_on! {
    NoRepeatsCheck(NameRef)
}

impl Word for NoRepeatsCheck {
    fn of(&self) -> &str {
        &self.0.of
    }

    fn validate(&self, scope: &mut dyn Scope<'_>) {
        scope.resolve("of", &self.0.of, Wanted::Either);
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::RepeatedEvent]
    }

    fn assess(&self, events: &SubjectEvents<'_, '_>) -> Finding {
        let kinds = events.kinds();
        let repeated = kinds
            .iter()
            .enumerate()
            .find(|(place, kind)| kinds[..*place].contains(kind));
        match repeated {
            None => Holds,
            Some((_, kind)) => events.broken(Kind::RepeatedEvent, Fact::Event(*kind)),
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::checks::testing::check;

    const LIFE: &str = "events: {of: c, exactly: [created, started, stopped, deleted]}";

    #[test]
    fn exactly_these_events() {
        check(
            LIFE,
            "pod run; c create; c CREATED; c STARTED; c STOPPED; c DELETED; end",
            expect!["holds"],
        );
    }

    #[test]
    fn exactly_these_events_and_no_other_order() {
        check(
            LIFE,
            "pod run; c create; c CREATED; c STARTED; c DELETED; c STOPPED; end",
            expect![[r#"
                ORD-01 at #5 #6 #7 #8: c (c.0.beef): expected CREATED, STARTED, STOPPED, DELETED, in this order: CREATED, STARTED, DELETED, STOPPED
            "#]],
        );
    }

    #[test]
    fn exactly_these_events_and_no_more() {
        check(
            LIFE,
            "pod run; c create; c CREATED; c STARTED; c STOPPED; c DELETED; c DELETED; end",
            expect![[r#"
            ORD-01 at #5 #6 #7 #8 #9: c (c.0.beef): expected CREATED, STARTED, STOPPED, DELETED: CREATED, STARTED, STOPPED, DELETED, DELETED
        "#]],
        );
    }

    #[test]
    fn exactly_these_events_and_no_fewer() {
        check(
            LIFE,
            "pod run; c create; c CREATED; c STARTED; c STOPPED; end",
            expect![[r#"
                waits for DELETED of c
                ORD-01 at #3 #4 #5 #6 #7: c (c.0.beef): expected DELETED: DELETED has not come
            "#]],
        );
    }

    #[test]
    fn exactly_these_events_without_one_in_the_middle() {
        check(
            LIFE,
            "pod run; c create; c CREATED; c STOPPED; c DELETED; end",
            expect![[r#"
            ORD-01 at #5 #6 #7: c (c.0.beef): expected CREATED, STARTED, STOPPED, DELETED: CREATED, STOPPED, DELETED
        "#]],
        );
    }

    #[test]
    fn exactly_no_event() {
        check(
            "events: {of: c, exactly: []}",
            "pod run; c create; end",
            expect!["holds"],
        );
        check(
            "events: {of: c, exactly: []}",
            "pod run; c create; c CREATED; end",
            expect![[r#"
            ORD-01 at #5: c (c.0.beef): expected no event: CREATED
        "#]],
        );
    }

    #[test]
    fn events_of_the_teardown_do_not_count() {
        check(
            LIFE,
            "pod run; c create; c CREATED; c STARTED; c STOPPED; end; c DELETED",
            expect![[r#"
                waits for DELETED of c
                ORD-01 at #3 #4 #5 #6 #7 #9: c (c.0.beef): expected DELETED: DELETED has not come
            "#]],
        );
    }

    #[test]
    fn a_replay_to_a_new_subscriber_is_no_second_event() {
        check(
            LIFE,
            "pod run; c create; c CREATED; c STARTED; resubscribe; \
         c CREATED at=-4ms; c STARTED at=-4ms; c STOPPED; c DELETED; end",
            expect!["holds"],
        );
    }

    #[test]
    fn a_second_event_of_the_same_time_on_the_same_stream_is_no_replay() {
        check(
            LIFE,
            "pod run; c create; c CREATED; c STARTED; c STOPPED; c DELETED; c DELETED at=-1ms; end",
            expect![[r#"
            ORD-01 at #5 #6 #7 #8 #9: c (c.0.beef): expected CREATED, STARTED, STOPPED, DELETED: CREATED, STARTED, STOPPED, DELETED, DELETED
        "#]],
        );
    }

    #[test]
    fn a_second_event_on_a_new_stream_is_no_replay() {
        check(
            LIFE,
            "pod run; c create; c CREATED; c STARTED; resubscribe; c STARTED; c STOPPED; c DELETED; end",
            expect![[r#"
            ORD-01 at #5 #6 #9 #10 #11: c (c.0.beef): expected CREATED, STARTED, STOPPED, DELETED: CREATED, STARTED, STARTED, STOPPED, DELETED
        "#]],
        );
    }

    #[test]
    fn events_before_their_call_returns_count() {
        check(
            "events: {of: c, exactly: [created, started]}",
            "pod run; c create begins; c CREATED; c STARTED no-sandbox; c create returns; end",
            expect!["holds"],
        );
    }

    #[test]
    fn each_of_a_name_is_checked() {
        check(
            "events: {of: c, exactly: [created, started]}",
            "pod run; c create; c CREATED; c STARTED; c create; c CREATED; end",
            expect![[r#"
                waits for STARTED of c#1
                ORD-01 at #7 #8 #9: c#1 (c.1.beef): expected STARTED: STARTED has not come
            "#]],
        );
    }

    const INCLUDES: &str = "includes: {of: c, in-order: [started, stopped]}";

    #[test]
    fn events_among_others() {
        check(
            INCLUDES,
            "pod run; c create; c CREATED; c STARTED; c TYPE=9; c STOPPED; c DELETED; end",
            expect!["holds"],
        );
    }

    #[test]
    fn events_among_others_out_of_order() {
        check(
            INCLUDES,
            "pod run; c create; c STOPPED; c STARTED; end",
            expect![[r#"
            ORD-01 at #5 #6: c (c.0.beef): expected STARTED, STOPPED, in this order: STOPPED, STARTED
        "#]],
        );
    }

    #[test]
    fn events_among_others_of_which_one_is_missing() {
        check(
            INCLUDES,
            "pod run; c create; c STOPPED; c DELETED; end",
            expect![[r#"
                waits for STARTED of c
                ORD-01 at #3 #4 #5 #6: c (c.0.beef): expected STARTED: STARTED has not come
            "#]],
        );
    }

    #[test]
    fn the_event_may_not_come() {
        let never = "never: {of: c, event: deleted}";
        check(
            never,
            "pod run; c create; c STOPPED; end; c DELETED",
            expect!["holds"],
        );
        check(
            never,
            "pod run; c create; c STOPPED; c DELETED; end",
            expect![[r#"
            ORD-01 at #5 #6: c (c.0.beef): expected no DELETED: STOPPED, DELETED
        "#]],
        );
    }

    #[test]
    fn an_event_may_not_come_twice() {
        let no_repeats = "no-repeats: {of: pod}";
        check(
            no_repeats,
            "pod run; pod STARTED; pod STOPPED; end",
            expect!["holds"],
        );
        check(
            no_repeats,
            "pod run; pod STOPPED; pod STARTED; pod STOPPED; end",
            expect![[r#"
            ORD-01 at #3 #4 #5: pod (pod.0.beef): expected STOPPED once: STOPPED, STARTED, STOPPED
        "#]],
        );
    }
}
