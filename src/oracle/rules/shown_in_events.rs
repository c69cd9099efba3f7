//! What an event shows beside its own container. INV-15: each container of its sandbox is there
//! once. INV-18: the sandbox is in the right state.

use std::collections::BTreeMap;

use crate::history::{
    ContainerId, ContainerState, EventArrival, EventKind, SandboxState, Subject, SubjectKind,
};
use crate::oracle::index::Index;
use crate::oracle::invariants::{Invariant, MUST_SHOULD};
use crate::oracle::name_of;
use crate::oracle::objects::Object;
use crate::outcome::{Fact, Kind, Mismatch, Violation};

pub(in crate::oracle) const CONTAINERS: Invariant = Invariant {
    id: "INV-15",
    name: "invariant::containers-in-snapshot",
    sentence: "The snapshot of an event shows its own container, and every container of the sandbox that an \
               earlier event was about, exactly once until its removal begins, and none of another pod.",
    source: "kubelet evented.go, GeneratePodStatus: an absent container is gone; kubernetes#121003",
    requirements: &["R15", "R17"],
    kinds: &[
        Kind::OwnContainerMissing,
        Kind::SiblingMissing,
        Kind::ContainerRepeated,
        Kind::ContainerOfOtherSandbox,
    ],
    compares_clocks: false,
    of_foreign_pods: true,
    levels: MUST_SHOULD,
    check: missing_or_repeated,
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
fn missing_or_repeated(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
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
            for id in counts.keys().copied() {
                let other = index
                    .object(id)
                    .filter(|other| is_of_other_pod(subject, other));
                if let Some(other) = other {
                    let of = [Fact::Of(other.subject.label())];
                    let mismatch = Mismatch::new(Kind::ContainerOfOtherSandbox, of, []);
                    let broken = || rule.violation_by(subject, mismatch, [arrival]);
                    found.entry(&subject.id).or_insert_with(broken);
                }
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

/// Whether a container is of another pod than the subject of an event. A snapshot may show those
/// of another sandbox of the pod.
fn is_of_other_pod(subject: &Subject, other: &Object<'_>) -> bool {
    let uid = match &subject.kind {
        SubjectKind::Sandbox(spec) => &spec.uid,
        SubjectKind::Container(spec) => &spec.sandbox_spec.uid,
        SubjectKind::Stray => return false,
    };
    matches!(&other.subject.kind, SubjectKind::Container(spec) if spec.sandbox_spec.uid != *uid)
}

/// The state of a container by its last event before this one.
fn state_before(container: &Subject, arrival: &EventArrival) -> ContainerState {
    let mut earlier = container.arrivals.iter().rev();
    let last = earlier.find(|event| event.seq() < arrival.seq());
    match last.map(|last| last.event().kind) {
        Some(EventKind::Started) => ContainerState::Running,
        Some(EventKind::Stopped | EventKind::Deleted) => ContainerState::Exited,
        _ => ContainerState::Created,
    }
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
        0 => {
            let state = Fact::State(state_before(container.subject, arrival).to_string());
            Mismatch::new(Kind::SiblingMissing, expected, [event, state])
        }
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

pub(in crate::oracle) const SANDBOX: Invariant = Invariant {
    id: "INV-18",
    name: "invariant::sandbox-in-its-state",
    sentence: "Every event shows its sandbox READY until it is stopped, and NOTREADY from its \
               STOPPED on.",
    source: "CRI api.proto, PodSandboxStatus; kubelet evented.go, getPodIPs and GeneratePodStatus",
    requirements: &["R13", "C9"],
    kinds: &[Kind::WrongSandboxState],
    compares_clocks: true,
    of_foreign_pods: true,
    levels: MUST_SHOULD,
    check: wrong_sandbox_state,
};

fn wrong_sandbox_state(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    rule.on_each_event(index.history, |subject, arrival| {
        let (own, uid) = match &subject.kind {
            SubjectKind::Sandbox(spec) => (subject.id.as_str(), &spec.uid),
            SubjectKind::Container(spec) => (spec.sandbox.as_str(), &spec.sandbox_spec.uid),
            SubjectKind::Stray => return None,
        };
        let event = arrival.event();
        let shown = event.sandbox.as_ref()?;
        let is_own = event.pod_uid() == Some(uid) && shown.id.as_str() == own;
        let wanted = state_in(index.objects().get(own)?, subject, arrival)?;
        let state = |state: SandboxState| Fact::State(state.to_string());
        (is_own && shown.state != wanted).then(|| {
            Mismatch::new(
                Kind::WrongSandboxState,
                [state(wanted)],
                [state(shown.state), Fact::Event(event.kind)],
            )
        })
    })
}

/// The state that an event must show; `None` while the sandbox is being created or stopped. A
/// snapshot is not older than its event, so that one created after STOPPED shows the stopped
/// sandbox.
fn state_in(
    sandbox: &Object<'_>,
    subject: &Subject,
    arrival: &EventArrival,
) -> Option<SandboxState> {
    let (seq, event) = (arrival.seq(), arrival.event());
    let stopped = sandbox.subject.first(EventKind::Stopped);
    let is_own = matches!(subject.kind, SubjectKind::Sandbox(_));
    let ends = is_own && matches!(event.kind, EventKind::Stopped | EventKind::Deleted);
    let after_stopped = stopped.is_some_and(|stopped| {
        stopped.seq() < seq && stopped.event().created_at <= event.created_at
    });
    if ends || after_stopped {
        return Some(SandboxState::NotReady);
    }
    // It may have exited on its own, with a late STOPPED.
    let ended_by_itself =
        stopped.is_some_and(|stopped| sandbox.ending.is_none_or(|ending| stopped.seq() < ending));
    let is_made = is_own && event.kind == EventKind::Created;
    let in_life = sandbox.ending.is_none_or(|ending| seq < ending);
    (in_life && !is_made && !ended_by_itself).then_some(SandboxState::Ready)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::{CONTAINERS, SANDBOX};
    use crate::oracle::rules::testing::check;

    /// Checks the rule after two containers have been created.
    #[track_caller]
    fn then(script: &str, expect: Expect) {
        check(
            &CONTAINERS,
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
                INV-15 at #5 #9: c (c.0.beef): expected a status of it among the 1 in STARTED of d: it is missing, CREATED before
            "#]],
        );
        then(
            "pod STOPPED without=c without=d",
            expect![[r#"
                INV-15 at #5 #9: c (c.0.beef): expected a status of it among the 1 in STOPPED of pod: it is missing, CREATED before
            "#]],
        );
        then("pod2 run; e create; e CREATED without=c", expect![]);
        then(
            "pod2 run; e create; e CREATED stale=c:created",
            expect![[r#"
            INV-15 at #13: e (e.0.beef): expected no status of c: it is shown, though it is of another sandbox
        "#]],
        );
    }

    #[test]
    fn each_missing_sibling_is_reported_once() {
        then(
            "d STARTED without=c; d STOPPED without=c",
            expect![[r#"
                INV-15 at #5 #9: c (c.0.beef): expected a status of it among the 1 in STARTED of d: it is missing, CREATED before
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
                INV-15 at #5 #9: c (c.0.beef): expected a status of it among the 1 in STARTED of d: it is missing, CREATED before
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
                INV-15 at #5 #11: c (c.0.beef): expected a status of it among the 1 in STARTED of d: it is missing, CREATED before
            "#]],
        );
    }

    #[test]
    fn a_snapshot_need_not_be_newer_than_its_event() {
        then(
            "d STARTED without=c at=-6ms",
            expect![[r#"
                INV-15 at #5 #9: c (c.0.beef): expected a status of it among the 1 in STARTED of d: it is missing, CREATED before
            "#]],
        );
        then(
            "d STARTED without=c at=-2ms",
            expect![[r#"
                INV-15 at #5 #9: c (c.0.beef): expected a status of it among the 1 in STARTED of d: it is missing, CREATED before
            "#]],
        );
        check(
            &CONTAINERS,
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
                INV-15 at #5 #14: c (c.0.beef): expected a status of it among the 2 in STARTED of d: it is missing, CREATED before
            "#]],
        );
    }

    /// Checks the rule after a container has been created in a pod.
    #[track_caller]
    fn of_sandbox(script: &str, expect: Expect) {
        check(
            &SANDBOX,
            &format!("pod run; pod STARTED; c create; c CREATED; {script}"),
            expect,
        );
    }

    #[test]
    fn a_sandbox_is_ready_until_it_is_stopped() {
        of_sandbox(
            "c STARTED not-ready",
            expect![[r#"
        INV-18 at #7: c (c.0.beef): expected the sandbox READY in STARTED: NOTREADY
    "#]],
        );
        of_sandbox(
            "c STARTED not-ready; pod stop",
            expect![[r#"
        INV-18 at #7: c (c.0.beef): expected the sandbox READY in STARTED: NOTREADY
    "#]],
        );
        of_sandbox(
            "pod stop begins; c STOPPED not-ready; pod stop returns",
            expect![],
        );
        of_sandbox("pod stop; c STOPPED", expect![]);
        of_sandbox("pod remove begins; c STOPPED not-ready", expect![]);
    }

    #[test]
    fn a_sandbox_that_is_being_created_need_not_be_ready() {
        check(
            &SANDBOX,
            "pod run begins; pod CREATED not-ready; pod run returns",
            expect![],
        );
        check(
            &SANDBOX,
            "pod run begins; pod STARTED not-ready; pod run returns",
            expect![[r#"
            INV-18 at #2: pod (pod.0.beef): expected the sandbox READY in STARTED: NOTREADY
        "#]],
        );
    }

    #[test]
    fn a_sandbox_that_has_stopped_is_not_ready() {
        of_sandbox(
            "pod stop; pod STOPPED ready",
            expect![[r#"
        INV-18 at #9: pod (pod.0.beef): expected the sandbox NOTREADY in STOPPED: READY
    "#]],
        );
        of_sandbox(
            "pod stop; pod STOPPED; c STOPPED ready",
            expect![[r#"
        INV-18 at #10: c (c.0.beef): expected the sandbox NOTREADY in STOPPED: READY
    "#]],
        );
        of_sandbox("pod stop; pod STOPPED; c STOPPED ready at=-2ms", expect![]);
        of_sandbox(
            "pod stop; pod STOPPED; pod remove; c DELETED; pod DELETED",
            expect![],
        );
        of_sandbox(
            "pod stop; pod STOPPED; pod remove; pod DELETED ready",
            expect![[r#"
            INV-18 at #12: pod (pod.0.beef): expected the sandbox NOTREADY in DELETED: READY
        "#]],
        );
    }

    #[test]
    fn a_sandbox_may_end_by_itself() {
        of_sandbox("c STARTED not-ready; pod STOPPED; c STOPPED", expect![]);
        of_sandbox("c STARTED not-ready; pod STOPPED; pod stop", expect![]);
    }
}
