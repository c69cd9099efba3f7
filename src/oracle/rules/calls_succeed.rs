//! INV-30: each call is answered, those of steps succeed, and so does the teardown.

use std::time::Duration;

use crate::history::{Call, CallFault, CaseHistory, ContainerId, Request, StatusCode, StepsEnd};
use crate::oracle::index::Index;
use crate::oracle::invariants::{Invariant, MUST_MUST};
use crate::oracle::name_of;
use crate::outcome::{Fact, Kind, Mismatch, Violation};

pub(in crate::oracle) const RULE: Invariant = Invariant {
    id: "INV-30",
    name: "invariant::calls-succeed",
    sentence: "Each call is answered, a stop and a command soon after their time, one that must \
               succeed does, and what a case has left is stopped and removed without an error.",
    source: "CRI api.proto, StopContainer, StopPodSandbox and RemovePodSandbox; kubelet \
             pod_workers.go: a pod stays Terminating until they succeed",
    requirements: &["R28", "C1", "C2", "C3"],
    kinds: &[Kind::CallRefused, Kind::Unanswered],
    compares_clocks: false,
    of_foreign_pods: false,
    levels: MUST_MUST,
    check,
};

/// The shortest wait that proves that a runtime does not answer: a case can give a call up after
/// a moment.
const PATIENCE: Duration = Duration::from_secs(10);

/// Finds each call without an answer, the refused one that ended the steps, and each of the
/// teardown that the runtime refused.
fn check(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    let history = index.history;
    let ended_steps = refused_step(history).map(|call| call.began().seq);
    let own = history.calls().filter(|call| !call.is_of_run());
    let failed = own.filter_map(|call| {
        let began = call.began().seq;
        let is_of_teardown = ends(call).is_some() && !history.within_steps(began);
        let method = Fact::Method(call.request().method().to_owned());
        if let Some((bound, took)) = late(history, call) {
            let expected = [method, Fact::Within(bound)];
            let mismatch = Mismatch::new(Kind::Unanswered, expected, [Fact::Pause(took)]);
            return Some(found(rule, history, call, mismatch));
        }
        let fault = fault(call)?;
        let mismatch = if is_unanswered(history, call, fault) {
            let expected = [method, Fact::Within(fault.deadline)];
            Mismatch::new(Kind::Unanswered, expected, [])
        } else if ended_steps == Some(began)
            || is_of_teardown && !is_given_up(call, fault)
            || is_over_early(call, fault)
        {
            let seen = format!("{}: {}", fault.code, fault.message);
            Mismatch::new(Kind::CallRefused, [], [method, Fact::Text(seen)])
        } else {
            return None;
        };
        Some(found(rule, history, call, mismatch))
    });
    failed.collect()
}

fn found(rule: &Invariant, history: &CaseHistory, call: &Call, mismatch: Mismatch) -> Violation {
    let mut subjects = history.subjects().iter();
    let subject = ends(call).and_then(|id| subjects.find(|subject| subject.id == id));
    let name = subject.map_or_else(|| call.request().method().to_owned(), name_of);
    let evidence = [Some(call.began()), call.ended()].into_iter().flatten();
    rule.violation(name, mismatch, evidence.map(|entry| entry.seq).collect())
}

/// The grace period of a stop, or how long a command may run: the call takes so long and no longer.
fn own_time(request: &Request) -> Option<Duration> {
    match request {
        Request::StopContainer { grace, .. } => Some(*grace),
        Request::ExecSync { timeout, .. } => Some(*timeout).filter(|time| !time.is_zero()),
        _ => None,
    }
}

/// The bound and the time of an answer that came long after the call's own time.
fn late(history: &CaseHistory, call: &Call) -> Option<(Duration, Duration)> {
    let bound = own_time(call.request())? + PATIENCE;
    let fault = call.result()?.as_ref().err();
    let took = history.not_held_up(call.began().at, call.ended()?.at);
    let is_given_up = fault.is_some_and(|fault| is_given_up(call, fault));
    (took > bound && !is_given_up).then_some((bound, took))
}

/// Whether the runtime ended a command as too slow before its time was over.
fn is_over_early(call: &Call, fault: &CallFault) -> bool {
    let Request::ExecSync { timeout, .. } = call.request() else {
        return false;
    };
    let ended = call.ended().map(|entry| entry.at);
    fault.code == StatusCode::DEADLINE_EXCEEDED
        && !is_given_up(call, fault)
        && (timeout.is_zero() || ended.is_some_and(|at| at.since(call.began().at) < *timeout))
}

