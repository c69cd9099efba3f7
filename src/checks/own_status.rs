//! `own-status`: every event has its own container's status exactly once, until DELETED. A later
//! event breaks INV-01.

use super::name_refs::{NameRef, check_on};
use super::scope::{Scope, Wanted};
use super::subject_events::SubjectEvents;
use super::word::{Finding, Word};
use crate::history::{EventArrival, EventKind};
use crate::oracle::{own_container_not_once, status_in_deleted};
use crate::outcome::Kind;

check_on! {
    OwnStatusCheck(NameRef)
}

impl Word for OwnStatusCheck {
    fn of(&self) -> &str {
        &self.0.of
    }

    fn validate(&self, scope: &mut dyn Scope<'_>) {
        scope.resolve("of", &self.0.of, Wanted::Container);
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![
            Kind::OwnContainerMissing,
            Kind::OwnContainerRepeated,
            Kind::StatusInDeleted,
        ]
    }

    fn assess(&self, events: &SubjectEvents<'_, '_>) -> Finding {
        let deleted = events.first(EventKind::Deleted).map(EventArrival::seq);
        events.find(|arrival| {
            let seq = arrival.seq();
            let is_after = deleted.is_some_and(|deleted| deleted < seq);
            let event = arrival.event();
            let mismatch = match event.kind {
                EventKind::Deleted => status_in_deleted(event),
                _ => own_container_not_once(event),
            };
            let mismatch = mismatch.filter(|_| !is_after);
            mismatch.map(|mismatch| (mismatch, vec![seq]))
        })
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::checks::testing::check;

    #[test]
    fn own_status() {
        let own_status = "own-status: {of: c}";
        check(
            own_status,
            "pod run; c create; c CREATED; c STOPPED; c DELETED; end",
            expect!["holds"],
        );
        check(
            own_status,
            "pod run; c create; c CREATED missing; end",
            expect![[r#"
                ORD-01 at #5: c (c.0.beef): expected one status of it among the 0 in CREATED: it is missing from CREATED
            "#]],
        );
        check(
            own_status,
            "pod run; c create; c CREATED twice; end",
            expect![[r#"
                ORD-01 at #5: c (c.0.beef): expected one status of it among the 2 in CREATED: there are 2 in CREATED
            "#]],
        );
        check(
            own_status,
            "pod run; c create; c CREATED; c DELETED present; end",
            expect![[r#"
                ORD-01 at #6: c (c.0.beef): expected no status of it in DELETED: EXITED in DELETED
            "#]],
        );
    }

    /// A deleted container has no status any more.
    #[test]
    fn own_status_is_not_demanded_after_deleted() {
        let own_status = "own-status: {of: c}";
        let ends = "pod run; c create; c CREATED; c DELETED; c STOPPED missing; end";
        check(own_status, ends, expect!["holds"]);
        check(
            own_status,
            "pod run; c create; c CREATED; c STOPPED missing; c DELETED; end",
            expect![[r#"
                ORD-01 at #6: c (c.0.beef): expected one status of it among the 0 in STOPPED: it is missing from STOPPED
            "#]],
        );
    }

    #[test]
    fn own_status_among_others() {
        check(
            "own-status: {of: c}",
            "pod run; d create; d CREATED; c create; c CREATED; c DELETED; end",
            expect!["holds"],
        );
    }
}
