//! INV-18: an event shows its sandbox in the right state.

use crate::history::{EventArrival, EventKind, SandboxState, Subject, SubjectKind};
use crate::oracle::index::Index;
use crate::oracle::invariants::{Invariant, MUST_SHOULD};
use crate::oracle::objects::Object;
use crate::outcome::{Fact, Kind, Mismatch, Violation};

pub(in crate::oracle) const RULE: Invariant = Invariant {
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
    check,
};

fn check(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
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

    use super::RULE;
    use crate::oracle::rules::testing::check;

    /// Checks the rule after a container has been created in a pod.
    #[track_caller]
    fn then(script: &str, expect: Expect) {
        check(
            &RULE,
            &format!("pod run; pod STARTED; c create; c CREATED; {script}"),
            expect,
        );
    }

    #[test]
    fn a_sandbox_is_ready_until_it_is_stopped() {
        then(
            "c STARTED not-ready",
            expect![[r#"
        INV-18 at #7: c (c.0.beef): expected the sandbox READY in STARTED: NOTREADY
    "#]],
        );
        then(
            "c STARTED not-ready; pod stop",
            expect![[r#"
        INV-18 at #7: c (c.0.beef): expected the sandbox READY in STARTED: NOTREADY
    "#]],
        );
        then(
            "pod stop begins; c STOPPED not-ready; pod stop returns",
            expect![],
        );
        then("pod stop; c STOPPED", expect![]);
        then("pod remove begins; c STOPPED not-ready", expect![]);
    }

    #[test]
    fn a_sandbox_that_is_being_created_need_not_be_ready() {
        check(
            &RULE,
            "pod run begins; pod CREATED not-ready; pod run returns",
            expect![],
        );
        check(
            &RULE,
            "pod run begins; pod STARTED not-ready; pod run returns",
            expect![[r#"
            INV-18 at #2: pod (pod.0.beef): expected the sandbox READY in STARTED: NOTREADY
        "#]],
        );
    }

    #[test]
    fn a_sandbox_that_has_stopped_is_not_ready() {
        then(
            "pod stop; pod STOPPED ready",
            expect![[r#"
        INV-18 at #9: pod (pod.0.beef): expected the sandbox NOTREADY in STOPPED: READY
    "#]],
        );
        then(
            "pod stop; pod STOPPED; c STOPPED ready",
            expect![[r#"
        INV-18 at #10: c (c.0.beef): expected the sandbox NOTREADY in STOPPED: READY
    "#]],
        );
        then("pod stop; pod STOPPED; c STOPPED ready at=-2ms", expect![]);
        then(
            "pod stop; pod STOPPED; pod remove; c DELETED; pod DELETED",
            expect![],
        );
        then(
            "pod stop; pod STOPPED; pod remove; pod DELETED ready",
            expect![[r#"
            INV-18 at #12: pod (pod.0.beef): expected the sandbox NOTREADY in DELETED: READY
        "#]],
        );
    }

    #[test]
    fn a_sandbox_may_end_by_itself() {
        then("c STARTED not-ready; pod STOPPED; c STOPPED", expect![]);
        then("c STARTED not-ready; pod STOPPED; pod stop", expect![]);
    }
}
