//! PID namespaces: of a container alone, of a pod, and of another container.

use super::*;
use crate::history::StatusCode;
use crate::model::ExitNotice;

fn joining(target: &ContainerId, spec: ContainerSpec) -> ContainerSpec {
    ContainerSpec {
        pid_target: Some(target.clone()),
        ..spec
    }
}

#[test]
fn what_has_joined_ends_by_itself_or_with_its_target() {
    let mut stand = Stand::new(Behaviour::default());
    let pod = stand.sandbox("pod");
    let app = stand.running(&pod, "app", &Workload::Obey);
    let first = stand.made(joining(&app, spec(&pod, "first", &exit(7, SECOND))));
    let second = stand.made(joining(&app, spec(&pod, "second", &Workload::Ignore)));
    for container in [&first, &second] {
        let start = Request::StartContainer(container.clone());
        stand.call(start).unwrap();
    }
    stand.events();
    stand.pass(SECOND);
    stand.told(&["STOPPED first: READY [app RUNNING, first EXITED 7 Error, second RUNNING]"]);
    stand.call(stop(&app, 10)).unwrap();
    stand.told(&[
        "STOPPED second: READY [app RUNNING, first EXITED 7 Error, second EXITED 137 Error]",
        "STOPPED app: READY [app EXITED 0 Completed, first EXITED 7 Error, second EXITED 137 Error]",
    ]);
}

#[test]
fn nobody_joins_what_does_not_run() {
    let mut stand = Stand::new(Behaviour::default());
    let pod = stand.sandbox("pod");
    let app = stand.create(&pod, "app", &Workload::Obey);
    let late = joining(&app, spec(&pod, "late", &Workload::Obey));
    let refused = stand.call(Request::CreateContainer(Arc::new(late)));
    assert_eq!(refused.unwrap_err().code, StatusCode::FAILED_PRECONDITION);
}

/// What is told a second after the exit of a container that has left a child, and when the
/// sandbox is stopped.
#[track_caller]
fn left(shared_pid: bool, exit_notice: ExitNotice, exited: &[&str], stopped: &[&str]) {
    let mut stand = Stand::new(Behaviour {
        exit_notice,
        ..Behaviour::default()
    });
    let sandbox = SandboxSpec {
        shared_pid,
        ..SandboxSpec::default()
    };
    let Ok(Reply::Sandbox(pod)) = stand.call(Request::RunSandbox(Arc::new(sandbox))) else {
        panic!("a sandbox runs");
    };
    let leave = Workload::Leave {
        code: 3,
        after: SECOND,
    };
    stand.running(&pod, "c", &leave);
    stand.events();
    stand.pass(SECOND * 2);
    stand.told(exited);
    stand.call(Request::StopSandbox(pod)).unwrap();
    stand.told(stopped);
}

#[test]
fn an_exit_may_wait_for_a_child_in_a_shared_namespace_alone() {
    let ended = "STOPPED c: READY [c EXITED 3 Error]";
    let over = "STOPPED sandbox: NOTREADY [c EXITED 3 Error]";
    left(true, ExitNotice::AtOnce, &[ended], &[over]);
    left(true, ExitNotice::AtEndOfOutput, &[], &[ended, over]);
    left(false, ExitNotice::AtEndOfOutput, &[ended], &[over]);
}
