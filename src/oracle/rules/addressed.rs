//! The ids of events. INV-03: a known type and a full id. INV-06: the status of its sandbox, with
//! the pod's UID. INV-10: every id is known from a call or a list.

use std::collections::BTreeMap;

use crate::history::{
    CaseHistory, ContainerId, EventKind, PodUid, Reply, Request, Seq, Subject, SubjectKind,
};
use crate::oracle::index::Index;
use crate::oracle::invariants::{Invariant, MUST_MUST, SHOULD_SHOULD};
use crate::outcome::{Fact, Facts, Kind, Mismatch, Violation};

pub(in crate::oracle) const TYPE_AND_ID: Invariant = Invariant {
    id: "INV-03",
    name: "invariant::known-type-and-full-id",
    sentence: "An event has a type that the CRI defines and the full id of its container.",
    source: "CRI api.proto, ContainerEventResponse",
    requirements: &["R11", "R7"],
    kinds: &[Kind::UnknownEventType, Kind::EmptyId, Kind::ShortenedId],
    compares_clocks: false,
    of_foreign_pods: true,
    levels: MUST_MUST,
    check: wrong_type_or_id,
};

fn wrong_type_or_id(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    let history = index.history;
    let known: Vec<&ContainerId> = history
        .subjects()
        .iter()
        .filter(|subject| !matches!(subject.kind, SubjectKind::Stray))
        .map(|subject| &subject.id)
        .collect();
    rule.on_each_event(history, |subject, arrival| {
        let event = arrival.event();
        let id = event.container.as_str();
        if let EventKind::Unknown(number) = event.kind {
            let number = Fact::Number(number.into());
            return Some(Mismatch::new(Kind::UnknownEventType, [], [number]));
        }
        if id.is_empty() {
            return Some(Mismatch::new(Kind::EmptyId, [], []));
        }
        if !matches!(subject.kind, SubjectKind::Stray) {
            return None;
        }
        let whole = known.iter().find(|whole| whole.as_str().starts_with(id))?;
        Some(Mismatch::new(
            Kind::ShortenedId,
            [Fact::Id(whole.to_string())],
            [Fact::Id(id.to_owned())],
        ))
    })
}

pub(in crate::oracle) const POD_UID: Invariant = Invariant {
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
    check: wrong_pod,
};

