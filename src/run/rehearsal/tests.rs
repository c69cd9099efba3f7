//! Runs with cancelled calls, broken streams, and lost runtimes.

mod relists;
mod verdicts;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::watch;

use super::*;
use crate::case;
use crate::cri::{Backend, Listener, serve};
use crate::history::{CallFault, ContainerId, Labels, NoEventCall, Reply, Request, StatusCode};
use crate::host::Reactor;
use crate::limits;
use crate::model::{self, Model};
use crate::outcome::{Outcome, Verdict};
use crate::run::Endpoints;

const LONG: Duration = Duration::from_secs(60);

/// A case with these steps and one expectation, as the only one of the run.
fn case(id: &str, steps: &str, expected: &str) -> Case {
    let text = format!(
        "id: {id}\ntitle: A test.\nwhy: It is tested.\nsources: [none]\nexclusive: true\n\
         levels: {{cache: must, hint: must}}\nsteps:\n  - sandbox: {{as: pod}}\n{steps}\
         expect:\n  - {expected}\n"
    );
    let path = format!("order/{}.yaml", id.to_lowercase());
    case::parse(Path::new(&path), &text).expect("a valid case")
}

const START: &str =
    "  - create: {as: c, in: pod, workload: until-term}\n  - start: {container: c}\n";
const STARTED: &str = "includes: {of: c, in-order: [created, started]}";

/// The model, with an action before the reply to a call.
struct Scripted<F> {
    model: Model,
    before: F,
    /// Calls whose callers have disconnected before the reply.
    given_up: Arc<AtomicU32>,
}

struct Unanswered<'a>(&'a AtomicU32, bool);

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(u32::from(!self.1), Ordering::Relaxed);
    }
}

/// The action before the reply to a call: a fault becomes the reply.
trait Before: Send + Sync + 'static {
    fn act(
        &self,
        model: &Model,
        request: &Request,
    ) -> impl Future<Output = Result<(), CallFault>> + Send;
}

impl<F: Before> Backend for Scripted<F> {
    type Events = <Model as Backend>::Events;

    async fn call(&self, request: Request) -> Result<Reply, CallFault> {
        let is_read = request.method().starts_with("List") || request == Request::Version;
        let mut unanswered = Unanswered(&self.given_up, is_read);
        let before = self.before.act(&self.model, &request).await;
        let answer = match before {
            Ok(()) => self.model.call(request).await,
            Err(fault) => Err(fault),
        };
        unanswered.1 = true;
        answer
    }

    async fn subscribe(&self, deadline: Option<Duration>) -> Result<Self::Events, CallFault> {
        self.model.subscribe(deadline).await
    }
}

fn fault(code: StatusCode) -> CallFault {
    CallFault {
        code,
        message: "as the test wants it".to_owned(),
        deadline: Duration::ZERO,
    }
}

/// Runs cases on the model behind a script; returns the report, the number of cancelled calls, and
/// whether nothing was left.
fn run_on(before: impl Before, cases: Vec<Case>) -> (RunReport, u32, bool) {
    run_on_model(Behaviour::default(), before, cases)
}

fn run_on_model(
    behaviour: Behaviour,
    before: impl Before,
    cases: Vec<Case>,
) -> (RunReport, u32, bool) {
    let reactor = Reactor::real().expect("a reactor");
    let _within = reactor.runtime().enter();
    let given_up = Arc::<AtomicU32>::default();
    let scripted = Arc::new(Scripted {
        model: Model::start(behaviour, 0),
        before,
        given_up: given_up.clone(),
    });
    let (endpoint, mut listener) = Listener::in_process("scripted");
    let served = scripted.clone();
    tokio::spawn(async move { serve(served, &mut listener).await });
    let endpoints = Endpoints {
        runtime: endpoint.clone(),
        images: endpoint,
        deadline: LONG,
    };
    let rehearsal = Rehearsal {
        target: Target::Runtime(endpoints),
        ..Rehearsal::default()
    };
    // It has a reactor of its own.
    let ran = std::thread::spawn(move || rehearse(rehearsal, cases));
    let report = ran.join().expect("no panic").expect("a report");
    let left = |listed| reactor.runtime().block_on(scripted.model.call(listed));
    let labels = Labels::new();
    let sandboxes = left(Request::sandboxes(labels.clone()));
    let containers = left(Request::containers(None, labels));
    let nothing = sandboxes == Ok(Reply::Sandboxes(Vec::new()))
        && containers == Ok(Reply::Containers(Vec::new()));
    (report, given_up.load(Ordering::Relaxed), nothing)
}

