//! A daemon that stops and starts again while its containers run on.

use super::*;
use crate::model::{ExitNotice, Restart};

/// A stand with a container that exits with 3 after a second, and one that runs on.
fn stand(restart: Restart) -> (Stand, ContainerId, ContainerId) {
    let behaviour = Behaviour {
        restart,
        ..Behaviour::default()
    };
    let mut stand = Stand::new(behaviour);
    let pod = stand.sandbox("pod");
    let (short, long) = (exit(3, SECOND), Workload::Ignore);
    let (short, long) = (
        stand.running(&pod, "short", &short),
        stand.running(&pod, "long", &long),
    );
    (stand, short, long)
}

fn listen_again(stand: &mut Stand) {
    stand.machine.start_daemon(stand.now);
    stand.listener = stand.machine.subscribe(stand.now, None).unwrap();
}

#[test]
fn calls_and_streams_break_and_containers_do_not() {
    let (mut stand, _, long) = stand(Restart::Finds);
    stand.events();
    let waiting = stand.machine.call(stand.now, stop(&long, 60));
    stand.machine.stop_daemon(stand.now);
    let unavailable = |result: Option<Result<Reply, CallFault>>| {
        result.unwrap().unwrap_err().code.to_string() == "UNAVAILABLE"
    };
    assert!(unavailable(stand.machine.take_answer(waiting)));
    match stand.end_of(stand.listener) {
        Some(StreamEnd::Failed(fault)) => assert_eq!(fault.code.to_string(), "UNAVAILABLE"),
        other => panic!("{other:?}"),
    }
    assert!(unavailable(stand.try_call(Request::Version)));
    assert!(stand.machine.subscribe(stand.now, None).is_err());
    listen_again(&mut stand);
    // The stop is forgotten, as the daemon that was to do it is gone.
    stand.pass(SECOND * 60);
    stand.status_is(&long, "RUNNING 0");
}

#[test]
fn what_has_exited_meanwhile_is_found_with_its_code_and_time() {
    let (mut stand, short, _) = stand(Restart::Finds);
    let exits_at = stand.machine.next_due().unwrap();
    stand.machine.stop_daemon(stand.now);
    stand.pass(SECOND * 5);
    listen_again(&mut stand);
    stand.status_is(&short, "EXITED 3 Error");
    match stand.call(Request::ContainerStatus(short)) {
        Ok(Reply::ContainerStatus(report)) => {
            assert_eq!(report.status.finished_at.0, exits_at.realtime_ns);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn it_may_be_guessed_or_forgotten() {
    let (mut guessing, short, _) = stand(Restart::Guesses);
    guessing.machine.stop_daemon(guessing.now);
    guessing.pass(SECOND);
    listen_again(&mut guessing);
    guessing.status_is(&short, "EXITED 255 Unknown");
    guessing.told(&[]);
    let (mut forgetful, short, _) = stand(Restart::Forgets);
    forgetful.machine.stop_daemon(forgetful.now);
    forgetful.pass(SECOND);
    listen_again(&mut forgetful);
    forgetful.status_is(&short, "RUNNING 0");
}

#[test]
fn an_exit_may_be_noticed_late_or_when_asked_or_never() {
    let notices = |exit_notice| {
        let behaviour = Behaviour {
            exit_notice,
            ..Behaviour::default()
        };
        let mut stand = Stand::new(behaviour);
        let pod = stand.sandbox("pod");
        stand.running(&pod, "c", &exit(0, SECOND));
        stand.events();
        stand.pass(SECOND);
        let at_once = stand.events().len();
        stand.pass(SECOND);
        let late = stand.events().len();
        stand.call(Request::ListImages).unwrap();
        (at_once, late, stand.events().len())
    };
    assert_eq!(notices(ExitNotice::AtOnce), (1, 0, 0));
    assert_eq!(notices(ExitNotice::Late(SECOND)), (0, 1, 0));
    assert_eq!(notices(ExitNotice::WhenAsked), (0, 0, 1));
    assert_eq!(notices(ExitNotice::Never), (0, 0, 0));
}
