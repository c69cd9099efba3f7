//! Stopping and removing: signals, grace periods, repetitions, and unknown ids.

use super::*;
use crate::history::Signal;
use crate::model::StopSignals;

#[test]
fn who_ignores_the_signal_is_killed_when_the_grace_period_is_over() {
    let mut harness = Harness::new(Behaviour::default());
    let pod = harness.sandbox("pod");
    let c = harness.running(&pod, "c", &Workload::IgnoreTerm);
    harness.events();
    let ticket = harness.machine.call(harness.now, stop(&c, 2));
    harness.advance(Duration::from_nanos(1_999_999_999));
    assert_eq!(harness.machine.take_answer(ticket), None);
    harness.expect_events(&[]);
    harness.advance(Duration::from_nanos(1));
    harness.expect_events(&["STOPPED c: READY [c EXITED 137 Error]"]);
    assert_eq!(harness.machine.take_answer(ticket), Some(Ok(Reply::Done)));
}

#[test]
fn a_second_stop_with_less_patience_ends_the_first_too() {
    let mut harness = Harness::new(Behaviour::default());
    let pod = harness.sandbox("pod");
    let c = harness.running(&pod, "c", &Workload::IgnoreTerm);
    let patient = harness.machine.call(harness.now, stop(&c, 60));
    assert_eq!(harness.call(stop(&c, 0)), Ok(Reply::Done));
    assert_eq!(harness.machine.take_answer(patient), Some(Ok(Reply::Done)));
    harness.status_is(&c, "EXITED 137 Error");
}

#[test]
fn an_abandoned_stop_continues() {
    let mut harness = Harness::new(Behaviour::default());
    let pod = harness.sandbox("pod");
    let c = harness.running(&pod, "c", &Workload::IgnoreTerm);
    harness.events();
    let ticket = harness.machine.call(harness.now, stop(&c, 2));
    harness.machine.forget(ticket);
    harness.advance(SECOND * 2);
    harness.expect_events(&["STOPPED c: READY [c EXITED 137 Error]"]);
    assert_eq!(harness.machine.take_answer(ticket), None);
}

#[test]
fn death_by_the_stop_signal_is_reported() {
    let mut harness = Harness::new(Behaviour::default());
    let pod = harness.sandbox("pod");
    let c = harness.running(&pod, "c", &exit(1, SECOND));
    harness.call(stop(&c, 10)).unwrap();
    harness.status_is(&c, "EXITED 143 Error");
}

#[test]
fn a_frozen_process_does_nothing_until_it_is_continued() {
    let mut harness = Harness::new(Behaviour::default());
    let pod = harness.sandbox("pod");
    let c = harness.running(&pod, "c", &exit(1, SECOND));
    let d = harness.running(&pod, "d", &Workload::UntilTerm);
    harness.events();
    let signal = |harness: &mut Harness, id, signal| {
        harness.machine.signal_container(harness.now, id, signal)
    };
    assert!(signal(&mut harness, &c, Signal::STOP));
    assert!(signal(&mut harness, &d, Signal::STOP));
    assert!(signal(&mut harness, &d, Signal::TERMINATE));
    harness.advance(SECOND * 2);
    harness.expect_events(&[]);
    assert!(signal(&mut harness, &c, Signal::CONTINUE));
    assert!(signal(&mut harness, &d, Signal::CONTINUE));
    harness.status_is(&c, "EXITED 1 Error");
    harness.status_is(&d, "EXITED 0 Completed");
    assert!(!signal(&mut harness, &d, Signal::KILL));
}

#[test]
fn a_frozen_process_is_killed_when_the_grace_period_is_over() {
    let mut harness = Harness::new(Behaviour::default());
    let pod = harness.sandbox("pod");
    let c = harness.running(&pod, "c", &Workload::UntilTerm);
    harness
        .machine
        .signal_container(harness.now, &c, Signal::STOP);
    assert_eq!(harness.try_call(stop(&c, 2)), None);
    harness.advance(SECOND * 2);
    harness.status_is(&c, "EXITED 137 Error");
}

#[test]
fn a_stop_sends_the_signal_that_the_container_was_given() {
    for (behaviour, reported, end) in [
        (StopSignals::Supported, Signal::USER_1, "EXITED 5 Error"),
        (StopSignals::Unreported, Signal::DEFAULT, "EXITED 5 Error"),
        (
            StopSignals::ReportedOnly,
            Signal::USER_1,
            "EXITED 143 Error",
        ),
        (StopSignals::Unknown, Signal::DEFAULT, "EXITED 143 Error"),
    ] {
        let mut harness = Harness::new(Behaviour {
            stop_signals: behaviour,
            ..Behaviour::default()
        });
        let pod = harness.sandbox("pod");
        let heed = Workload::UntilSignal {
            signal: 10,
            code: 5,
        };
        let c = harness.create_from(ContainerSpec {
            stop_signal: Signal::USER_1,
            ..spec(&pod, "c", &heed)
        });
        harness.call(Request::StartContainer(c.clone())).unwrap();
        let report = harness.call(Request::ContainerStatus(c.clone()));
        let Ok(Reply::ContainerStatus(report)) = report else {
            panic!("no status: {report:?}");
        };
        assert_eq!(report.status.setup.stop_signal, reported);
        harness.call(stop(&c, 10)).unwrap();
        harness.status_is(&c, end);
    }
}

