//! Executes a plan: announces it on the console and in the history, decides which cases run in
//! parallel, and when each is judged.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OnceCell, RwLock, Semaphore, SemaphorePermit, watch};
use tokio::task::JoinError;

use super::RunOptions;
use super::prepare::Prepared;
use super::progress::Progress;
use super::telemetry::{self, LiveVerdicts};
use crate::drive::{CaseRunner, Sabotage, Session, TeardownPolicy};
use crate::history::{
    Body, CaseRun, ExpectationFile, HostInstant, PlannedCase, PlannedExecution, Request, RunInfo,
    RunPlan, SandboxId,
};
use crate::host::{self, RuntimeCommands};
use crate::oracle::Invariant;
use crate::outcome::{NOT_RUN, Outcome, RunReport, Verdict};
use crate::plan::Planned;
use crate::verdicts::{Known, unmeasured};
use crate::{limits, report, terminal};

#[derive(Debug)]
pub(super) struct Execution {
    session: Arc<Session>,
    fail_fast: bool,
    teardown: TeardownPolicy,
    gate: Gate,
    progress: Arc<Progress>,
    to_do: watch::Sender<usize>,
    failed: AtomicBool,
    losses: tokio::sync::Mutex<Losses>,
    kept: Mutex<Vec<SandboxId>>,
    cases_ended: OnceCell<()>,
    live_verdicts: Mutex<LiveVerdicts>,
    began: HostInstant,
}

/// The times at which the runtime was lost.
#[derive(Debug, Default)]
struct Losses {
    /// The case in progress and the error, for each time.
    during: Vec<String>,
    /// The reason why no further case is run.
    given_up: Option<String>,
    /// Whether it did not come back.
    for_good: bool,
}

/// Admits cases in the order of the plan, up to a limit, and exclusive ones only alone.
#[derive(Debug)]
struct Gate {
    turn: watch::Sender<usize>,
    places: Semaphore,
    /// Whether there is one place only.
    single: bool,
    alone: RwLock<()>,
}

impl Execution {
    pub(super) fn new(
        session: Arc<Session>,
        options: &RunOptions,
        cases: usize,
        progress: Arc<Progress>,
        live_verdicts: LiveVerdicts,
    ) -> Arc<Self> {
        Arc::new(Self {
            session,
            fail_fast: options.fail_fast,
            teardown: options.teardown(),
            gate: Gate {
                turn: watch::Sender::new(0),
                places: Semaphore::new(options.threads()),
                single: options.threads() == 1,
                alone: RwLock::new(()),
            },
            progress,
            to_do: watch::Sender::new(cases),
            failed: AtomicBool::new(false),
            losses: tokio::sync::Mutex::default(),
            kept: Mutex::default(),
            cases_ended: OnceCell::new(),
            live_verdicts: Mutex::new(live_verdicts),
            began: host::now(),
        })
    }

    /// Executes the case at this index of the plan once it is admitted.
    pub(super) async fn case(self: &Arc<Self>, place: usize, planned: &Planned) -> Outcome {
        let (this, plan) = (self.clone(), planned.clone());
        // In its own task: a panic is this case's error and affects no other case.
        let task = tokio::spawn(async move { this.waited(place, &plan).await });
        if let Err(fault) = task.await {
            self.failed.store(true, Ordering::Relaxed);
            self.failed_itself(number(place), &fault);
        }
        let outcome = self.outcome(number(place));
        self.progress.end(place, outcome.verdict);
        self.to_do.send_modify(|to_do| *to_do -= 1);
        outcome
    }

    async fn waited(&self, place: usize, planned: &Planned) {
        let turn = &self.gate.turn;
        // The sender lives as long as `self`.
        let _ = turn.subscribe().wait_for(|turn| *turn == place).await;
        if planned.case.exclusive {
            let _alone = self.gate.alone.write().await;
            turn.send_modify(|turn| *turn += 1);
            self.admitted(place, planned, None).await;
        } else {
            let _shared = self.gate.alone.read().await;
            let mut place_of_its_own = self.gate.places.acquire().await.ok();
            turn.send_modify(|turn| *turn += 1);
            // With a single one, a case is judged before the next one begins.
            let permit = place_of_its_own.take_if(|_| !self.gate.single);
            self.admitted(place, planned, permit).await;
        }
    }

