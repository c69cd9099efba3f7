//! Stopping and removing: signals, grace periods, repetitions, and what is not there.

use super::*;
use crate::history::Signal;
use crate::model::StopSignals;

#[test]
fn who_ignores_the_signal_is_killed_when_the_grace_period_is_over() {
    let mut stand = Stand::new(Behaviour::default());
    let pod = stand.sandbox("pod");
    let c = stand.running(&pod, "c", &Workload::Ignore);
    stand.events();
    let ticket = stand.machine.call(stand.now, stop(&c, 2));
    stand.pass(Duration::from_nanos(1_999_999_999));
    assert_eq!(stand.machine.take_answer(ticket), None);
    stand.told(&[]);
    stand.pass(Duration::from_nanos(1));
    stand.told(&["STOPPED c: READY [c EXITED 137 Error]"]);
    assert_eq!(stand.machine.take_answer(ticket), Some(Ok(Reply::Done)));
}

#[test]
fn a_second_stop_with_less_patience_ends_the_first_too() {
    let mut stand = Stand::new(Behaviour::default());
    let pod = stand.sandbox("pod");
    let c = stand.running(&pod, "c", &Workload::Ignore);
    let patient = stand.machine.call(stand.now, stop(&c, 60));
    assert_eq!(stand.call(stop(&c, 0)), Ok(Reply::Done));
    assert_eq!(stand.machine.take_answer(patient), Some(Ok(Reply::Done)));
    stand.status_is(&c, "EXITED 137 Error");
}

#[test]
fn a_stop_whose_caller_has_gone_goes_on() {
    let mut stand = Stand::new(Behaviour::default());
    let pod = stand.sandbox("pod");
    let c = stand.running(&pod, "c", &Workload::Ignore);
    stand.events();
    let ticket = stand.machine.call(stand.now, stop(&c, 2));
    stand.machine.forget(ticket);
    stand.pass(SECOND * 2);
    stand.told(&["STOPPED c: READY [c EXITED 137 Error]"]);
    assert_eq!(stand.machine.take_answer(ticket), None);
}

#[test]
fn what_dies_of_the_signal_tells_so() {
    let mut stand = Stand::new(Behaviour::default());
    let pod = stand.sandbox("pod");
    let c = stand.running(&pod, "c", &exit(1, SECOND));
    stand.call(stop(&c, 10)).unwrap();
    stand.status_is(&c, "EXITED 143 Error");
}

#[test]
fn a_stop_sends_the_signal_that_the_container_was_given() {
    for (behaviour, told, end) in [
        (StopSignals::Sent, Signal::USER_1, "EXITED 5 Error"),
        (StopSignals::Unreported, Signal::DEFAULT, "EXITED 5 Error"),
        (StopSignals::Told, Signal::USER_1, "EXITED 143 Error"),
        (StopSignals::Unknown, Signal::DEFAULT, "EXITED 143 Error"),
    ] {
        let mut stand = Stand::new(Behaviour {
            stop_signals: behaviour,
            ..Behaviour::default()
        });
        let pod = stand.sandbox("pod");
        let heed = Workload::Heed {
            signal: 10,
            code: 5,
        };
        let c = stand.made(ContainerSpec {
            stop_signal: Signal::USER_1,
            ..spec(&pod, "c", &heed)
        });
        stand.call(Request::StartContainer(c.clone())).unwrap();
        let report = stand.call(Request::ContainerStatus(c.clone()));
        assert!(matches!(report, Ok(Reply::ContainerStatus(report)) if report.stop_signal == told));
        stand.call(stop(&c, 10)).unwrap();
        stand.status_is(&c, end);
    }
}

#[test]
fn repetitions_are_done_and_say_nothing() {
    let mut stand = Stand::new(Behaviour::default());
    let pod = stand.sandbox("pod");
    let c = stand.running(&pod, "c", &Workload::Obey);
    for request in [
        stop(&c, 10),
        Request::RemoveContainer(c.clone()),
        Request::StopSandbox(pod.clone()),
        Request::RemoveSandbox(pod.clone()),
    ] {
        assert_eq!(stand.call(request.clone()), Ok(Reply::Done));
        assert!(!stand.events().is_empty(), "{request:?}");
        assert_eq!(stand.call(request.clone()), Ok(Reply::Done));
        assert_eq!(stand.events(), [], "{request:?}");
    }
}

