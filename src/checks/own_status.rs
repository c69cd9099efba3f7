//! `own-status`: every event has its own container's status exactly once, until DELETED. What
//! follows it breaks INV-01.

use super::name_refs::{NameRef, check_on};
use super::scope::{Scope, Wanted};
use super::subject_events::SubjectEvents;
use super::word::{Finding, Word};
use crate::history::{EventArrival, EventKind};
use crate::outcome::{Fact, Kind, Mismatch};

check_on! {
    /// The check `own-status`.
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
        vec![Kind::WrongStatusCount]
    }

    fn assess(&self, events: &SubjectEvents<'_, '_>) -> Finding {
        let deleted = events.first(EventKind::Deleted).map(EventArrival::seq);
        events.find(|arrival| {
            let seq = arrival.seq();
            let is_after = deleted.is_some_and(|deleted| deleted < seq);
            let mismatch = wrong_number(arrival).filter(|_| !is_after);
            mismatch.map(|mismatch| (mismatch, vec![seq]))
        })
    }
}

fn wrong_number(arrival: &EventArrival) -> Option<Mismatch> {
    let event = arrival.event();
    let times = event
        .containers
        .iter()
        .filter(|status| status.id == event.container)
        .count();
    let wanted = usize::from(event.kind != EventKind::Deleted);
    (times != wanted).then(|| {
        let [wanted, times, among] = [wanted, times, event.containers.len()]
            .map(|count| i64::try_from(count).unwrap_or(i64::MAX));
        Mismatch::new(
            Kind::WrongStatusCount,
            [Fact::Count(wanted)],
            [
                Fact::Event(event.kind),
                Fact::Count(times),
                Fact::Among(among),
            ],
        )
    })
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
            ORD-01 at #5: c (c.0.beef): expected 1 status of the container in CREATED: 0, among 0 statuses
        "#]],
        );
        check(
            own_status,
            "pod run; c create; c CREATED twice; end",
            expect![[r#"
            ORD-01 at #5: c (c.0.beef): expected 1 status of the container in CREATED: 2, among 2 statuses
        "#]],
        );
        check(
            own_status,
            "pod run; c create; c CREATED; c DELETED present; end",
            expect![[r#"
            ORD-01 at #6: c (c.0.beef): expected 0 status of the container in DELETED: 1, among 1 statuses
        "#]],
        );
    }

    /// A container that is gone has no status any more.
    #[test]
    fn own_status_is_not_demanded_after_deleted() {
        let own_status = "own-status: {of: c}";
        let ends = "pod run; c create; c CREATED; c DELETED; c STOPPED missing; end";
        check(own_status, ends, expect!["holds"]);
        check(
            own_status,
            "pod run; c create; c CREATED; c STOPPED missing; c DELETED; end",
            expect![[r#"
                ORD-01 at #6: c (c.0.beef): expected 1 status of the container in STOPPED: 0, among 0 statuses
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
