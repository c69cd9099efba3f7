//! `includes`: these events, in this order, among others.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind_words;
use super::scope::{Scope, Wanted};
use super::subject_events::SubjectEvents;
use super::word::Finding::Holds;
use super::word::{Finding, Word};
use crate::history::EventKind;
use crate::outcome::{Fact, Kind};

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

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::checks::testing::check;

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
}
