//! Verdicts on models that are wrong, late, or neither.

use std::path::Path;
use std::time::Duration;

use super::super::*;
use super::outcome;
use crate::case::{Tier, load, parse};
use crate::drive::{ListStreaming, Sabotage};
use crate::history::{CallFault, Request, StatusCode};
use crate::model::{self, ExitDetection, MonitorDeath, NonTransition, StopSignals};
use crate::outcome::{Verdict, Violation};

/// The outcomes of the cases on such a model, except plain passes.
fn rehearsed(behaviour: Behaviour, cases: Vec<Case>) -> Vec<(String, Verdict, String)> {
    let rehearsal = Rehearsal {
        target: Target::model(behaviour, 0),
        ..Rehearsal::default()
    };
    let report = rehearse(rehearsal, cases).expect("the model runs them");
    assert_eq!(report.faults, Vec::<String>::new());
    let outcomes = report
        .outcomes
        .into_iter()
        .filter(|outcome| outcome.verdict != Verdict::Pass);
    let rows = outcomes.map(|outcome| {
        let violations = outcome.violations.iter().map(Violation::actual);
        let why = violations.chain(outcome.reason).next();
        (
            outcome.id.to_string(),
            outcome.verdict,
            why.unwrap_or_default(),
        )
    });
    rows.collect()
}

fn cases(ids: &[&str]) -> Vec<Case> {
    let all = load::embedded().expect("the cases are valid");
    let wanted = all.into_iter().filter(|case| ids.contains(&&*case.id));
    wanted.collect()
}

/// A case whose container runs this workload, and that awaits STOPPED.
fn ends(workload: &str) -> Vec<Case> {
    let text = format!(
        "id: EXT-99\ntitle: It ends.\nwhy: A test.\nsources: [none]\nrequirements: [R6]\n\
         levels: {{cache: must}}\nsteps:\n  - sandbox: {{as: pod}}\n  \
         - create: {{as: c, in: pod, workload: {workload}}}\n  - start: {{container: c}}\n  \
         - await: {{of: c, event: stopped}}\nexpect:\n  - no-repeats: {{of: c}}\n"
    );
    vec![parse(Path::new("exit/it-ends.yaml"), &text).expect("it is a case")]
}

/// A case fails where a call succeeds that must fail, and judges one that may.
#[test]
fn a_call_that_succeeds_is_judged_by_whether_it_may() {
    let accepting = || Behaviour {
        accepts_invalid_calls: true,
        ..Behaviour::default()
    };
    let may = ["FLR-04", "FLR-10", "FLR-10a", "CKP-04"];
    assert_eq!(rehearsed(accepting(), cases(&may)), []);
    let must = cases(&["FLR-01", "FLR-02", "FLR-03", "FLR-05"]);
    let failed = rehearsed(accepting(), must);
    assert_eq!(failed.len(), 4, "{failed:#?}");
    for (_, verdict, why) in failed {
        assert_eq!((verdict, &*why), (Verdict::Fail, "it succeeded"));
    }
}

#[test]
fn a_container_that_runs_on_without_its_monitor_is_skipped_soon() {
    let behaviour = Behaviour {
        monitor_death: MonitorDeath::Unwatched,
        ..Behaviour::default()
    };
    let rehearsal = Rehearsal {
        target: Target::model(behaviour, 0),
        ..Rehearsal::default()
    };
    let report = rehearse(rehearsal, cases(&["SHM-01", "SHM-01a"])).expect("the model runs them");
    for id in ["SHM-01", "SHM-01a"] {
        let found = outcome(&report, id);
        let reason = found.reason.as_deref().unwrap_or_default();
        assert_eq!(found.verdict, Verdict::Skip, "{found:#?}");
        assert!(
            reason.starts_with("c runs on without its monitor"),
            "{reason}"
        );
        assert!(found.duration < Duration::from_secs(15), "{found:#?}");
    }
}

#[test]
fn a_handler_that_runs_no_sandbox_is_named() {
    let mut behaviour = Behaviour::default();
    behaviour.replies.push(|request, answer| {
        if matches!(request, Request::RunSandbox(spec) if spec.runtime_handler == "other") {
            answer.result = Err(CallFault {
                code: StatusCode::UNKNOWN,
                message: "no such program".to_owned(),
                deadline: Duration::ZERO,
            });
        }
    });
    let seen = rehearsed(behaviour, cases(&["FEA-07"]));
    let (_, verdict, why) = &seen[0];
    assert_eq!(*verdict, Verdict::Error, "{seen:?}");
    assert!(
        why.starts_with("with the runtime handler `other`: "),
        "{why}"
    );
}

/// CRI-O lists such a container as exited when it is removed, and STOPPED agrees.
#[test]
fn an_end_of_a_container_that_never_ran_breaks_no_must() {
    let behaviour = Behaviour {
        spurious: &[NonTransition::StopOfNeverRun],
        ..Behaviour::default()
    };
    let concerned = ["STR-08", "STR-10", "STR-11", "SBX-05", "STP-08", "CMP-08"];
    let cases = cases(&concerned);
    assert_eq!(cases.len(), concerned.len());
    let seen = rehearsed(behaviour, cases);
    let failed = seen.iter().filter(|(id, ..)| !id.starts_with("INV-"));
    assert_eq!(failed.count(), 0, "{seen:?}");
}

