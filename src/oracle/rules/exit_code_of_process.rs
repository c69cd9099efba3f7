//! INV-20: STOPPED and `ExecSync` have the exit code of the process.

use std::time::Duration;

use crate::history::{Call, ContainerState, EventKind, Reply, Request, Seq, Subject, SubjectKind};
use crate::oracle::index::Index;
use crate::oracle::invariants::{Invariant, MUST_SHOULD};
use crate::oracle::name_of;
use crate::oracle::objects::Object;
use crate::outcome::{Fact, Kind, Mismatch, Violation};
use crate::workload::Workload;

pub(in crate::oracle) const RULE: Invariant = Invariant {
    id: "INV-20",
    name: "invariant::exit-code-of-process",
    sentence: "STOPPED of a container that exited by itself has the exit code of its process, and \
               137 for a container that only SIGKILL can end; ExecSync has that of its command, and no 0 if that was cut off.",
    source: "CRI api.proto, ContainerStatus.exit_code and ExecSyncResponse.exit_code; cri-o#9846",
    requirements: &["C8", "R17"],
    kinds: &[Kind::WrongExitCode],
    compares_clocks: true,
    of_foreign_pods: false,
    levels: MUST_SHOULD,
    check,
};

/// The exit code of a process that SIGKILL ended.
const KILLED: i32 = 137;
/// The exit code of a process that SIGTERM ended.
const TERMINATED: i32 = 143;
/// The exit code of a program in Go that SIGTERM ended as the first process of a PID namespace,
/// where the kernel ignores the signal that such a program sends to itself.
const TERMINATED_GO: i32 = 2;
/// The time from the return of a start in which the process may still be the init of the OCI
/// runtime, that of runc in Go: once in five runs of all cases on a loaded machine.
const INIT: Duration = Duration::from_secs(1);

fn check(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    let of_containers = index.history.subjects().iter();
    let of_containers = of_containers.filter_map(|subject| of_container(rule, index, subject));
    let of_commands = index.history.calls();
    let of_commands = of_commands.filter_map(|call| of_command(rule, index, call));
    of_containers.chain(of_commands).collect()
}

/// The command determines the exit code if no call stopped the container and it has no limit. If
/// only SIGKILL can end it, the code is that of SIGKILL, for every kind of end. Its program ignores
/// SIGTERM from its first steps on; before them the kernel protects only the first process of a PID
/// namespace, so that another one may have the code of SIGTERM, and none that is in Go.
fn of_container(rule: &Invariant, index: &Index<'_>, subject: &Subject) -> Option<Violation> {
    let SubjectKind::Container(spec) = &subject.kind else {
        return None;
    };
    let stopped = subject.first(EventKind::Stopped)?;
    let end = stopped.event().own_status()?;
    let exited = end.state == ContainerState::Exited;
    let object = index.object(&subject.id)?;
    let has_own_namespace = spec.pid_target.is_none() && !spec.sandbox_spec.shared_pid;
    let ended_by = endings(index, object).filter(|ending| *ending < stopped.seq());
    let code = if let Some(ending) = ended_by.min() {
        let ran = object.start.is_some() && spec.ends_by_kill_alone();
        let by_term = match end.exit_code {
            TERMINATED => !has_own_namespace,
            TERMINATED_GO => may_meet_init(index, object, ending),
            _ => false,
        };
        (ran && !by_term).then_some(KILLED)?
    } else {
        // The first process of a PID namespace takes those with it that have joined.
        let alone = spec.memory_bytes.is_none() && spec.pid_target.is_none();
        spec.declared_exit.filter(|_| alone)?
    };
    let actual = [
        Fact::ExitCode(end.exit_code.into()),
        Fact::Reason(end.reason.to_string()),
    ];
    (exited && end.exit_code != code).then(|| {
        let expected = [Fact::ExitCode(code.into()), Fact::Event(EventKind::Stopped)];
        let mismatch = Mismatch::new(Kind::WrongExitCode, expected, actual);
        rule.violation(name_of(subject), mismatch, vec![stopped.seq()])
    })
}

/// Whether the call that ends a container began so soon after its start.
fn may_meet_init(index: &Index<'_>, object: &Object<'_>, ending: Seq) -> bool {
    let mut calls = index.history.calls();
    let began = calls.find(|call| call.began().seq == ending);
    let started = object.start.and_then(Call::ended);
    let (Some(began), Some(started)) = (began, started) else {
        return true;
    };
    began.began().at.since(started.at) < index.history.scaled(INIT)
}

