//! INV-30: what a case has left can be stopped and removed.

use crate::history::{Call, CallFault, ContainerId, Request, StatusCode};
use crate::oracle::index::Index;
use crate::oracle::invariants::{Invariant, MUST_MUST};
use crate::oracle::name_of;
use crate::outcome::{Fact, Kind, Mismatch, Violation};

pub(in crate::oracle) const RULE: Invariant = Invariant {
    id: "INV-30",
    name: "invariant::teardown-succeeds",
    sentence: "What a case has left is stopped and removed without an error.",
    source: "CRI api.proto, StopContainer, StopPodSandbox and RemovePodSandbox; kubelet \
             pod_workers.go: a pod stays Terminating until they succeed",
    requirements: &["C1", "C2", "C3"],
    kinds: &[Kind::TeardownFailed],
    compares_clocks: false,
    of_foreign_pods: false,
    levels: MUST_MUST,
    check,
};

/// Finds each call of the teardown that the runtime refused or did not answer in time.
fn check(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    let history = index.history;
    let calls = history
        .calls()
        .filter(|call| !call.is_of_run() && !history.within_steps(call.began().seq));
    let failed = calls.filter_map(|call| {
        let (id, fault) = (ended_by(call)?, fault(call)?);
        let mut subjects = history.subjects().iter();
        let subject = subjects.find(|subject| subject.id == id);
        let name = subject.map_or_else(|| id.to_string(), name_of);
        let method = Fact::Method(call.request().method().to_owned());
        let actual = [
            Fact::Text(fault.code.to_string()),
            Fact::Because(fault.message.clone()),
        ];
        let mismatch = Mismatch::new(Kind::TeardownFailed, [method], actual);
        let evidence = [Some(call.began().seq), call.ended().map(|entry| entry.seq)];
        Some(rule.violation(name, mismatch, evidence.into_iter().flatten().collect()))
    });
    failed.collect()
}

/// The object that a call stops or removes.
fn ended_by(call: &Call) -> Option<ContainerId> {
    match call.request() {
        Request::StopContainer { container, .. } => Some(container.clone()),
        Request::StopSandbox(sandbox) | Request::RemoveSandbox(sandbox) => Some(sandbox.into()),
        _ => None,
    }
}

/// The failure of a call, unless the runtime was down, its answer could not be read, or the object
/// is gone, which a kubelet takes for success.
fn fault(call: &Call) -> Option<&CallFault> {
    let fault = call.result()?.as_ref().err()?;
    match fault.code {
        StatusCode::UNAVAILABLE | StatusCode::DATA_LOSS | StatusCode::NOT_FOUND => None,
        _ => Some(fault),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::RULE;
    use crate::oracle::rules::testing::check;

    #[track_caller]
    fn after(script: &str, expect: Expect) {
        check(
            &RULE,
            &format!("pod run; c create; c start; {script}"),
            expect,
        );
    }

    #[test]
    fn a_call_of_the_teardown_succeeds() {
        after("end; c stop; pod stop; pod remove", expect![""]);
        after(
            "end; c stop; pod stop hangs; pod remove",
            expect![[r#"
                INV-30 at #10 #11: pod (pod.0.beef): expected StopPodSandbox to succeed: DEADLINE_EXCEEDED: gone
            "#]],
        );
        after(
            "end; c stop hangs; pod stop; pod remove hangs",
            expect![[r#"
                INV-30 at #8 #9: c (c.0.beef): expected StopContainer to succeed: DEADLINE_EXCEEDED: gone
                INV-30 at #12 #13: pod (pod.0.beef): expected RemovePodSandbox to succeed: DEADLINE_EXCEEDED: gone
            "#]],
        );
    }

    #[test]
    fn a_call_of_the_steps_is_judged_by_the_case() {
        after("pod stop hangs; end", expect![""]);
        after("pod stop hangs; end error", expect![""]);
    }

    #[test]
    fn a_runtime_may_be_down_and_an_object_gone() {
        after("end; c stop; pod stop fails; pod remove", expect![""]);
        after(
            "end; c stop refused; pod stop refused; pod remove refused",
            expect![""],
        );
    }
}