fn wrong_pod(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
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

pub(in crate::oracle) const KNOWN: Invariant = Invariant {
    id: "INV-10",
    name: "invariant::no-unknown-ids",
    sentence: "Every id of an event of the run's pods is one that a call has returned or may \
                   have made, or that a list shows.",
    source: "kubelet generic.go: events are looked up in lists; R11 of the kubelet",
    requirements: &["R11"],
    kinds: &[Kind::UnknownId],
    compares_clocks: false,
    of_foreign_pods: false,
    levels: SHOULD_SHOULD,
    check: unknown,
};

/// Finds each id in an event of the case's pods, or in its snapshot, that no call has returned and
/// no list has shown. Events of other pods are not judged, since their containers are unknown.
fn unknown(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    let history = index.history;
    let mut found = BTreeMap::<&ContainerId, Violation>::new();
    for subject in history.subjects() {
        let is_stray = matches!(subject.kind, SubjectKind::Stray);
        for arrival in &subject.arrivals {
            let shown = arrival.event().containers.iter().map(|status| &status.id);
            let shown = shown.filter(|id| index.object(id).is_none());
            for id in is_stray.then_some(&subject.id).into_iter().chain(shown) {
                let known = found.contains_key(id)
                    || is_shortened(id, history)
                    || may_be_made(arrival.seq(), history)
                    || is_shown(id, history);
                if !known {
                    let event = Fact::Event(arrival.event().kind);
                    let mismatch = Mismatch::new(Kind::UnknownId, [], [event]);
                    let broken = rule.violation(id.to_string(), mismatch, vec![arrival.seq()]);
                    found.insert(id, broken);
                }
            }
        }
    }
    found.into_values().collect()
}

/// Whether an id is the beginning of a known one, which breaks INV-03.
fn is_shortened(id: &ContainerId, history: &CaseHistory) -> bool {
    let known = history.subjects().iter();
    let mut known = known.filter(|subject| !matches!(subject.kind, SubjectKind::Stray));
    id.as_str().is_empty() || known.any(|whole| whole.id.as_str().starts_with(id.as_str()))
}

/// Whether a call that began before the event may have created the container without returning its
/// id: one that failed, or has not returned.
fn may_be_made(arrived: Seq, history: &CaseHistory) -> bool {
    let mut calls = history.calls();
    calls.any(|call| {
        let makes = matches!(
            call.request(),
            Request::RunSandbox(_) | Request::CreateContainer(_)
        );
        makes && call.began().seq < arrived && !matches!(call.result(), Some(Ok(_)))
    })
}

fn is_shown(id: &ContainerId, history: &CaseHistory) -> bool {
    let mut calls = history.calls();
    calls.any(|call| match call.result() {
        Some(Ok(Reply::Containers(listed))) => listed.iter().any(|one| one.id == *id),
        Some(Ok(Reply::Sandboxes(listed))) => {
            let mut listed = listed.iter();
            listed.any(|one| ContainerId::from(&one.id) == *id)
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::KNOWN;
    use crate::oracle::rules::testing::{after_create, check, check_all};

    #[test]
    fn a_type_that_the_cri_does_not_define_is_reported() {
        after_create(
            "c TYPE=9",
            expect![[r#"
                INV-03 at #7: c (c.0.beef): expected a type from 0 to 3: type 9
                INV-19 at #7: c (c.0.beef): expected a state from before a call that causes it in UNKNOWN(9): EXITED
            "#]],
        );
    }

    #[test]
    fn an_empty_id_is_reported() {
        after_create(
            "c STARTED id=",
            expect![[r#"
                INV-03 at #7: : expected a container id: an empty one
            "#]],
        );
    }

    #[test]
    fn a_shortened_id_is_reported() {
        after_create(
            "c STARTED id=c.0",
            expect![[r#"
                INV-03 at #7: c.0: expected the whole id c.0.beef: the shortened id c.0
            "#]],
        );
    }

    #[test]
    fn an_id_that_is_no_prefix_of_a_known_one_may_be_anothers() {
        after_create(
            "c STARTED id=d.0",
            expect![[r#"
                INV-10 at #7: d.0: expected the id of something that a call has made or a list has shown: STARTED of an id that no call has returned and no list shows
            "#]],
        );
    }

    #[test]
    fn an_event_without_a_sandbox_is_reported() {
        after_create(
            "c STARTED no-sandbox",
            expect![[r#"
                INV-06 at #7: c (c.0.beef): expected pod_sandbox_status with the UID `uid-of-pod`: no pod_sandbox_status in STARTED
            "#]],
        );
    }

    #[test]
    fn a_sandbox_without_metadata_is_reported() {
        after_create(
            "c STARTED no-metadata",
            expect![[r#"
                INV-06 at #7: c (c.0.beef): expected pod_sandbox_status with the UID `uid-of-pod`: no metadata in the pod_sandbox_status of STARTED
            "#]],
        );
    }

    #[test]
    fn an_empty_uid_is_reported() {
        after_create(
            "c STARTED uid=",
            expect![[r#"
                INV-06 at #7: c (c.0.beef): expected pod_sandbox_status with the UID `uid-of-pod`: the UID `` in STARTED
            "#]],
        );
    }

    #[test]
    fn another_uid_is_reported() {
        after_create(
            "c STARTED uid=x",
            expect![[r#"
                INV-06 at #7: c (c.0.beef): expected pod_sandbox_status with the UID `uid-of-pod`: the UID `x` in STARTED
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

    #[test]
    fn an_id_that_a_call_returns_is_known_before_that_too() {
        check(
            &KNOWN,
            "pod run; c create begins; c CREATED; c create returns; c DELETED; end",
            expect![""],
        );
    }

    #[test]
    fn an_id_in_a_snapshot_that_no_call_or_list_shows() {
        let script = "pod run; c create; c CREATED stale=other:created; end";
        check(
            &KNOWN,
            script,
            expect![[r#"
            INV-10 at #5: other.0.beef: expected the id of something that a call has made or a list has shown: CREATED of an id that no call has returned and no list shows
        "#]],
        );
    }

    #[test]
    fn an_id_that_no_call_or_list_shows() {
        check(
            &KNOWN,
            "pod run; c create; c CREATED; c STARTED id=other; end",
            expect![[r#"
                INV-10 at #6: other: expected the id of something that a call has made or a list has shown: STARTED of an id that no call has returned and no list shows
            "#]],
        );
    }

    #[test]
    fn an_id_that_a_list_of_others_does_not_show() {
        check(
            &KNOWN,
            "pod run; c create; c CREATED; c STARTED id=other; pod relist c=running; \
         pod find-sandbox pod=ready; end",
            expect![[r#"
                INV-10 at #6: other: expected the id of something that a call has made or a list has shown: STARTED of an id that no call has returned and no list shows
            "#]],
        );
    }

    #[test]
    fn an_id_that_a_list_shows() {
        check(
            &KNOWN,
            "pod run; c create; c CREATED; c STARTED id=d.0.beef; pod relist c=running d=running; end",
            expect![""],
        );
    }

    #[test]
    fn a_failed_call_may_have_made_an_id_that_it_did_not_return() {
        check(
            &KNOWN,
            "pod run; c create fails; c CREATED id=made; c DELETED id=made; end",
            expect![""],
        );
    }

    #[test]
    fn a_call_that_fails_later_has_not_made_it() {
        check(
            &KNOWN,
            "pod run; c create; c CREATED id=other; d create fails; end",
            expect![[r#"
                INV-10 at #5: other: expected the id of something that a call has made or a list has shown: CREATED of an id that no call has returned and no list shows
            "#]],
        );
    }

    #[test]
    fn a_shortened_id_is_reported_by_another_rule() {
        check(
            &KNOWN,
            "pod run; c create; c CREATED id=c.0; end",
            expect![""],
        );
    }

    #[test]
    fn other_pods_are_not_judged() {
        check(
            &KNOWN,
            "pod run; c create; podx CREATED id=other uid=x; end",
            expect![""],
        );
    }
}