/// The begins of the calls that end a container, or its sandbox.
fn endings(index: &Index<'_>, object: &Object<'_>) -> impl Iterator<Item = Seq> {
    let sandbox = index.objects().sandbox_of(object);
    let endings = [object.ending, sandbox.and_then(|sandbox| sandbox.ending)];
    endings.into_iter().flatten()
}

/// A command that may have ended with its container has the code of SIGKILL.
fn of_command(rule: &Invariant, index: &Index<'_>, call: &Call) -> Option<Violation> {
    let Request::ExecSync {
        container, command, ..
    } = call.request()
    else {
        return None;
    };
    let (Ok(Reply::Exec(code)), ended) = (call.result()?, call.ended()?) else {
        return None;
    };
    let program = Workload::parse(command)?;
    // Its time-out ends it, and it may have another code than that of SIGKILL, but no success.
    let is_cut_off = matches!(program, Workload::IgnoreTerm) && *code == 0;
    let declared = program.declared_exit();
    let declared = declared.or(is_cut_off.then_some(KILLED))?;
    let object = index.object(container)?;
    let SubjectKind::Container(spec) = &object.subject.kind else {
        return None;
    };
    let has_ended = object.subject.first(EventKind::Stopped).is_some()
        || endings(index, object).any(|ending| ending < ended.seq);
    let is_killed = *code == KILLED && (has_ended || spec.memory_bytes.is_some());
    (*code != declared && !is_killed).then(|| {
        let method = Fact::Method(call.request().method().to_owned());
        let expected = [Fact::ExitCode(declared.into()), method];
        let actual = [Fact::ExitCode((*code).into())];
        let mismatch = Mismatch::new(Kind::WrongExitCode, expected, actual);
        let evidence = vec![call.began().seq, ended.seq];
        rule.violation(name_of(object.subject), mismatch, evidence)
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::RULE;
    use crate::oracle::rules::testing::check;

    /// Checks the rule after a container whose command exits with 7 has been started.
    #[track_caller]
    fn promised(script: &str, expect: Expect) {
        let started = "pod run; c create exit=7; c CREATED; c start; c STARTED";
        check(&RULE, &format!("{started}; {script}"), expect);
    }

    #[test]
    fn the_exit_code_is_that_of_the_process() {
        promised("c STOPPED exit=7", expect![]);
        promised(
            "c STOPPED exit=255",
            expect![[r#"
        INV-20 at #9: c (c.0.beef): expected exit code 7 in STOPPED: exit code 255, reason `Error`
    "#]],
        );
        promised(
            "c STOPPED exit=255; c stop; pod stop",
            expect![[r#"
        INV-20 at #9: c (c.0.beef): expected exit code 7 in STOPPED: exit code 255, reason `Error`
    "#]],
        );
        promised("c STOPPED missing", expect![]);
    }

    #[test]
    fn a_container_that_was_disturbed_may_end_otherwise() {
        promised("c stop; c STOPPED exit=137", expect![]);
        promised(
            "c remove begins; c STOPPED exit=137; c remove returns",
            expect![],
        );
        promised("pod stop; c STOPPED exit=137", expect![]);
        promised(
            "d create; d start; d stop; c STOPPED exit=137",
            expect![[r#"
        INV-20 at #15: c (c.0.beef): expected exit code 7 in STOPPED: exit code 137, reason `Error`
    "#]],
        );
        promised(
            "pod2 run; pod2 stop; c STOPPED exit=137",
            expect![[r#"
        INV-20 at #13: c (c.0.beef): expected exit code 7 in STOPPED: exit code 137, reason `Error`
    "#]],
        );
        let failed = "pod run; c create exit=7; c start fails; c STOPPED exit=128";
        check(&RULE, failed, expect![]);
    }

    #[test]
    fn a_container_may_end_with_the_one_whose_pid_namespace_it_has_joined() {
        let joined = |target: &str| {
            format!(
                "pod run; t create; t start; c create exit=7{target}; c start; c STARTED; t stop; \
                 c STOPPED exit=137"
            )
        };
        check(&RULE, &joined(" joins=t"), expect![]);
        check(
            &RULE,
            &joined(""),
            expect![[r#"
        INV-20 at #14: c (c.0.beef): expected exit code 7 in STOPPED: exit code 137, reason `Error`
    "#]],
        );
    }

    #[test]
    fn without_a_known_exit_code_any_code_is_accepted() {
        check(
            &RULE,
            "pod run; c create; c CREATED; c start; c STARTED; c STOPPED exit=255",
            expect![],
        );
        check(
            &RULE,
            "pod run; c create; c start; c STOPPED exit=255",
            expect![],
        );
    }

    /// Checks the rule after a container that ignores SIGTERM has been started.
    #[track_caller]
    fn stubborn(script: &str, expect: Expect) {
        let started = "pod run; c create mode=ignore-term; c CREATED; c start; c STARTED";
        check(&RULE, &format!("{started}; {script}"), expect);
    }

    #[test]
    fn a_container_that_only_sigkill_ends_has_its_code() {
        for ended_by in ["c stop", "c remove", "pod stop", "pod remove"] {
            stubborn(&format!("{ended_by}; c STOPPED exit=137"), expect![]);
            stubborn(
                &format!("{ended_by}; c STOPPED exit=0"),
                expect![[r#"
                INV-20 at #11: c (c.0.beef): expected exit code 137 in STOPPED: exit code 0, reason `Completed`
            "#]],
            );
        }
    }

    #[test]
    fn in_a_namespace_of_others_sigterm_may_come_before_it_is_ignored() {
        for (pod, joins) in [("shared", ""), ("", " joins=t")] {
            let ended = |code: u8| {
                format!(
                    "pod run {pod}; t create; t start; c create mode=ignore-term{joins}; c start; \
                     c stop; c STOPPED exit={code}"
                )
            };
            check(&RULE, &ended(137), expect![]);
            check(&RULE, &ended(143), expect![]);
            check(
                &RULE,
                &ended(0),
                expect![[r#"
                INV-20 at #13: c (c.0.beef): expected exit code 137 in STOPPED: exit code 0, reason `Completed`
                "#]],
            );
        }
        stubborn(
            "c stop; c STOPPED exit=143",
            expect![[r#"
            INV-20 at #11: c (c.0.beef): expected exit code 137 in STOPPED: exit code 143, reason `Error`
        "#]],
        );
    }

    #[test]
    fn sigterm_right_after_a_start_may_end_the_init_of_the_oci_runtime() {
        stubborn("c stop; c STOPPED exit=2", expect![]);
        stubborn(
            "pass 1s; c stop; c STOPPED exit=2",
            expect![[r#"
                INV-20 at #11: c (c.0.beef): expected exit code 137 in STOPPED: exit code 2, reason `Error`
            "#]],
        );
    }

    #[test]
    fn a_container_that_never_ran_has_no_kill_code() {
        let failed =
            "pod run; c create mode=ignore-term; c start fails; pod stop; c STOPPED exit=128";
        check(&RULE, failed, expect![]);
        let never = "pod run; c create mode=ignore-term; pod stop; c STOPPED exit=0";
        check(&RULE, never, expect![]);
        let obeys = "pod run; c create; c start; pod stop; c STOPPED exit=0";
        check(&RULE, obeys, expect![]);
    }

    #[test]
    fn a_command_has_its_own_exit_code() {
        let started = "pod run; c create; c start; c STARTED";
        let runs = |script: &str, expect| check(&RULE, &format!("{started}; {script}"), expect);
        runs("c exec runs=3 exit=3", expect![""]);
        runs(
            "c exec runs=3 exit=0",
            expect![[r#"
            INV-20 at #8 #9: c (c.0.beef): expected exit code 3 in ExecSync: exit code 0
        "#]],
        );
        runs("c exec exit=0", expect![""]);
        runs("c exec mode=ignore-term exit=137", expect![""]);
        runs("c exec mode=ignore-term exit=255", expect![""]);
        runs(
            "c exec mode=ignore-term exit=0",
            expect![[r#"
            INV-20 at #8 #9: c (c.0.beef): expected exit code 137 in ExecSync: exit code 0
        "#]],
        );
        runs(
            "c exec runs=3 exit=137",
            expect![[r#"
            INV-20 at #8 #9: c (c.0.beef): expected exit code 3 in ExecSync: exit code 137
        "#]],
        );
        for ended in ["c STOPPED", "c stop"] {
            runs(
                &format!("c exec runs=3 begins; {ended}; c exec returns exit=137"),
                expect![""],
            );
        }
    }
}
