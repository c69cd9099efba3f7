//! INV-08: an event's status of its own container is as new as the event.

use crate::history::{ContainerState, Event, EventKind};
use crate::oracle::index::Index;
use crate::oracle::invariants::{Invariant, MUST_MAY};
use crate::outcome::{Fact, Kind, Mismatch, Violation};

pub(in crate::oracle) const RULE: Invariant = Invariant {
    id: "INV-08",
    name: "invariant::status-as-new-as-event",
    sentence: "In an event, the status of its own container is not older than the event says, \
                   and is absent from DELETED.",
    source: "kubelet evented.go, GeneratePodStatus",
    requirements: &["R17"],
    kinds: &[Kind::StatusInDeleted, Kind::OutdatedStatus],
    compares_clocks: false,
    of_foreign_pods: true,
    levels: MUST_MAY,
    check,
};

fn check(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    let history = index.history;
    rule.on_each_event(history, |_, arrival| {
        let event = arrival.event();
        let status = event.own_status()?;
        let allowed: &[&str] = match (event.kind, status.state) {
            (EventKind::Deleted, _) => return status_in_deleted(event),
            (EventKind::Stopped, ContainerState::Exited)
            | (EventKind::Started, ContainerState::Running | ContainerState::Exited)
            | (
                EventKind::Created,
                ContainerState::Created | ContainerState::Running | ContainerState::Exited,
            )
            | (EventKind::Unknown(_), _) => return None,
            (EventKind::Stopped, _) => &["EXITED"],
            (EventKind::Started, _) => &["RUNNING", "EXITED"],
            (EventKind::Created, _) => &["CREATED", "RUNNING", "EXITED"],
        };
        let allowed = allowed.iter().map(|&state| state.to_owned()).collect();
        Some(Mismatch::new(
            Kind::OutdatedStatus,
            [Fact::States(allowed), Fact::Event(event.kind)],
            [
                Fact::State(status.state.to_string()),
                Fact::Event(event.kind),
            ],
        ))
    })
}

/// The mismatch of a DELETED that has a status of its own container.
fn status_in_deleted(event: &Event) -> Option<Mismatch> {
    let status = event
        .own_status()
        .filter(|_| event.kind == EventKind::Deleted)?;
    let state = Fact::State(status.state.to_string());
    Some(Mismatch::new(Kind::StatusInDeleted, [], [state]))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::oracle::rules::testing::{after_create, check_all};

    #[test]
    fn stopped_with_a_running_container_is_too_old() {
        after_create(
            "c STOPPED state=running",
            expect![[r#"
                INV-08 at #7: c (c.0.beef): expected EXITED in STOPPED: RUNNING in STOPPED
            "#]],
        );
    }

    #[test]
    fn started_with_a_created_container_is_too_old() {
        after_create(
            "c STARTED state=created",
            expect![[r#"
                INV-08 at #7: c (c.0.beef): expected RUNNING or EXITED in STARTED: CREATED in STARTED
            "#]],
        );
    }

    #[test]
    fn started_with_an_exited_container_is_newer_and_accepted() {
        after_create("c STARTED state=exited", expect![]);
    }

    #[test]
    fn created_with_an_exited_container_is_newer_and_accepted() {
        check_all(
            "pod run; c create; c CREATED state=exited",
            expect![[r#"
                INV-19 at #5: c (c.0.beef): expected a state from before a call that causes it in CREATED: EXITED
            "#]],
        );
    }

    #[test]
    fn created_with_an_unknown_state_is_reported() {
        check_all(
            "pod run; c create; c CREATED state=unknown",
            expect![[r#"
        INV-08 at #5: c (c.0.beef): expected CREATED, RUNNING or EXITED in CREATED: UNKNOWN(3) in CREATED
    "#]],
        );
    }

    #[test]
    fn deleted_that_still_shows_the_container_is_reported() {
        after_create(
            "c STOPPED; c DELETED present",
            expect![[r#"
                INV-08 at #8: c (c.0.beef): expected no status of it in DELETED: EXITED in DELETED
            "#]],
        );
    }

    #[test]
    fn deleted_that_shows_another_container_is_accepted() {
        after_create("d create; d CREATED; c STOPPED; c DELETED", expect![""]);
    }

    #[test]
    fn a_snapshot_without_its_own_container_is_not_too_old() {
        after_create(
            "c STARTED missing",
            expect![[r#"
                INV-15 at #6 #7: c (c.0.beef): expected a status of it among the 0 in STARTED: it is missing
            "#]],
        );
    }
}
