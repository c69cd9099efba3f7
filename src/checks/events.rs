//! `events`: exactly these events, in this order.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind_words;
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
}