#[test]
fn what_is_not_there_is_not_found_or_gone_already() {
    let mut stand = Stand::new(Behaviour::default());
    let (c, pod) = (ContainerId::from("c"), SandboxId::from("pod"));
    for request in [
        stop(&c, 0),
        Request::RemoveContainer(c.clone()),
        Request::StopSandbox(pod.clone()),
        Request::RemoveSandbox(pod.clone()),
    ] {
        assert_eq!(stand.call(request), Ok(Reply::Done));
    }
    for request in [
        Request::StartContainer(c.clone()),
        Request::ContainerStatus(c),
        Request::SandboxStatus(pod.clone()),
        Request::CreateContainer(Arc::new(ContainerSpec {
            sandbox: pod,
            ..ContainerSpec::default()
        })),
    ] {
        let fault = stand.call(request).unwrap_err();
        assert_eq!(fault.code.to_string(), "NOT_FOUND");
    }
}

#[test]
fn a_running_container_is_killed_to_be_removed() {
    let mut stand = Stand::new(Behaviour::default());
    let pod = stand.sandbox("pod");
    let c = stand.running(&pod, "c", &exit(0, SECOND));
    stand.events();
    stand.call(Request::RemoveContainer(c)).unwrap();
    stand.told(&[
        "STOPPED c: READY [c EXITED 137 Error]",
        "DELETED -: READY []",
    ]);
    stand.pass(SECOND * 2);
    stand.told(&[]);
}

#[test]
fn a_sandbox_takes_its_containers_with_it() {
    let mut stand = Stand::new(Behaviour::default());
    let (pod, other) = (stand.sandbox("pod"), stand.sandbox("other"));
    stand.create(&pod, "new", &Workload::Obey);
    stand.running(&pod, "run", &Workload::Ignore);
    stand.running(&other, "x", &Workload::Obey);
    stand.events();
    stand.call(Request::RemoveSandbox(pod.clone())).unwrap();
    stand.told(&[
        "STOPPED run: READY [new CREATED, run EXITED 137 Error]",
        "STOPPED sandbox: NOTREADY [new CREATED, run EXITED 137 Error]",
        "DELETED -: NOTREADY [run EXITED 137 Error]",
        "DELETED -: NOTREADY []",
        "DELETED sandbox: NOTREADY []",
    ]);
    let late = ContainerSpec {
        sandbox: pod,
        ..ContainerSpec::default()
    };
    let fault = stand.call(Request::CreateContainer(Arc::new(late)));
    assert_eq!(fault.unwrap_err().code.to_string(), "NOT_FOUND");
}

#[test]
fn a_stop_that_was_given_up_goes_on_and_is_overtaken_by_the_next() {
    let mut stand = Stand::new(Behaviour::default());
    let pod = stand.sandbox("pod");
    let c = stand.running(&pod, "c", &Workload::Ignore);
    stand.events();
    let given_up = stand.machine.call(stand.now, stop(&c, 30));
    stand.machine.forget(given_up);
    stand.pass(SECOND);
    stand.told(&[]);
    assert_eq!(stand.call(stop(&c, 0)), Ok(Reply::Done));
    stand.told(&["STOPPED c: READY [c EXITED 137 Error]"]);
    stand.pass(SECOND * 40);
    stand.told(&[]);
}

#[test]
fn a_sandbox_whose_own_process_is_killed_is_over_and_its_containers_when_it_is_stopped() {
    let mut stand = Stand::new(Behaviour::default());
    let pod = stand.sandbox("pod");
    stand.running(&pod, "c", &Workload::Ignore);
    stand.events();
    assert!(stand.machine.kill_sandbox(stand.now, &pod));
    assert!(!stand.machine.kill_sandbox(stand.now, &pod));
    stand.told(&["STOPPED sandbox: NOTREADY [c RUNNING]"]);
    stand.call(Request::StopSandbox(pod.clone())).unwrap();
    stand.told(&["STOPPED c: NOTREADY [c EXITED 137 Error]"]);
    stand.call(Request::StopSandbox(pod)).unwrap();
    stand.told(&[]);
}

#[test]
fn a_dead_sandbox_is_removed_with_what_runs_in_it() {
    let mut stand = Stand::new(Behaviour::default());
    let pod = stand.sandbox("pod");
    stand.running(&pod, "c", &Workload::Ignore);
    assert!(stand.machine.kill_sandbox(stand.now, &pod));
    stand.events();
    stand.call(Request::RemoveSandbox(pod)).unwrap();
    stand.told(&[
        "STOPPED c: NOTREADY [c EXITED 137 Error]",
        "DELETED -: NOTREADY []",
        "DELETED sandbox: NOTREADY []",
    ]);
}

#[test]
fn what_ignores_sigterm_ends_by_a_kill_alone() {
    let ends_so = |workload: &Workload| {
        let command = workload.command();
        let spec = ContainerSpec {
            command,
            ..ContainerSpec::default()
        };
        spec.ends_by_kill_alone()
    };
    assert!(ends_so(&Workload::Ignore));
    for other in [Workload::Obey, Workload::Pause, Workload::NoProgram] {
        assert!(!ends_so(&other), "{other:?}");
    }
}
