//! `eventually-known`: an event reports a transition, or a relist shows its result.

use super::name_refs::{EventRef, check_on};
use super::scope::{Scope, needs_relist};
use super::subject_events::SubjectEvents;
use super::word::Finding::{Holds, Pending};
use super::word::{Finding, Word};
use crate::history::{Body, Entry};
use crate::oracle::{entries_about, relists_of};
use crate::outcome::{Fact, Kind, Mismatch};

check_on! {
    EventuallyKnownCheck(EventRef)
}

impl Word for EventuallyKnownCheck {
    fn of(&self) -> &str {
        &self.0.of
    }

    fn validate(&self, scope: &mut dyn Scope<'_>) {
        needs_relist(scope, &self.0.of);
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::missing(self.0.event)]
    }

    fn assess(&self, events: &SubjectEvents<'_, '_>) -> Finding {
        let kind = self.0.event;
        let of_case = |entry: &Entry| matches!(entry.body, Body::CallBegan { case: Some(_), .. });
        let mut relists = relists_of(events.index, events.subject);
        let shown = relists.any(|relist| {
            let shows = relist
                .announcement()
                .is_some_and(|(_, shown)| shown == kind);
            shows && of_case(relist.began)
        });
        if shown || events.first(kind).is_some() {
            return Holds;
        }
        Pending {
            missing: Mismatch::missing(kind, [Fact::Because("by an event or a relist".to_owned())]),
            evidence: entries_about(events.index.history, events.subject),
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::checks::testing::check;

    #[test]
    fn an_end_is_known_by_an_event_or_a_relist() {
        let known = "eventually-known: {of: c, event: stopped}";
        check(known, "pod run; c create; c STOPPED; end", expect!["holds"]);
        check(
            known,
            "pod run; c create; pod relist c=exited; end",
            expect!["holds"],
        );
        check(
            known,
            "pod run; c create; pod relist c=running; end",
            expect![[r#"
                waits for STOPPED, by an event or a relist of c
                ORD-01 at #3 #4: c (c.0.beef): expected STOPPED, by an event or a relist: STOPPED has not come
            "#]],
        );
    }
}