/// STP-04 is a SHOULD: its violation is advice.
#[test]
fn a_stop_signal_is_measured_by_the_signal_of_a_stop() {
    for (stop_signals, verdict, advice, is_sent) in [
        (StopSignals::Supported, Verdict::Pass, false, true),
        (StopSignals::Unreported, Verdict::Pass, false, true),
        (StopSignals::ReportedOnly, Verdict::Pass, true, false),
        (StopSignals::Unknown, Verdict::Skip, false, false),
    ] {
        let behaviour = Behaviour {
            stop_signals,
            ..Behaviour::default()
        };
        let rehearsal = Rehearsal {
            target: Target::model(behaviour, 0),
            ..Rehearsal::default()
        };
        let report = rehearse(rehearsal, cases(&["STP-04"])).expect("the model runs it");
        let found = outcome(&report, "STP-04");
        let seen = (found.verdict, !found.advice.is_empty());
        assert_eq!(seen, (verdict, advice), "{stop_signals:?}: {found:#?}");
        let measured = report.capabilities.stop_signal;
        assert_eq!(measured, Some(is_sent), "{stop_signals:?}");
    }
}

/// A report on ORD-01, which lists nothing by itself.
fn with_lists(list_streaming: ListStreaming, behaviour: Behaviour) -> RunReport {
    let drive = DriveOptions {
        list_streaming,
        ..DriveOptions::default()
    };
    let target = Target::model(behaviour, 0);
    let rehearsal = Rehearsal {
        target,
        drive,
        ..Rehearsal::default()
    };
    rehearse(rehearsal, cases(&["ORD-01"])).expect("the model runs it")
}

#[test]
fn a_wrong_streamed_list_is_noticed_in_any_case_if_lists_are_streamed() {
    use ListStreaming::{Both, Off, On};
    use Verdict::{Fail, Pass};

    for defect in ["streamed-list-repeats", "streamed-list-lacks-the-last"] {
        for (list_streaming, expected) in [(Off, Pass), (On, Fail), (Both, Fail)] {
            let verdict = |defect: Option<&str>| {
                let mut behaviour = Behaviour::default();
                if let Some(defect) = defect.and_then(model::fault_named) {
                    defect.fault.apply(&mut behaviour);
                }
                outcome(&with_lists(list_streaming, behaviour), "INV-31").verdict
            };
            assert_eq!(
                verdict(Some(defect)),
                expected,
                "{defect} {list_streaming:?}"
            );
            assert_eq!(verdict(None), Pass, "{list_streaming:?}");
        }
    }
}

#[test]
fn lists_that_cannot_be_streamed_are_not() {
    for (list_streaming, noted) in [(ListStreaming::Off, 0), (ListStreaming::On, 1)] {
        let behaviour = Behaviour {
            streams_lists: false,
            ..Behaviour::default()
        };
        let report = with_lists(list_streaming, behaviour);
        assert_eq!(report.count(Verdict::Pass), report.outcomes.len());
        assert_eq!(report.notes.len(), noted, "{:?}", report.notes);
    }
}

#[test]
fn a_running_container_has_no_end_to_miss() {
    let seen = rehearsed(Behaviour::default(), ends("until-term"));
    let [(id, verdict, why)] = &seen[..] else {
        panic!("{seen:?}");
    };
    assert_eq!((&**id, *verdict), ("EXT-99", Verdict::Inconclusive));
    assert!(why.contains("it has not ended"), "{why}");
}

#[test]
fn a_process_that_is_gone_has_ended_with_any_status() {
    let behaviour = Behaviour {
        exit_detection: ExitDetection::Never,
        ..Behaviour::default()
    };
    let seen = rehearsed(behaviour, ends("{exit: {code: 0, after: 300ms}}"));
    let failed = seen.iter().find(|(id, ..)| id == "EXT-99");
    let verdict = failed.map(|(_, verdict, _)| *verdict);
    assert_eq!(verdict, Some(Verdict::Fail), "{seen:?}");
}

/// Events that the suite itself misses or sees late are no fault of a runtime.
#[track_caller]
fn is_never_convicted_by_who_is_held_up(by: Duration) {
    let all = load::embedded().expect("the cases are valid");
    let core = all.into_iter().filter(|case| case.tier <= Tier::Core);
    let hold_up = Some((Duration::from_millis(1_700), by));
    let rehearsal = Rehearsal {
        drive: DriveOptions {
            sabotage: Sabotage {
                hold_up,
                ..Sabotage::default()
            },
            ..DriveOptions::default()
        },
        ..Rehearsal::default()
    };
    let report = rehearse(rehearsal, core.collect()).expect("the model runs them");
    let failed: Vec<String> = report
        .outcomes
        .iter()
        .filter(|outcome| outcome.verdict == Verdict::Fail)
        .map(crate::report::failure)
        .collect();
    assert_eq!(failed, Vec::<String>::new());
    let passed = report.count(Verdict::Pass);
    assert!(passed > report.outcomes.len() / 2, "{passed} passed");
}

#[test]
fn a_suite_held_up_for_a_second_reports_no_failure() {
    is_never_convicted_by_who_is_held_up(Duration::from_secs(1));
}

#[test]
fn a_suite_held_up_for_five_seconds_reports_no_failure() {
    is_never_convicted_by_who_is_held_up(Duration::from_secs(5));
}

#[test]
fn a_suite_held_up_for_twenty_seconds_reports_no_failure() {
    is_never_convicted_by_who_is_held_up(Duration::from_secs(20));
}
