//! INV-15: a snapshot has all containers of its sandbox.

use std::collections::BTreeMap;

use crate::history::{ContainerId, EventArrival, EventKind, Subject, SubjectKind};
use crate::oracle::index::Index;
use crate::oracle::invariants::{Invariant, MUST_MAY};
use crate::oracle::name_of;
use crate::outcome::{Fact, Kind, Mismatch, Violation};

pub(in crate::oracle) const RULE: Invariant = Invariant {
    id: "INV-15",
    name: "invariant::siblings-in-snapshot",
    sentence: "The snapshot of an event shows every container of its sandbox that an earlier event \
                   was about, until its removal begins.",
    source: "kubelet evented.go, GeneratePodStatus: an absent container is gone; kubernetes#121003",
    requirements: &["R15"],
    kinds: &[Kind::SiblingMissing],
    compares_clocks: true,
    of_foreign_pods: true,
    levels: MUST_MAY,
    check,
};

/// A container that is known to exist.
struct Known<'a> {
    subject: &'a Subject,
    /// The first event about it.
    by: &'a EventArrival,
}

/// Finds each container that is missing from the snapshot of a sibling's event. A container exists
/// from its first event on, and no snapshot is older than its event: a later one shows the
/// container, unless it is being removed.
fn check(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    let mut found = BTreeMap::<&ContainerId, Violation>::new();
    for events in index.sandbox_events().values() {
        let mut known = BTreeMap::<&ContainerId, Known<'_>>::new();
        for &(subject, arrival) in events {
            let event = arrival.event();
            known.retain(|id, _| index.is_kept_at(id, arrival.seq()));
            for (id, sibling) in &known {
                let shown = event.containers.iter().any(|status| status.id == **id);
                let later = sibling.by.event().created_at <= event.created_at;
                if **id != subject.id && later && !shown {
                    let broken = || missing(rule, sibling, subject, arrival);
                    found.entry(*id).or_insert_with(broken);
                }
            }
            if matches!(subject.kind, SubjectKind::Container(_)) && event.kind != EventKind::Deleted
            {
                let by = arrival;
                known.entry(&subject.id).or_insert(Known { subject, by });
            }
        }
    }
    found.into_values().collect()
}

fn missing(
    rule: &Invariant,
    sibling: &Known<'_>,
    subject: &Subject,
    arrival: &EventArrival,
) -> Violation {
    let event = arrival.event();
    rule.violation(
        name_of(sibling.subject),
        Mismatch::new(
            Kind::SiblingMissing,
            [
                Fact::Among(i64::try_from(event.containers.len()).unwrap_or(i64::MAX)),
                Fact::Of(subject.label()),
            ],
            [Fact::Event(event.kind)],
        ),
        vec![sibling.by.seq(), arrival.seq()],
    )
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
        then("d STARTED without=c at=-6ms", expect![]);
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