fn outcome<'a>(report: &'a RunReport, id: &str) -> &'a Outcome {
    let mut outcomes = report.outcomes.iter();
    outcomes.find(|it| *it.id == *id).expect("it was planned")
}

/// Refuses the second creation of a case while a longer start is under way.
#[derive(Default)]
struct RefusesWhileStarting {
    creations: AtomicU32,
    starting: watch::Sender<bool>,
    refused: watch::Sender<bool>,
}

impl Before for RefusesWhileStarting {
    async fn act(&self, _: &Model, request: &Request) -> Result<(), CallFault> {
        /// Longer than a caller waits.
        const LONGER: Duration = Duration::from_millis(300);
        match request {
            Request::CreateContainer(spec) if ["c", "d"].contains(&spec.name()) => {
                if self.creations.fetch_add(1, Ordering::Relaxed) == 0 {
                    return Ok(());
                }
                let mut starting = self.starting.subscribe();
                let _ = starting.wait_for(|starting| *starting).await;
                self.refused.send_replace(true);
                Err(fault(StatusCode::UNKNOWN))
            }
            Request::StartContainer(_) => {
                self.starting.send_replace(true);
                let mut refused = self.refused.subscribe();
                let _ = refused.wait_for(|refused| *refused).await;
                let _ = tokio::time::timeout(LONGER, std::future::pending::<()>()).await;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

#[track_caller]
fn lets_calls_end(steps: &str) {
    let cases = vec![case("ORD-91", steps, STARTED)];
    let (report, given_up, nothing_left) = run_on(RefusesWhileStarting::default(), cases);
    let outcome = outcome(&report, "ORD-91");
    assert_eq!(outcome.verdict, Verdict::Inconclusive, "{outcome:#?}");
    let reason = outcome.reason.as_deref().unwrap_or_default();
    assert!(reason.starts_with("CreateContainer failed"), "{reason}");
    assert_eq!(given_up, 0, "calls that the suite has cancelled");
    assert!(nothing_left);
}

#[test]
fn a_worker_that_fails_cancels_no_call_of_another() {
    let indented = START.replace("  - ", "        - ");
    lets_calls_end(&format!(
        "  - repeat:\n      times: 2\n      workers: 2\n      steps:\n{indented}"
    ));
}

#[test]
fn a_branch_that_fails_cancels_no_call_of_another() {
    let branch = format!("      - steps:\n{}", START.replace("  - ", "          - "));
    let other = branch
        .replace("as: c", "as: d")
        .replace("container: c", "container: d");
    lets_calls_end(&format!("  - parallel:\n{branch}{other}"));
}

/// Stops the daemon at starts, a given number of times, and restarts it once a client has noticed.
struct Restarts {
    left: AtomicU32,
    down: AtomicBool,
}

impl Before for Restarts {
    async fn act(&self, model: &Model, request: &Request) -> Result<(), CallFault> {
        let (set, get) = (Ordering::Relaxed, Ordering::Relaxed);
        let take = |left: u32| left.checked_sub(1);
        match request {
            Request::StartContainer(_) if self.left.fetch_update(set, get, take).is_ok() => {
                self.down.store(true, set);
                model.stop_daemon();
                Err(fault(StatusCode::UNAVAILABLE))
            }
            Request::Version if self.down.swap(false, set) => {
                model.start_daemon();
                Err(fault(StatusCode::UNAVAILABLE))
            }
            _ => Ok(()),
        }
    }
}

fn restarted(times: u32, cases: u32) -> RunReport {
    let restarts = Restarts {
        left: AtomicU32::new(times),
        down: AtomicBool::new(false),
    };
    let cases = (0..cases).map(|nth| case(&format!("ORD-{}", 91 + nth), START, STARTED));
    let (report, _, nothing_left) = run_on(restarts, cases.collect());
    assert!(nothing_left);
    report
}

#[test]
fn a_runtime_that_comes_back_is_used_again() {
    let report = restarted(1, 3);
    let lost = outcome(&report, "ORD-91");
    assert_eq!(lost.verdict, Verdict::Error, "{lost:#?}");
    for id in ["ORD-92", "ORD-93"] {
        let later = outcome(&report, id);
        assert_eq!(later.verdict, Verdict::Pass, "{later:#?}");
    }
    let broken = report
        .outcomes
        .iter()
        .filter(|it| it.verdict == Verdict::Fail);
    assert_eq!(broken.count(), 0, "{report:#?}");
}

#[test]
fn a_runtime_that_is_lost_time_and_again_is_given_up() {
    let report = restarted(7, 8);
    let reason = |id| outcome(&report, id).reason.clone().unwrap_or_default();
    assert!(
        reason("ORD-96").starts_with("StartContainer failed"),
        "{}",
        reason("ORD-96")
    );
    for id in ["ORD-97", "ORD-98"] {
        let reason_text = reason(id);
        assert!(
            reason_text.starts_with("not run: the runtime was lost during ORD-96: "),
            "{reason_text}"
        );
        assert!(reason_text.ends_with(", for the 6th time"), "{reason_text}");
    }
}

/// Answers each status call for a container with this.
struct Answers(StatusCode);

impl Before for Answers {
    async fn act(&self, _: &Model, request: &Request) -> Result<(), CallFault> {
        match request {
            Request::ContainerStatus(_) => Err(fault(self.0)),
            _ => Ok(()),
        }
    }
}

#[test]
fn an_unreadable_answer_decides_nothing() {
    let asked = "  - create: {as: c, in: pod, workload: until-term}\n  - on-event: {of: c, event: \
                 created, read: [container-status]}\n";
    let verdict = |code| {
        let expected = "includes: {of: c, in-order: [created]}";
        let (report, ..) = run_on(Answers(code), vec![case("ORD-91", asked, expected)]);
        let outcome = outcome(&report, "ORD-91");
        (outcome.verdict, outcome.reason.clone().unwrap_or_default())
    };
    let (unreadable, reason) = verdict(StatusCode::DATA_LOSS);
    assert_eq!(unreadable, Verdict::Error);
    assert!(
        reason.contains("ContainerStatus is unusable: DATA_LOSS: as the test"),
        "{reason}"
    );
    assert_eq!(verdict(StatusCode::NOT_FOUND).0, Verdict::Pass);
}

/// Rejects a pod without a UID, as CRI-O does, which names pods by it.
struct WantsUids;

impl Before for WantsUids {
    async fn act(&self, _: &Model, request: &Request) -> Result<(), CallFault> {
        match request {
            Request::RunSandbox(spec) if spec.uid.as_str().is_empty() => {
                Err(fault(StatusCode::UNKNOWN))
            }
            _ => Ok(()),
        }
    }
}

#[test]
fn a_runtime_may_refuse_a_pod_without_a_uid() {
    let text = include_str!("../../../cases/sandbox/pod-without-uid.yaml");
    let path = Path::new("sandbox/pod-without-uid.yaml");
    let without_uid = case::parse(path, text).expect("a valid case");
    let (report, ..) = run_on(WantsUids, vec![without_uid]);
    let refused = outcome(&report, "SBX-10");
    assert_eq!(refused.verdict, Verdict::Skip, "{refused:#?}");
    let reason = refused.reason.as_deref().unwrap_or_default();
    assert!(
        reason.starts_with("the runtime refuses a pod without a UID: UNKNOWN"),
        "{reason}"
    );
}

/// The behaviour of the model with one defect.
fn behaviour(defect: &str) -> Behaviour {
    let mut behaviour = Behaviour::default();
    let defect = model::fault_named(defect).expect("a defect");
    defect.fault.apply(&mut behaviour);
    behaviour
}

/// The model with one defect, in simulated time.
fn defective(name: &str, cases: Vec<Case>) -> RunReport {
    let rehearsal = Rehearsal {
        target: Target::model(behaviour(name), 0),
        ..Rehearsal::default()
    };
    rehearse(rehearsal, cases).expect("a report")
}

struct Nothing;

impl Before for Nothing {
    async fn act(&self, _: &Model, _: &Request) -> Result<(), CallFault> {
        Ok(())
    }
}

#[test]
fn a_container_that_outlives_its_sandbox_is_removed_at_the_end_of_the_run() {
    let defect = behaviour("container-outlives-its-sandbox");
    let (report, _, nothing_is_left) =
        run_on_model(defect, Nothing, vec![case("ORD-91", START, STARTED)]);
    assert_eq!(report.faults, Vec::<String>::new());
    assert!(nothing_is_left);
}

/// Fails to stop containers that were never started.
#[derive(Default)]
struct StopsOnlyWhatRan(Mutex<BTreeSet<ContainerId>>);

impl Before for StopsOnlyWhatRan {
    async fn act(&self, _: &Model, request: &Request) -> Result<(), CallFault> {
        let mut started = self.0.lock().expect("no panic");
        match request {
            Request::StartContainer(id) => drop(started.insert(id.clone())),
            Request::StopContainer { container, .. } if !started.contains(container) => {
                return Err(fault(StatusCode(13)));
            }
            _ => {}
        }
        Ok(())
    }
}

/// Fails the first call of this method.
struct FailsOnce(&'static str, AtomicBool);

impl Before for FailsOnce {
    async fn act(&self, _: &Model, request: &Request) -> Result<(), CallFault> {
        let is_first = request.method() == self.0 && !self.1.swap(true, Ordering::Relaxed);
        if is_first {
            return Err(fault(StatusCode::UNKNOWN));
        }
        Ok(())
    }
}

/// The markers prove the stream in spite of the defect.
#[test]
fn one_defect_of_a_runtime_blocks_no_case() {
    let cases = || vec![case("ORD-91", START, STARTED)];
    let passes = |(report, _, nothing_is_left): (RunReport, u32, bool)| {
        assert_eq!(report.faults, Vec::<String>::new());
        let outcome = outcome(&report, "ORD-91");
        assert_eq!(outcome.verdict, Verdict::Pass, "{outcome:#?}");
        assert!(nothing_is_left);
    };
    passes(run_on(StopsOnlyWhatRan::default(), cases()));
    for method in ["RunPodSandbox", "CreateContainer", "RemoveContainer"] {
        passes(run_on(FailsOnce(method, AtomicBool::default()), cases()));
    }
}

#[test]
fn nothing_is_waited_for_that_a_broken_stream_cannot_bring() {
    let stop = "  - stop: {container: c, grace: 1s}\n  - await: {of: c, event: stopped}\n";
    let report = defective(
        "cut",
        vec![case("ORD-91", &[START, stop].concat(), STARTED)],
    );
    let outcome = outcome(&report, "ORD-91");
    assert_eq!(outcome.verdict, Verdict::Error, "{outcome:#?}");
    assert!(outcome.duration < limits::EVENT_WAIT / 2, "{outcome:#?}");
}

/// Stops the daemon at a request for its disk space, and starts it again after two more requests.
#[derive(Default)]
struct StopsWhenAsked {
    looked: AtomicU32,
    down: AtomicBool,
}

impl Before for StopsWhenAsked {
    async fn act(&self, model: &Model, request: &Request) -> Result<(), CallFault> {
        match request {
            Request::NoEventCall(NoEventCall::ImageFsInfo, _) => {
                self.down.store(true, Ordering::Relaxed);
                model.stop_daemon();
            }
            Request::Version
                if self.down.load(Ordering::Relaxed)
                    && self.looked.fetch_add(1, Ordering::Relaxed) == 1 =>
            {
                self.down.store(false, Ordering::Relaxed);
                model.start_daemon();
                return Err(fault(StatusCode::UNAVAILABLE));
            }
            _ => {}
        }
        Ok(())
    }
}

#[test]
fn a_quiet_time_that_the_end_of_the_runtime_breaks_is_undecided() {
    let quiet = "  - stays-silent: {for: 5s, steps: [call: {method: ImageFsInfo}]}\n";
    let cases = vec![case("ORD-91", &[START, quiet].concat(), STARTED)];
    let (report, ..) = run_on(StopsWhenAsked::default(), cases);
    let gone = outcome(&report, "ORD-91");
    assert_eq!(gone.verdict, Verdict::Error, "{gone:#?}");
}

#[test]
fn a_quiet_time_in_which_a_runtime_ends_the_stream_and_lives_on_has_failed() {
    let stop = "  - await: {of: c, event: started}\n  - stays-silent: {for: 5s, steps: [stop: {container: \
                c, grace: 1s}]}\n";
    let report = defective(
        "half-close",
        vec![case("ORD-91", &[START, stop].concat(), STARTED)],
    );
    let broken = outcome(&report, "ORD-91");
    assert_eq!(broken.verdict, Verdict::Fail, "{broken:#?}");
}
