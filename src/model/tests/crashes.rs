//! A low-level runtime that crashes on demand, and the state of the container afterwards.

use super::*;
use crate::history::Flaw;
use crate::model::{FAULTY, NonTransition, Transition};

/// A container with a flaw, in a sandbox that has a handler.
fn created(harness: &mut Harness, handler: &str, workload: &Workload, flaw: Flaw) -> ContainerId {
    let pod = SandboxSpec {
        binding: "pod".to_owned(),
        runtime_handler: handler.to_owned(),
        ..SandboxSpec::default()
    };
    let Ok(Reply::Sandbox(pod)) = harness.call(Request::RunSandbox(Arc::new(pod))) else {
        panic!("it is run");
    };
    let spec = ContainerSpec {
        flaw: Some(flaw),
        ..spec(&pod, "c", workload)
    };
    let created = harness.create_from(spec);
    harness.events();
    created
}

#[test]
fn a_creation_and_a_start_that_die_end_the_container() {
    for flaw in [Flaw::CrashAtCreate, Flaw::CrashAtStart] {
        let mut harness = Harness::new(Behaviour::default());
        let c = created(&mut harness, FAULTY, &Workload::UntilTerm, flaw);
        assert!(harness.call(Request::StartContainer(c)).is_err());
        harness.expect_events(&["STOPPED c: READY [c EXITED 128 StartError]"]);
    }
}

#[test]
fn pods_with_another_handler_do_not_crash() {
    let mut harness = Harness::new(Behaviour::default());
    let c = created(
        &mut harness,
        "other",
        &Workload::UntilTerm,
        Flaw::CrashAtStart,
    );
    assert_eq!(harness.call(Request::StartContainer(c)), Ok(Reply::Done));
}

#[track_caller]
fn check_stops(spurious: &'static [NonTransition], first: &[&str]) {
    let mut harness = Harness::new(Behaviour {
        spurious,
        ..Behaviour::default()
    });
    let c = created(
        &mut harness,
        FAULTY,
        &Workload::UntilTerm,
        Flaw::CrashAtKill,
    );
    harness.call(Request::StartContainer(c.clone())).unwrap();
    harness.events();
    assert!(harness.call(stop(&c, 2)).is_err());
    harness.status_is(&c, "RUNNING 0");
    harness.expect_events(first);
    assert_eq!(harness.call(stop(&c, 2)), Ok(Reply::Done));
    harness.expect_events(&["STOPPED c: READY [c EXITED 0 Completed]"]);
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
fn check_exit(suppressed: &'static [Transition], reported: &[&str]) {
    let mut harness = Harness::new(Behaviour {
        suppressed,
        ..Behaviour::default()
    });
    let workload = exit(3, SECOND);
    let c = created(&mut harness, FAULTY, &workload, Flaw::CrashAtDelete);
    harness.call(Request::StartContainer(c.clone())).unwrap();
    harness.events();
    harness.advance(SECOND * 2);
    harness.status_is(&c, "EXITED 3 Error");
    harness.expect_events(reported);
}

#[test]
fn an_exit_whose_deletion_dies_is_reported_once_unless_a_defect_loses_it() {
    check_exit(&[], &["STOPPED c: READY [c EXITED 3 Error]"]);
    check_exit(&[Transition::EndInCrash], &[]);
}