    /// Executes an admitted case. Releases its permit once its steps are taken: events that are
    /// still due may take ten seconds, in which the runtime is idle.
    async fn admitted(&self, place: usize, planned: &Planned, permit: Option<SemaphorePermit<'_>>) {
        let (run, case) = (number(place), &planned.case);
        if let Some((verdict, reason)) = self.reason_not_to_run(planned).await {
            self.unjudged(run, verdict == Verdict::Skip, reason);
            return;
        }
        let runner = CaseRunner::new(self.session.clone(), case.clone(), run);
        self.progress.begin(place, &case.id, &runner);
        let steps_taken = runner.steps_taken();
        let mut execution = pin!(runner.execute(self.teardown));
        let executed = tokio::select! {
            executed = &mut execution => executed,
            () = steps_taken.cancelled() => {
                drop(permit);
                execution.await
            }
        };
        lock(&self.kept).extend(executed.kept);
        let ended = lock(&self.live_verdicts).ended(run);
        let sabotage = &self.session.options().asked.sabotage;
        Sabotage::strike(sabotage.verdict_of.as_deref(), &case.id);
        match ended {
            Ok(ended) => {
                let judged = ended.judge();
                if judged.breaks_an_invariant() {
                    self.failed.store(true, Ordering::Relaxed);
                }
                telemetry::count_broken(&judged, self.session.metrics());
                lock(&self.live_verdicts).settle(judged);
            }
            Err(fault) => self.unjudged(run, false, fault.to_string()),
        }
        let outcome = self.outcome(run);
        self.give_up_if_stuck().await;
        // A case that a refused or unanswered call has ended is inconclusive.
        if matches!(outcome.verdict, Verdict::Error | Verdict::Inconclusive) {
            self.look_for_runtime(&outcome).await;
        }
        if matches!(
            outcome.verdict,
            Verdict::Fail | Verdict::Error | Verdict::UnexpectedPass
        ) {
            self.failed.store(true, Ordering::Relaxed);
        }
    }

    async fn reason_not_to_run(&self, planned: &Planned) -> Option<(Verdict, String)> {
        // The lock is held while a lost runtime is waited for.
        if let Some(lost) = &self.losses.lock().await.given_up {
            return Some((Verdict::Error, format!("{NOT_RUN}{lost}")));
        }
        if self.session.stop().is_cancelled() {
            return Some((Verdict::Skip, format!("{NOT_RUN}the run was interrupted")));
        }
        if self.fail_fast && self.failed.load(Ordering::Relaxed) {
            return Some((
                Verdict::Skip,
                format!("{NOT_RUN}--fail-fast, and a case or an invariant has failed"),
            ));
        }
        let lack = self.session.lack(&planned.case.needs);
        lack.map(|reason| (Verdict::Skip, reason))
    }

    /// Records why a case or an invariant was not judged.
    fn unjudged(&self, case: CaseRun, skipped: bool, reason: String) {
        self.session.recorder().record(Body::Unjudged {
            case,
            skipped,
            reason,
        });
    }

    /// Records that a panic of the suite prevented a verdict.
    fn failed_itself(&self, case: CaseRun, fault: &JoinError) {
        self.unjudged(case, false, format!("the suite itself failed: {fault}"));
    }

    fn outcome(&self, run: CaseRun) -> Outcome {
        let outcome = lock(&self.live_verdicts).outcome(run);
        outcome.expect("it is in the plan, and either judged or said not to be")
    }

    /// Keeps the verdicts up to date with the history until aborted.
    pub(super) async fn follow(self: Arc<Self>) {
        let mut changes = self.session.recorder().changes();
        loop {
            changes.next().await;
            lock(&self.live_verdicts).catch_up();
        }
    }

    /// After a case without a verdict, checks whether the runtime still answers, and waits for it
    /// if not.
    async fn look_for_runtime(&self, outcome: &Outcome) {
        let mut losses = self.losses.lock().await;
        let Err(fault) = self.session.call(None, Request::Version).await else {
            return;
        };
        if losses.given_up.is_some() || self.session.stop().is_cancelled() {
            return;
        }
        let lost = format!("the runtime was lost during {}: {fault}", outcome.id);
        losses.during.push(format!("{}: {fault}", outcome.id));
        if losses.during.len() > limits::RUNTIME_LOSSES {
            let times = losses.during.len();
            losses.given_up = Some(format!("{lost}, for the {times}th time"));
            return;
        }
        let patience = self.session.scaled(limits::RUNTIME_RETURN);
        let back = self.session.renew(patience).await;
        if let (Err(fault), false) = (back, self.session.stop().is_cancelled()) {
            losses.for_good = true;
            losses.given_up = Some(format!(
                "{lost}, and did not come back within {patience:?}: {fault}"
            ));
        }
    }

    /// Whether the runtime was lost and did not come back.
    pub(super) fn is_gone(&self) -> bool {
        let losses = self.losses.try_lock();
        losses.is_ok_and(|losses| losses.for_good)
    }

    /// Gives up where the runtime answers, but does nothing in calls that no case can do without.
    async fn give_up_if_stuck(&self) {
        if let Some(reason) = self.session.client().stuck() {
            self.losses.lock().await.given_up.get_or_insert(reason);
        }
    }

    /// The number of times that the runtime was lost; `None` if never.
    pub(super) fn lost(&self) -> Option<String> {
        let losses = self.losses.try_lock().ok()?;
        let times = match losses.during.len() {
            0 => return None,
            1 => "once".to_owned(),
            times => format!("{times} times"),
        };
        let during = losses.during.join("; ");
        Some(format!("the runtime was lost {times}, during {during}"))
    }

