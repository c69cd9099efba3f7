//! INV-15: a snapshot has each container of its sandbox once.

use std::collections::BTreeMap;

use crate::history::{ContainerId, EventArrival, EventKind, Subject, SubjectKind};
use crate::oracle::index::Index;
use crate::oracle::invariants::{Invariant, MUST_SHOULD};
use crate::oracle::name_of;
use crate::outcome::{Fact, Kind, Mismatch, Violation};

pub(in crate::oracle) const RULE: Invariant = Invariant {
    id: "INV-15",
    name: "invariant::containers-in-snapshot",
    sentence: "The snapshot of an event shows its own container, and every container of the sandbox that an \
               earlier event was about, exactly once until its removal begins.",
    source: "kubelet evented.go, GeneratePodStatus: an absent container is gone; kubernetes#121003",
    requirements: &["R15", "R17"],
    kinds: &[
        Kind::OwnContainerMissing,
        Kind::SiblingMissing,
        Kind::ContainerRepeated,
    ],
    compares_clocks: false,
    of_foreign_pods: true,
    levels: MUST_SHOULD,
    check,
};

/// A container that is known to exist.
struct Known<'a> {
    subject: &'a Subject,
    /// The first event about it.
    by: &'a EventArrival,
}

/// Finds each container that is missing from a snapshot, or repeated in it. A container exists from
/// its first event on. No snapshot is older than its event, by the runtime's clock, and none is
/// from before the creation of its own container.
fn check(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    let mut found = BTreeMap::<&ContainerId, Violation>::new();
    let has_one_clock = index.history.clock_set_by().is_none();
    for events in index.sandbox_events().values() {
        let mut known = BTreeMap::<&ContainerId, Known<'_>>::new();
        for &(subject, arrival) in events {
            let (event, seq) = (arrival.event(), arrival.seq());
            let is_container = matches!(subject.kind, SubjectKind::Container(_));
            let deleted = subject.first(EventKind::Deleted);
            // Its presence in DELETED breaks INV-08, and an event after DELETED breaks INV-01.
            let is_deleted = deleted.is_some_and(|deleted| deleted.seq() <= seq);
            if is_container && !is_deleted {
                known.entry(&subject.id).or_insert(Known {
                    subject,
                    by: arrival,
                });
            }
            let object = index.object(&subject.id);
            let mut counts = BTreeMap::<&ContainerId, usize>::new();
            for status in &event.containers {
                *counts.entry(&status.id).or_default() += 1;
            }
            let own_creation = object
                .and_then(|own| own.creation)
                .map(|call| call.began().seq);
            for (id, container) in &known {
                let is_own = **id == subject.id;
                if is_own && is_deleted {
                    continue;
                }
                let count = counts.get(id).copied().unwrap_or_default();
                let by = container.by;
                let is_newer = by.event().created_at <= event.created_at && has_one_clock;
                let is_earlier = Some(by.seq()) < own_creation;
                let is_kept = || {
                    index
                        .object(id)
                        .is_none_or(|sibling| sibling.is_kept_at(seq))
                };
                let is_due = is_own || (is_newer || is_earlier) && is_kept();
                if count > 1 || count == 0 && is_due {
                    let broken = || broken(rule, container, subject, arrival, count);
                    found.entry(*id).or_insert_with(broken);
                }
            }
        }
    }
    found.into_values().collect()
}

