//! `sandbox-status`: every event has the status of its sandbox.

use super::name_refs::{NameRef, check_on};
use super::scope::{Scope, Wanted};
use super::subject_events::SubjectEvents;
use super::word::{Finding, Word};
use crate::history::{EventArrival, SandboxId, Subject, SubjectKind};
use crate::outcome::{Fact, Facts, Kind, Mismatch};

check_on! {
    SandboxStatusCheck(NameRef)
}

impl Word for SandboxStatusCheck {
    fn of(&self) -> &str {
        &self.0.of
    }

    fn validate(&self, scope: &mut dyn Scope<'_>) {
        scope.resolve("of", &self.0.of, Wanted::Either);
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![
            Kind::MissingSandboxStatus,
            Kind::MissingSandboxMetadata,
            Kind::DiffersFromSpec,
            Kind::WrongPodUid,
        ]
    }

    fn assess(&self, events: &SubjectEvents<'_, '_>) -> Finding {
        events.each(wrong_sandbox)
    }
}

fn wrong_sandbox(subject: &Subject, arrival: &EventArrival) -> Option<Mismatch> {
    let event = arrival.event();
    let (own, uid) = match &subject.kind {
        SubjectKind::Sandbox(spec) => (SandboxId::from(subject.id.as_str()), &spec.uid),
        SubjectKind::Container(spec) => (spec.sandbox.clone(), &spec.sandbox_spec.uid),
        SubjectKind::Stray => return None,
    };
    let (kind, other_uid) = match (&event.sandbox, event.pod_uid()) {
        (None, _) => (Kind::MissingSandboxStatus, None),
        (Some(_), None) => (Kind::MissingSandboxMetadata, None),
        (Some(status), Some(reported)) if reported == uid => {
            return (status.id != own).then(|| {
                let field = Fact::Field("id".to_owned());
                let id = |id: &SandboxId| Fact::FieldValue(id.to_string());
                Mismatch::new(
                    Kind::DiffersFromSpec,
                    [id(&own)],
                    [field, id(&status.id), Fact::Event(event.kind)],
                )
            });
        }
        (Some(_), Some(reported)) => (Kind::WrongPodUid, Some(Fact::Uid(reported.to_string()))),
    };
    let actual = [Fact::Event(event.kind)].into_iter().chain(other_uid);
    Some(Mismatch::new(
        kind,
        [Fact::Uid(uid.to_string())],
        actual.collect::<Facts>(),
    ))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::checks::testing::check;

    #[test]
    fn sandbox_status() {
        let sandbox_status = "sandbox-status: {of: c}";
        check(
            sandbox_status,
            "pod run; c create; c CREATED; end",
            expect!["holds"],
        );
        check(
            sandbox_status,
            "pod run; c create; c CREATED no-sandbox; end",
            expect![[r#"
                ORD-01 at #5: c (c.0.beef): expected pod_sandbox_status with the UID `uid-of-pod`: no pod_sandbox_status in CREATED
            "#]],
        );
        check(
            sandbox_status,
            "pod run; c create; c CREATED no-metadata; end",
            expect![[r#"
                ORD-01 at #5: c (c.0.beef): expected pod_sandbox_status with the UID `uid-of-pod`: no metadata in the pod_sandbox_status of CREATED
            "#]],
        );
        check(
            sandbox_status,
            "pod run; c create; c CREATED uid=x; end",
            expect![[r#"
                ORD-01 at #5: c (c.0.beef): expected pod_sandbox_status with the UID `uid-of-pod`: the UID `x` in CREATED
            "#]],
        );
        check(
            sandbox_status,
            "pod run; c create; c CREATED; end; c DELETED uid=x",
            expect!["holds"],
        );
    }

    #[test]
    fn sandbox_status_of_a_sandbox() {
        let sandbox_status = "sandbox-status: {of: pod}";
        check(
            sandbox_status,
            "pod run; pod STARTED; end",
            expect!["holds"],
        );
        check(
            sandbox_status,
            "pod run; pod STARTED; pod DELETED no-sandbox; end",
            expect![[r#"
                ORD-01 at #4: pod (pod.0.beef): expected pod_sandbox_status with the UID `uid-of-pod`: no pod_sandbox_status in DELETED
            "#]],
        );
    }
}
