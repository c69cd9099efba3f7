//! `no-repeats`: no event comes twice.

use super::name_refs::{NameRef, check_on};
use super::scope::{Scope, Wanted};
use super::subject_events::SubjectEvents;
use super::word::Finding::Holds;
use super::word::{Finding, Word};
use crate::outcome::{Fact, Kind};

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
