//! INV-06: each event has its sandbox's status, with the pod's UID.

use crate::history::{PodUid, Subject, SubjectKind};
use crate::oracle::index::Index;
use crate::oracle::invariants::{Invariant, MUST_MUST};
use crate::outcome::{Fact, Facts, Kind, Mismatch, Violation};

pub(in crate::oracle) const RULE: Invariant = Invariant {
    id: "INV-06",
    name: "invariant::sandbox-with-pod-uid",
    sentence: "Every event has the sandbox's status, with the UID given at RunPodSandbox.",
    source: "kubelet evented.go ignores an event without it; KEP-3386 2026; kubernetes#114371",
    requirements: &["R12"],
    kinds: &[
        Kind::MissingSandboxStatus,
        Kind::MissingSandboxMetadata,
        Kind::WrongPodUid,
    ],
    compares_clocks: false,
    of_foreign_pods: true,
    levels: MUST_MUST,
    check,
};

fn check(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    let history = index.history;
    rule.on_each_event(history, |subject, arrival| {
        let event = arrival.event();
        let Some(uid) = pod_uid(subject) else {
            // A stray was found by the UID in its event; one without would not be here.
            return None;
        };
        let (kind, other_uid) = match (&event.sandbox, event.pod_uid()) {
            (None, _) => (Kind::MissingSandboxStatus, None),
            (Some(_), None) => (Kind::MissingSandboxMetadata, None),
            (Some(_), Some(other)) if other != uid => (Kind::WrongPodUid, Some(other)),
            (Some(_), Some(_)) => return None,
        };
        let other_uid = other_uid.map(|uid| Fact::Uid(uid.to_string()));
        let actual = [Fact::Event(event.kind)].into_iter().chain(other_uid);
        Some(Mismatch::new(
            kind,
            [Fact::Uid(uid.to_string())],
            actual.collect::<Facts>(),
        ))
    })
}

fn pod_uid(subject: &Subject) -> Option<&PodUid> {
    match &subject.kind {
        SubjectKind::Sandbox(spec) => Some(&spec.uid),
        SubjectKind::Container(spec) => Some(&spec.sandbox_spec.uid),
        SubjectKind::Stray => None,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::oracle::rules::testing::{after_create, check_all};

    #[test]
    fn an_event_without_a_sandbox_is_reported() {
        after_create(
            "c STARTED no-sandbox",
            expect![[r#"
        INV-06 at #6: c (c.0.beef): expected pod_sandbox_status with the UID `uid-of-pod`: no pod_sandbox_status in STARTED
    "#]],
        );
    }

    #[test]
    fn a_sandbox_without_metadata_is_reported() {
        after_create(
            "c STARTED no-metadata",
            expect![[r#"
        INV-06 at #6: c (c.0.beef): expected pod_sandbox_status with the UID `uid-of-pod`: no metadata in the pod_sandbox_status of STARTED
    "#]],
        );
    }

    #[test]
    fn an_empty_uid_is_reported() {
        after_create(
            "c STARTED uid=",
            expect![[r#"
        INV-06 at #6: c (c.0.beef): expected pod_sandbox_status with the UID `uid-of-pod`: the UID `` in STARTED
    "#]],
        );
    }

    #[test]
    fn another_uid_is_reported() {
        after_create(
            "c STARTED uid=x",
            expect![[r#"
        INV-06 at #6: c (c.0.beef): expected pod_sandbox_status with the UID `uid-of-pod`: the UID `x` in STARTED
    "#]],
        );
    }

    #[test]
    fn the_uid_of_the_pod_is_accepted() {
        after_create("c STARTED uid=uid-of-pod", expect![]);
    }

    #[test]
    fn the_uid_of_another_pod_of_the_case_is_reported() {
        check_all(
            "pod run; pod2 run; c create in=pod; c CREATED uid=uid-of-pod2",
            expect![[r#"
            INV-06 at #7: c (c.0.beef): expected pod_sandbox_status with the UID `uid-of-pod`: the UID `uid-of-pod2` in CREATED
        "#]],
        );
    }

    #[test]
    fn a_sandboxs_own_event_needs_the_uid_too() {
        check_all(
            "pod run; pod STARTED; pod STOPPED no-sandbox",
            expect![[r#"
        INV-06 at #4: pod (pod.0.beef): expected pod_sandbox_status with the UID `uid-of-pod`: no pod_sandbox_status in STOPPED
    "#]],
        );
    }

    #[test]
    fn an_event_without_a_sandbox_before_its_call_returns_is_reported() {
        check_all(
            "pod run; c create begins; c CREATED no-sandbox; c create returns",
            expect![[r#"
            INV-06 at #4: c (c.0.beef): expected pod_sandbox_status with the UID `uid-of-pod`: no pod_sandbox_status in CREATED
        "#]],
        );
    }

    #[test]
    fn an_event_with_another_uid_before_its_call_returns_is_reported() {
        check_all(
            "pod run; c create begins; c CREATED uid=x; c create returns",
            expect![[r#"
            INV-06 at #4: c (c.0.beef): expected pod_sandbox_status with the UID `uid-of-pod`: the UID `x` in CREATED
        "#]],
        );
    }

    #[test]
    fn an_event_of_a_foreign_container_is_not_judged() {
        after_create(
            "foreign CREATED; foreign CREATED no-sandbox; foreign CREATED uid=",
            expect![],
        );
    }
}
