//! INV-24: a snapshot is not empty while a container exists.

use crate::history::{ContainerId, SubjectKind};
use crate::oracle::index::Index;
use crate::oracle::invariants::{Invariant, MUST_MAY};
use crate::outcome::{Fact, Kind, Mismatch, Violation};

pub(in crate::oracle) const RULE: Invariant = Invariant {
    id: "INV-24",
    name: "invariant::no-empty-snapshot",
    sentence: "An event of a container shows at least one container, as long as its own, or an \
                   older one of its sandbox, is not being removed.",
    source: "kubelet evented.go, GeneratePodStatus: an absent container is gone",
    requirements: &["R15"],
    kinds: &[Kind::EmptySnapshot],
    compares_clocks: false,
    of_foreign_pods: true,
    levels: MUST_MAY,
    check,
};

/// Finds each event that shows no container at all, although its own or a sibling certainly
/// existed: its removal had not begun, and a sibling was CREATED before the creation of the event's
/// own container began.
fn check(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    let sandboxes = index.sandbox_events();
    rule.on_each_event(index.history, |subject, arrival| {
        let SubjectKind::Container(spec) = &subject.kind else {
            return None;
        };
        let event = arrival.event();
        let is_kept = |id: &ContainerId| index.is_kept_at(id, arrival.seq());
        let place = (spec.sandbox.as_str(), arrival.subscription());
        let siblings = sandboxes.get(&place).into_iter().flatten();
        let mut earlier = siblings.filter(|(sibling, created)| {
            let creation = index.container(&subject.id).and_then(|life| life.creation);
            let is_earlier = creation.is_some_and(|call| created.seq() < call.began().seq);
            is_earlier && matches!(sibling.kind, SubjectKind::Container(_)) && is_kept(&sibling.id)
        });
        let is_there = is_kept(&subject.id) || earlier.next().is_some();
        (event.containers.is_empty() && is_there).then(|| {
            let event = [Fact::Event(event.kind)];
            Mismatch::new(Kind::EmptySnapshot, [], event)
        })
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::RULE;
    use crate::oracle::rules::testing::check;

    /// Checks the rule on snapshots without a container, after the common steps.
    #[track_caller]
    fn emptied(script: &str, expect: Expect) {
        check(
            &RULE,
            &format!("pod run; c create; c CREATED; d create; d CREATED; {script}"),
            expect,
        );
    }

    #[test]
    fn a_snapshot_is_not_empty_while_its_container_exists() {
        emptied("d STARTED", expect![]);
        emptied("d STARTED without=c", expect![]);
        emptied(
            "c remove begins; d STARTED missing without=c",
            expect![[r#"
            INV-24 at #10: d (d.0.beef): expected a container in STARTED, as one is there: the snapshot of STARTED is empty
        "#]],
        );
    }

    #[test]
    fn a_container_that_is_being_removed_need_not_be_shown() {
        emptied(
            "c remove begins; d remove begins; d STOPPED missing without=c",
            expect![],
        );
        emptied("pod remove begins; d STOPPED missing without=c", expect![]);
    }

    #[test]
    fn a_sibling_that_existed_before_is_enough() {
        emptied(
            "d remove; d DELETED without=c",
            expect![[r#"
            INV-24 at #11: d (d.0.beef): expected a container in DELETED, as one is there: the snapshot of DELETED is empty
        "#]],
        );
        // `d` was asked for later: the snapshot can have been read before that.
        emptied("c remove; c DELETED without=d", expect![]);
    }
}
