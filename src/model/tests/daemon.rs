//! A daemon that stops and starts again while its containers keep running.

use super::*;
use crate::host::RuntimeEnd;
use crate::model::{ExitDetection, Restart};

/// A harness with a container that exits with 3 after a second, and one that keeps running.
fn harness(restart: Restart) -> (Harness, ContainerId, ContainerId) {
    let behaviour = Behaviour {
        restart,
        ..Behaviour::default()
    };
    let mut harness = Harness::new(behaviour);
    let pod = harness.sandbox("pod");
    let (short, long) = (exit(3, SECOND), Workload::IgnoreTerm);
    let (short, long) = (
        harness.running(&pod, "short", &short),
        harness.running(&pod, "long", &long),
    );
    (harness, short, long)
}

fn resubscribe(harness: &mut Harness) {
    harness.machine.start_daemon(harness.now);
    harness.subscriber = harness.machine.subscribe(harness.now, None).unwrap();
}

#[test]
fn calls_and_streams_break_and_containers_do_not() {
    let (mut harness, _, long) = harness(Restart::Recovers);
    harness.events();
    let waiting = harness.machine.call(harness.now, stop(&long, 60));
    harness.machine.end_daemon(harness.now, RuntimeEnd::Stop);
    let unavailable = |result: Option<Result<Reply, CallFault>>| {
        result.unwrap().unwrap_err().code.to_string() == "UNAVAILABLE"
    };
    assert!(unavailable(harness.machine.take_answer(waiting)));
    match harness.end_of(harness.subscriber) {
        Some(StreamEnd::Failed(fault)) => assert_eq!(fault.code.to_string(), "UNAVAILABLE"),
        other => panic!("{other:?}"),
    }
    assert!(unavailable(harness.try_call(Request::Version)));
    assert!(harness.machine.subscribe(harness.now, None).is_err());
    resubscribe(&mut harness);
    // The stop is forgotten, as the daemon that was to do it is gone.
    harness.advance(SECOND * 60);
    harness.status_is(&long, "RUNNING 0");
}

#[test]
fn exits_during_the_restart_are_found_with_code_and_time() {
    let (mut harness, short, _) = harness(Restart::Recovers);
    let exits_at = harness.machine.next_due().unwrap();
    harness.machine.end_daemon(harness.now, RuntimeEnd::Stop);
    harness.advance(SECOND * 5);
    resubscribe(&mut harness);
    harness.status_is(&short, "EXITED 3 Error");
    match harness.call(Request::ContainerStatus(short)) {
        Ok(Reply::ContainerStatus(report)) => {
            assert_eq!(report.status.finished_at.0, exits_at.realtime_ns);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn it_may_be_guessed_or_forgotten() {
    let (mut guessing, short, _) = harness(Restart::Reports(255, "Unknown"));
    guessing.machine.end_daemon(guessing.now, RuntimeEnd::Stop);
    guessing.advance(SECOND);
    resubscribe(&mut guessing);
    guessing.status_is(&short, "EXITED 255 Unknown");
    guessing.expect_events(&[]);
    let (mut forgetful, short, _) = harness(Restart::Forgets);
    forgetful
        .machine
        .end_daemon(forgetful.now, RuntimeEnd::Stop);
    forgetful.advance(SECOND);
    resubscribe(&mut forgetful);
    forgetful.status_is(&short, "RUNNING 0");
}

#[test]
fn an_exit_may_be_noticed_late_or_when_asked_or_never() {
    let notices = |exit_detection| {
        let behaviour = Behaviour {
            exit_detection,
            ..Behaviour::default()
        };
        let mut harness = Harness::new(behaviour);
        let pod = harness.sandbox("pod");
        harness.running(&pod, "c", &exit(0, SECOND));
        harness.events();
        harness.advance(SECOND);
        let at_once = harness.events().len();
        harness.advance(SECOND);
        let late = harness.events().len();
        harness.call(Request::ListImages).unwrap();
        (at_once, late, harness.events().len())
    };
    assert_eq!(notices(ExitDetection::Immediate), (1, 0, 0));
    assert_eq!(notices(ExitDetection::Delayed(SECOND)), (0, 1, 0));
    assert_eq!(notices(ExitDetection::OnQuery), (0, 0, 1));
    assert_eq!(notices(ExitDetection::Never), (0, 0, 0));
}