/// The call that ended the steps of a case, since the runtime refused or did not answer it.
pub(crate) fn refused_step(history: &CaseHistory) -> Option<&Call> {
    let Some(StepsEnd::Error(reason)) = history.steps_end() else {
        return None;
    };
    history.calls().rev().find(|call| {
        fault(call).is_some_and(|fault| {
            let is_answered = !is_given_up(call, fault) || is_unanswered(history, call, fault);
            is_answered
                && fault.code != StatusCode::UNIMPLEMENTED
                && *reason == fault.of(call.request().method())
        })
    })
}

/// Whether the runtime let the deadline of the call pass. If the host held the suite up meanwhile,
/// the answer may have come in time.
fn is_unanswered(history: &CaseHistory, call: &Call, fault: &CallFault) -> bool {
    let ended = call.ended().map(|entry| entry.at);
    fault.deadline >= PATIENCE
        && is_given_up(call, fault)
        && ended.is_some_and(|ended| history.held_up(call.began().at, ended).is_zero())
}

/// Whether the deadline of the call has passed, which a runtime can also refuse a call with.
fn is_given_up(call: &Call, fault: &CallFault) -> bool {
    let ended = call.ended().map(|entry| entry.at);
    fault.code == StatusCode::DEADLINE_EXCEEDED
        && ended.is_some_and(|ended| ended.since(call.began().at) >= fault.deadline)
}

/// The object that a call stops or removes.
fn ends(call: &Call) -> Option<ContainerId> {
    match call.request() {
        Request::StopContainer { container, .. } => Some(container.clone()),
        Request::StopSandbox(sandbox) | Request::RemoveSandbox(sandbox) => Some(sandbox.into()),
        _ => None,
    }
}

/// The failure of a call, unless the runtime was down, its answer could not be read, or the object
/// to stop or remove is gone, which a kubelet takes for success.
fn fault(call: &Call) -> Option<&CallFault> {
    let fault = call.result()?.as_ref().err()?;
    match fault.code {
        StatusCode::UNAVAILABLE | StatusCode::DATA_LOSS | StatusCode::CANCELLED => None,
        StatusCode::NOT_FOUND if ends(call).is_some() => None,
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
            "end; c stop; pod stop denied; pod remove",
            expect![[r#"
                INV-30 at #10 #11: pod (pod.0.beef): expected StopPodSandbox to succeed: DEADLINE_EXCEEDED: gone
            "#]],
        );
        after(
            "end; c stop denied; pod stop; pod remove denied",
            expect![[r#"
                INV-30 at #8 #9: c (c.0.beef): expected StopContainer to succeed: DEADLINE_EXCEEDED: gone
                INV-30 at #12 #13: pod (pod.0.beef): expected RemovePodSandbox to succeed: DEADLINE_EXCEEDED: gone
            "#]],
        );
    }

    #[test]
    fn a_call_of_the_steps_is_judged_if_they_ended_with_it() {
        after("pod stop denied; end", expect![""]);
        after("pod stop denied; end error", expect![""]);
        after(
            "pod stop denied; end refused",
            expect![[r#"
            INV-30 at #7 #8: pod (pod.0.beef): expected StopPodSandbox to succeed: DEADLINE_EXCEEDED: gone
        "#]],
        );
        after("pod stop refused; end refused", expect![""]);
    }

    #[test]
    fn a_call_has_an_answer_or_is_given_up_soon() {
        after(
            "pod stop begins; pass 30s; pod stop returns denied; end",
            expect![[r#"
                INV-30 at #7 #8: pod (pod.0.beef): expected an answer of StopPodSandbox within 30s: none
            "#]],
        );
        after(
            "pod stop begins; pass 29s; pod stop returns denied; end",
            expect![""],
        );
    }

    #[test]
    fn a_stop_and_a_command_are_answered_soon_after_their_time() {
        let takes = |call: &str, time: &str, expect: Expect| {
            after(
                &format!("c {call} begins; pass {time}; c {call} returns; end"),
                expect,
            );
        };
        takes("stop", "11s", expect![""]);
        takes(
            "stop",
            "13s",
            expect![[r#"
            INV-30 at #7 #8: c (c.0.beef): expected an answer of StopContainer within 12s: none, it came after 13.001s
        "#]],
        );
        takes("exec", "19s", expect![""]);
        takes(
            "exec",
            "21s",
            expect![[r#"
            INV-30 at #7 #8: ExecSync: expected an answer of ExecSync within 20s: none, it came after 21.001s
        "#]],
        );
        after(
            "c exec begins; pass 11s; c exec returns denied; end",
            expect![""],
        );
        after(
            "c exec begins; pass 9s; c exec returns denied; end",
            expect![[r#"
            INV-30 at #7 #8: ExecSync: expected ExecSync to succeed: DEADLINE_EXCEEDED: gone
        "#]],
        );
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