#[test]
fn repetitions_are_done_and_say_nothing() {
    let mut harness = Harness::new(Behaviour::default());
    let pod = harness.sandbox("pod");
    let c = harness.running(&pod, "c", &Workload::UntilTerm);
    for request in [
        stop(&c, 10),
        Request::RemoveContainer(c.clone()),
        Request::StopSandbox(pod.clone()),
        Request::RemoveSandbox(pod.clone()),
    ] {
        assert_eq!(harness.call(request.clone()), Ok(Reply::Done));
        assert!(!harness.events().is_empty(), "{request:?}");
        assert_eq!(harness.call(request.clone()), Ok(Reply::Done));
        assert_eq!(harness.events(), [], "{request:?}");
    }
}

#[test]
fn missing_objects_are_not_found_or_already_removed() {
    let mut harness = Harness::new(Behaviour::default());
    let (c, pod) = (ContainerId::from("c"), SandboxId::from("pod"));
    for request in [
        stop(&c, 0),
        Request::RemoveContainer(c.clone()),
        Request::StopSandbox(pod.clone()),
        Request::RemoveSandbox(pod.clone()),
    ] {
        assert_eq!(harness.call(request), Ok(Reply::Done));
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
        let fault = harness.call(request).unwrap_err();
        assert_eq!(fault.code.to_string(), "NOT_FOUND");
    }
}

#[test]
fn a_running_container_is_killed_to_be_removed() {
    let mut harness = Harness::new(Behaviour::default());
    let pod = harness.sandbox("pod");
    let c = harness.running(&pod, "c", &exit(0, SECOND));
    harness.events();
    harness.call(Request::RemoveContainer(c)).unwrap();
    harness.expect_events(&[
        "STOPPED c: READY [c EXITED 137 Error]",
        "DELETED -: READY []",
    ]);
    harness.advance(SECOND * 2);
    harness.expect_events(&[]);
}

#[test]
fn a_sandbox_takes_its_containers_with_it() {
    let mut harness = Harness::new(Behaviour::default());
    let (pod, other) = (harness.sandbox("pod"), harness.sandbox("other"));
    harness.create(&pod, "new", &Workload::UntilTerm);
    harness.running(&pod, "run", &Workload::IgnoreTerm);
    harness.running(&other, "x", &Workload::UntilTerm);
    harness.events();
    harness.call(Request::RemoveSandbox(pod.clone())).unwrap();
    harness.expect_events(&[
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
    let fault = harness.call(Request::CreateContainer(Arc::new(late)));
    assert_eq!(fault.unwrap_err().code.to_string(), "NOT_FOUND");
}

#[test]
fn an_abandoned_stop_continues_and_is_overtaken_by_the_next() {
    let mut harness = Harness::new(Behaviour::default());
    let pod = harness.sandbox("pod");
    let c = harness.running(&pod, "c", &Workload::IgnoreTerm);
    harness.events();
    let given_up = harness.machine.call(harness.now, stop(&c, 30));
    harness.machine.forget(given_up);
    harness.advance(SECOND);
    harness.expect_events(&[]);
    assert_eq!(harness.call(stop(&c, 0)), Ok(Reply::Done));
    harness.expect_events(&["STOPPED c: READY [c EXITED 137 Error]"]);
    harness.advance(SECOND * 40);
    harness.expect_events(&[]);
}

#[test]
fn a_sandbox_whose_own_process_is_killed_is_over_and_its_containers_when_it_is_stopped() {
    let mut harness = Harness::new(Behaviour::default());
    let pod = harness.sandbox("pod");
    harness.running(&pod, "c", &Workload::IgnoreTerm);
    harness.events();
    assert!(harness.machine.kill_sandbox(harness.now, &pod));
    assert!(!harness.machine.kill_sandbox(harness.now, &pod));
    harness.expect_events(&["STOPPED sandbox: NOTREADY [c RUNNING]"]);
    harness.call(Request::StopSandbox(pod.clone())).unwrap();
    harness.expect_events(&["STOPPED c: NOTREADY [c EXITED 137 Error]"]);
    harness.call(Request::StopSandbox(pod)).unwrap();
    harness.expect_events(&[]);
}

#[test]
fn a_stopped_sandbox_is_removed_with_its_containers() {
    let mut harness = Harness::new(Behaviour::default());
    let pod = harness.sandbox("pod");
    harness.running(&pod, "c", &Workload::IgnoreTerm);
    assert!(harness.machine.kill_sandbox(harness.now, &pod));
    harness.events();
    harness.call(Request::RemoveSandbox(pod)).unwrap();
    harness.expect_events(&[
        "STOPPED c: NOTREADY [c EXITED 137 Error]",
        "DELETED -: NOTREADY []",
        "DELETED sandbox: NOTREADY []",
    ]);
}

#[test]
fn a_process_that_ignores_sigterm_ends_by_a_kill_alone() {
    let ends_so = |workload: &Workload| {
        let command = workload.command();
        let spec = ContainerSpec {
            command,
            ..ContainerSpec::default()
        };
        spec.ends_by_kill_alone()
    };
    assert!(ends_so(&Workload::IgnoreTerm));
    for other in [
        Workload::UntilTerm,
        Workload::Pause,
        Workload::NotExecutable,
    ] {
        assert!(!ends_so(&other), "{other:?}");
    }
}