    /// Judges an invariant on all histories, after all cases have ended and a quiet period.
    pub(super) async fn invariant(self: &Arc<Self>, place: usize) -> Outcome {
        let (this, run) = (self.clone(), number(place));
        let task = tokio::spawn(async move { this.judge_invariant(run).await });
        if let Err(fault) = task.await {
            self.failed_itself(run, &fault);
        }
        self.outcome(run)
    }

    async fn judge_invariant(&self, run: CaseRun) {
        let mut to_do = self.to_do.subscribe();
        // The sender lives as long as `self`.
        let _ = to_do.wait_for(|to_do| *to_do == 0).await;
        if let Some(reason) = self.session.no_events() {
            self.unjudged(run, true, reason.to_owned());
        }
        self.cases_ended
            .get_or_init(|| self.listen_for_late_events())
            .await;
        self.outcome(run);
    }

    async fn listen_for_late_events(&self) {
        let part = host::elapsed(self.began) / limits::QUIET_PART;
        let window = part.clamp(limits::SHORTEST_QUIET_WINDOW, limits::QUIET_WINDOW);
        let window = self.session.scaled(window);
        if self.session.no_events().is_some() {
            return self.session.recorder().record(Body::CasesEnded);
        }
        self.progress.doing("waiting for late events");
        let stopped = self.session.stop().cancelled();
        // The condition is the absence of events, so the full period has to elapse.
        let _ = tokio::time::timeout(window, stopped).await;
        self.session.recorder().record(Body::CasesEnded);
    }

    pub(super) fn kept(&self) -> Vec<SandboxId> {
        lock(&self.kept).clone()
    }

    pub(super) fn known(&self) -> Known {
        lock(&self.live_verdicts).known().clone()
    }

    pub(super) fn report(&self) -> RunReport {
        lock(&self.live_verdicts).report()
    }
}

/// The number of the execution at this index of the plan.
fn number(place: usize) -> CaseRun {
    CaseRun(u32::try_from(place).expect("a plan has fewer places"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Prints the subject of the test.
pub(super) fn announce(
    info: &RunInfo,
    plan: &RunPlan,
    no_events: Option<&str>,
    restarts: Option<RuntimeCommands>,
    simulated: bool,
) {
    let runtime = &info.runtime;
    let how = if simulated {
        ", in this process, in simulated time".to_owned()
    } else {
        format!(" at {}", info.endpoint)
    };
    terminal::say(&format!(
        "testing {} {}{how}\nimage {}\nrun {}",
        report::printable(&runtime.runtime_name),
        report::printable(&runtime.runtime_version),
        plan.image,
        info.run
    ));
    if let Some(note) = unmeasured(&runtime.runtime_name, &runtime.runtime_version) {
        terminal::say(&note);
    }
    if let Some(reason) = no_events {
        terminal::say(&format!(
            "{}\nonly cases for runtimes without events are run; all others are skipped",
            report::printable(reason)
        ));
    }
    if let Some(commands) = restarts {
        let kill = commands
            .kill
            .map(|kill| format!(", kills it with `{kill}`"));
        terminal::say(&format!(
            "at its end the run stops the runtime with `{}`{} and starts it with `{}`",
            commands.stop,
            kill.unwrap_or_default(),
            commands.start
        ));
    }
    let foreign_pods = plan.foreign_pods;
    if foreign_pods > 0 {
        terminal::say(&format!(
            "this node has {foreign_pods} other pods, which are left alone. If a kubelet manages \
             them, stop it first: it removes pods that it does not know, including the suite's"
        ));
    }
}

/// The run's plan, for its history.
pub(super) fn plan(
    options: &RunOptions,
    planned: &[Planned],
    invariants: &[&Invariant],
    expectations: Option<ExpectationFile>,
    Prepared {
        session,
        foreign_pods,
    }: &Prepared,
) -> RunPlan {
    let judged = options.selection.judged();
    let mut plan = RunPlan {
        invariants: invariants.iter().map(|rule| rule.id.to_owned()).collect(),
        image: session.options().image.clone(),
        foreign_pods: *foreign_pods as u64,
        expectations,
        // Own cases are not all that a profile demands.
        partial: options.selection.is_partial() || options.cases.is_some(),
        profiles: judged.iter().map(ToString::to_string).collect(),
        tier: options.selection.tier.map(|tier| tier.to_string()),
        fan_out: session.fan_out(),
        probed: session.capabilities(),
        notes: session.lists_unstreamed().into_iter().collect(),
        ..RunPlan::default()
    };
    let mut cases = Vec::new();
    for Planned { case, repetition } in planned {
        let place = cases.iter().position(|known| Arc::ptr_eq(known, case));
        let place = place.unwrap_or_else(|| {
            cases.push(case.clone());
            plan.cases.push(PlannedCase {
                name: case.name.clone(),
                definition: case.definition.clone(),
            });
            cases.len() - 1
        });
        plan.executions.push(PlannedExecution {
            case: u32::try_from(place).expect("there are fewer cases"),
            repetition: *repetition,
        });
    }
    plan
}