fn broken(
    rule: &Invariant,
    container: &Known<'_>,
    subject: &Subject,
    arrival: &EventArrival,
    count: usize,
) -> Violation {
    let event = arrival.event();
    let [among, count] =
        [event.containers.len(), count].map(|count| i64::try_from(count).unwrap_or(i64::MAX));
    let event = Fact::Event(event.kind);
    let expected = [Fact::Among(among), Fact::Of(subject.label())];
    let mismatch = match count {
        0 if container.subject.id == subject.id => {
            Mismatch::new(Kind::OwnContainerMissing, expected, [event])
        }
        0 => Mismatch::new(Kind::SiblingMissing, expected, [event]),
        _ => Mismatch::new(
            Kind::ContainerRepeated,
            expected,
            [event, Fact::Count(count)],
        ),
    };
    let mut evidence = vec![container.by.seq(), arrival.seq()];
    evidence.dedup();
    rule.violation(name_of(container.subject), mismatch, evidence)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::RULE;
    use crate::oracle::rules::testing::check;

    /// Checks the rule after two containers have been created.
    #[track_caller]
    fn then(script: &str, expect: Expect) {
        check(
            &RULE,
            &format!("pod run; c create; c CREATED; d create; d CREATED; {script}"),
            expect,
        );
    }

    #[test]
    fn siblings_are_shown() {
        then("d STARTED", expect![]);
        then(
            "d STARTED without=c",
            expect![[r#"
            INV-15 at #5 #9: c (c.0.beef): expected a status of it among the 1 in STARTED of d: it is missing
        "#]],
        );
        then(
            "pod STOPPED without=c without=d",
            expect![[r#"
            INV-15 at #5 #9: c (c.0.beef): expected a status of it among the 1 in STOPPED of pod: it is missing
        "#]],
        );
        then("pod2 run; e create; e CREATED without=c", expect![]);
    }

    #[test]
    fn each_missing_sibling_is_reported_once() {
        then(
            "d STARTED without=c; d STOPPED without=c",
            expect![[r#"
            INV-15 at #5 #9: c (c.0.beef): expected a status of it among the 1 in STARTED of d: it is missing
        "#]],
        );
    }

    #[test]
    fn a_container_that_is_being_removed_may_be_gone() {
        then(
            "c remove begins; d STARTED without=c; c remove returns",
            expect![],
        );
        then(
            "d STARTED without=c; c remove",
            expect![[r#"
            INV-15 at #5 #9: c (c.0.beef): expected a status of it among the 1 in STARTED of d: it is missing
        "#]],
        );
        then(
            "pod remove begins; d STARTED without=c; pod remove returns",
            expect![],
        );
        then("c DELETED; d STARTED", expect![]);
    }

    #[test]
    fn a_failed_start_may_leave_nothing() {
        then("c start fails; d STARTED without=c", expect![]);
        then(
            "c start begins; d STARTED without=c; c start fails returns",
            expect![],
        );
        then(
            "c start; d STARTED without=c",
            expect![[r#"
            INV-15 at #5 #11: c (c.0.beef): expected a status of it among the 1 in STARTED of d: it is missing
        "#]],
        );
    }

    #[test]
    fn a_snapshot_need_not_be_newer_than_its_event() {
        then(
            "d STARTED without=c at=-6ms",
            expect![[r#"
            INV-15 at #5 #9: c (c.0.beef): expected a status of it among the 1 in STARTED of d: it is missing
        "#]],
        );
        then(
            "d STARTED without=c at=-2ms",
            expect![[r#"
            INV-15 at #5 #9: c (c.0.beef): expected a status of it among the 1 in STARTED of d: it is missing
        "#]],
        );
        check(
            &RULE,
            "pod run; c create; d create; d CREATED; c CREATED",
            expect![],
        );
    }

    #[test]
    fn streams_are_judged_each_by_itself() {
        then("d STARTED without=c on=7", expect![]);
    }

    #[test]
    fn a_removal_by_a_prefix_of_the_id_counts() {
        then("c remove prefix; d STARTED without=c", expect![]);
        // Two ids begin so, and the runtime can have removed neither.
        then(
            "c.0 create; c.0 CREATED; c remove prefix; d STARTED without=c",
            expect![[r#"
            INV-15 at #5 #14: c (c.0.beef): expected a status of it among the 2 in STARTED of d: it is missing
        "#]],
        );
    }
}
