//! `never`: no such event.

use super::name_refs::{EventRef, check_on};
use super::scope::{Scope, Wanted};
use super::subject_events::SubjectEvents;
use super::word::Finding::Holds;
use super::word::{Finding, Word};
use crate::outcome::{Fact, Kind};

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

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::checks::testing::check;

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
}
