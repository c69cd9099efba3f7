//! INV-14: a snapshot has its event's own container exactly once.

use crate::history::{Event, EventKind, SubjectKind};
use crate::oracle::index::Index;
use crate::oracle::invariants::{Invariant, MUST_SHOULD};
use crate::outcome::{Fact, Facts, Kind, Mismatch, Violation};

pub(in crate::oracle) const RULE: Invariant = Invariant {
    id: "INV-14",
    name: "invariant::own-container-once",
    sentence: "The snapshot of an event shows the event's own container exactly once, as long as \
                   it is not deleted.",
    source: "kubelet evented.go, GeneratePodStatus: an absent container is gone",
    requirements: &["R17"],
    kinds: &[Kind::OwnContainerMissing, Kind::OwnContainerRepeated],
    compares_clocks: false,
    of_foreign_pods: true,
    levels: MUST_SHOULD,
    check,
};

fn check(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    let history = index.history;
    rule.on_each_event(history, |subject, arrival| {
        let event = arrival.event();
        let deleted = subject.first(EventKind::Deleted);
        // Its presence in DELETED breaks INV-08, and an event after DELETED breaks INV-01.
        let is_deleted = deleted.is_some_and(|deleted| deleted.seq() <= arrival.seq());
        if is_deleted || !matches!(subject.kind, SubjectKind::Container(_)) {
            return None;
        }
        own_container_not_once(event)
    })
}

/// The mismatch of a snapshot that lacks the event's own container, or has it more than once.
pub(crate) fn own_container_not_once(event: &Event) -> Option<Mismatch> {
    let statuses = event.containers.iter();
    let times = statuses
        .filter(|status| status.id == event.container)
        .count();
    (times != 1).then(|| {
        let [among, times_shown] =
            [event.containers.len(), times].map(|count| i64::try_from(count).unwrap_or(i64::MAX));
        let (is, actual) = match times {
            0 => (Kind::OwnContainerMissing, None),
            _ => (Kind::OwnContainerRepeated, Some(Fact::Count(times_shown))),
        };
        let actual = [Fact::Event(event.kind)].into_iter().chain(actual);
        let expected = [Fact::Event(event.kind), Fact::Among(among)];
        Mismatch::new(is, expected, actual.collect::<Facts>())
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::RULE;
    use crate::oracle::rules::testing::check;

    #[test]
    fn an_event_shows_its_own_container_once() {
        let own =
            |script: &str, expect| check(&RULE, &format!("pod run; c create; {script}"), expect);
        own("c CREATED; c STARTED; c STOPPED; c DELETED", expect![]);
        own(
            "c CREATED missing",
            expect![[r#"
            INV-14 at #5: c (c.0.beef): expected one status of it among the 0 in CREATED: it is missing from CREATED
        "#]],
        );
        own(
            "c CREATED; c STOPPED missing",
            expect![[r#"
            INV-14 at #6: c (c.0.beef): expected one status of it among the 0 in STOPPED: it is missing from STOPPED
        "#]],
        );
        own(
            "c CREATED; c STARTED twice",
            expect![[r#"
            INV-14 at #6: c (c.0.beef): expected one status of it among the 2 in STARTED: there are 2 in STARTED
        "#]],
        );
        own(
            "c CREATED; c TYPE=9 missing",
            expect![[r#"
            INV-14 at #6: c (c.0.beef): expected one status of it among the 0 in UNKNOWN(9): it is missing from UNKNOWN(9)
        "#]],
        );
    }

    #[test]
    fn a_deleted_container_need_not_be_shown() {
        let own =
            |script: &str, expect| check(&RULE, &format!("pod run; c create; {script}"), expect);
        own("c CREATED; c DELETED; c STOPPED missing", expect![]);
        own("c CREATED; c DELETED present", expect![]);
        own(
            "c CREATED; c STOPPED missing; c DELETED",
            expect![[r#"
            INV-14 at #6: c (c.0.beef): expected one status of it among the 0 in STOPPED: it is missing from STOPPED
        "#]],
        );
    }

    #[test]
    fn a_sandbox_is_no_container_of_its_own() {
        check(&RULE, "pod run; pod STARTED; pod STOPPED", expect![]);
        check(&RULE, "pod run; foreign CREATED missing", expect![]);
    }
}
