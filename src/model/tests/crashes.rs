//! A low-level runtime that dies on demand, and what becomes of the container then.

use super::*;
use crate::history::Flaw;
use crate::model::{FAULTY, NonTransition, Transition};

/// A container with a flaw, in a sandbox that has a handler.
fn created(stand: &mut Stand, handler: &str, workload: &Workload, flaw: Flaw) -> ContainerId {
    let pod = SandboxSpec {
        binding: "pod".to_owned(),
        runtime_handler: handler.to_owned(),
        ..SandboxSpec::default()
    };
    let Ok(Reply::Sandbox(pod)) = stand.call(Request::RunSandbox(Arc::new(pod))) else {
        panic!("it is run");
    };
    let spec = ContainerSpec {
        flaw: Some(flaw),
        ..spec(&pod, "c", workload)
    };
    let created = stand.made(spec);
    stand.events();
    created
}

#[test]
fn a_creation_and_a_start_that_die_end_the_container() {
    for flaw in [Flaw::CrashAtCreate, Flaw::CrashAtStart] {
        let mut stand = Stand::new(Behaviour::default());
        let c = created(&mut stand, FAULTY, &Workload::Obey, flaw);
        assert!(stand.call(Request::StartContainer(c)).is_err());
        stand.told(&["STOPPED c: READY [c EXITED 128 StartError]"]);
    }
}

#[test]
fn whoever_has_another_handler_demands_in_vain() {
    let mut stand = Stand::new(Behaviour::default());
    let c = created(&mut stand, "other", &Workload::Obey, Flaw::CrashAtStart);
    assert_eq!(stand.call(Request::StartContainer(c)), Ok(Reply::Done));
}

#[track_caller]
fn check_stops(told_too: &'static [NonTransition], first: &[&str]) {
    let mut stand = Stand::new(Behaviour {
        told_too,
        ..Behaviour::default()
    });
    let c = created(&mut stand, FAULTY, &Workload::Obey, Flaw::CrashAtKill);
    stand.call(Request::StartContainer(c.clone())).unwrap();
    stand.events();
    assert!(stand.call(stop(&c, 2)).is_err());
    stand.status_is(&c, "RUNNING 0");
    stand.told(first);
    assert_eq!(stand.call(stop(&c, 2)), Ok(Reply::Done));
    stand.told(&["STOPPED c: READY [c EXITED 0 Completed]"]);
}

#[test]
fn a_stop_that_dies_fails_and_the_next_one_does_not() {
    check_stops(&[], &[]);
    check_stops(
        &[NonTransition::FailedKill],
        &["STOPPED c: READY [c RUNNING]"],
    );
}

#[track_caller]
fn check_exit(untold: &'static [Transition], told: &[&str]) {
    let mut stand = Stand::new(Behaviour {
        untold,
        ..Behaviour::default()
    });
    let workload = exit(3, SECOND);
    let c = created(&mut stand, FAULTY, &workload, Flaw::CrashAtDelete);
    stand.call(Request::StartContainer(c.clone())).unwrap();
    stand.events();
    stand.pass(SECOND * 2);
    stand.status_is(&c, "EXITED 3 Error");
    stand.told(told);
}

#[test]
fn an_exit_whose_deletion_dies_is_told_once_unless_a_defect_loses_it() {
    check_exit(&[], &["STOPPED c: READY [c EXITED 3 Error]"]);
    check_exit(&[Transition::EndInCrash], &[]);
}
