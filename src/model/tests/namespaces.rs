//! PID namespaces: of a container alone, of a pod, and of another container.

use super::*;
use crate::history::StatusCode;
use crate::model::ExitDetection;

fn joining(target: &ContainerId, spec: ContainerSpec) -> ContainerSpec {
    ContainerSpec {
        pid_target: Some(target.clone()),
        ..spec
    }
}

#[test]
fn a_joined_container_ends_by_itself_or_with_its_target() {
    let mut harness = Harness::new(Behaviour::default());
    let pod = harness.sandbox("pod");
    let app = harness.running(&pod, "app", &Workload::UntilTerm);
    let first = harness.create_from(joining(&app, spec(&pod, "first", &exit(7, SECOND))));
    let second = harness.create_from(joining(&app, spec(&pod, "second", &Workload::IgnoreTerm)));
    for container in [&first, &second] {
        let start = Request::StartContainer(container.clone());
        harness.call(start).unwrap();
    }
    harness.events();
    harness.advance(SECOND);
    harness.expect_events(&[
        "STOPPED first: READY [app RUNNING, first EXITED 7 Error, second RUNNING]",
    ]);
    harness.call(stop(&app, 10)).unwrap();
    harness.expect_events(&[
        "STOPPED second: READY [app RUNNING, first EXITED 7 Error, second EXITED 137 Error]",
        "STOPPED app: READY [app EXITED 0 Completed, first EXITED 7 Error, second EXITED 137 Error]",
    ]);
}

#[test]
fn a_container_cannot_join_a_stopped_target() {
    let mut harness = Harness::new(Behaviour::default());
    let pod = harness.sandbox("pod");
    let app = harness.create(&pod, "app", &Workload::UntilTerm);
    let late = joining(&app, spec(&pod, "late", &Workload::UntilTerm));
    let refused = harness.call(Request::CreateContainer(Arc::new(late)));
    assert_eq!(refused.unwrap_err().code, StatusCode::FAILED_PRECONDITION);
}

/// Checks the events a second after the exit of a container with a remaining child, and after the
/// stop of the sandbox.
#[track_caller]
fn left(shared_pid: bool, exit_detection: ExitDetection, exited: &[&str], stopped: &[&str]) {
    let mut harness = Harness::new(Behaviour {
        exit_detection,
        ..Behaviour::default()
    });
    let sandbox = SandboxSpec {
        shared_pid,
        ..SandboxSpec::default()
    };
    let Ok(Reply::Sandbox(pod)) = harness.call(Request::RunSandbox(Arc::new(sandbox))) else {
        panic!("a sandbox runs");
    };
    let leave = Workload::OrphanChild {
        code: 3,
        after: SECOND,
    };
    harness.running(&pod, "c", &leave);
    harness.events();
    harness.advance(SECOND * 2);
    harness.expect_events(exited);
    harness.call(Request::StopSandbox(pod)).unwrap();
    harness.expect_events(stopped);
}

#[test]
fn an_exit_may_wait_for_a_child_in_a_shared_namespace_alone() {
    let ended = "STOPPED c: READY [c EXITED 3 Error]";
    let over = "STOPPED sandbox: NOTREADY [c EXITED 3 Error]";
    left(true, ExitDetection::Immediate, &[ended], &[over]);
    left(true, ExitDetection::AtEndOfOutput, &[], &[ended, over]);
    left(false, ExitDetection::AtEndOfOutput, &[ended], &[over]);
}
