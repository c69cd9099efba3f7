//! `sandbox-status`: every event has the status of its sandbox.

use super::name_refs::{NameRef, check_on};
use super::scope::{Scope, Wanted};
use super::subject_events::SubjectEvents;
use super::word::{Finding, Word};
use crate::history::{SandboxId, Sighting, Subject, SubjectKind};

check_on! {
    /// The check `sandbox-status`.
    SandboxStatusCheck(NameRef)
}

impl Word for SandboxStatusCheck {
    fn of(&self) -> &str {
        &self.0.of
    }

    fn validate(&self, scope: &mut dyn Scope<'_>) {
        scope.resolve("of", &self.0.of, Wanted::Either);
    }

    fn assess(&self, events: &SubjectEvents<'_>) -> Finding {
        events.each(wrong_sandbox)
    }
}

fn wrong_sandbox(subject: &Subject, sighting: &Sighting) -> Option<(String, String)> {
    let event = sighting.event();
    let (own, uid) = match &subject.kind {
        SubjectKind::Sandbox(spec) => (SandboxId::from(subject.id.as_str()), &spec.uid),
        SubjectKind::Container(spec) => (spec.sandbox.clone(), &spec.sandbox_spec.uid),
        SubjectKind::Stray => return None,
    };
    let actual = match (&event.sandbox, event.pod_uid()) {
        (None, _) => "none".to_owned(),
        (Some(_), None) => "one without metadata".to_owned(),
        (Some(status), Some(told)) if told == uid => {
            return (status.id != own).then(|| {
                let expected = format!("the status of the sandbox {own} in {}", event.kind);
                (expected, format!("that of {}", status.id))
            });
        }
        (Some(_), Some(told)) => format!("the UID `{told}`"),
    };
    Some((
        format!("a sandbox status with the UID `{uid}` in {}", event.kind),
        actual,
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
            ORD-01 at #5: c (c.0.beef): expected a sandbox status with the UID `uid-of-pod` in CREATED: none
        "#]],
        );
        check(
            sandbox_status,
            "pod run; c create; c CREATED no-metadata; end",
            expect![[r#"
            ORD-01 at #5: c (c.0.beef): expected a sandbox status with the UID `uid-of-pod` in CREATED: one without metadata
        "#]],
        );
        check(
            sandbox_status,
            "pod run; c create; c CREATED uid=x; end",
            expect![[r#"
            ORD-01 at #5: c (c.0.beef): expected a sandbox status with the UID `uid-of-pod` in CREATED: the UID `x`
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
            ORD-01 at #4: pod (pod.0.beef): expected a sandbox status with the UID `uid-of-pod` in DELETED: none
        "#]],
        );
    }
}
