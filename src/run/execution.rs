//! Executing a plan: which cases run at once, what becomes of each, and what the invariants say of
//! all of them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::{OnceCell, RwLock, Semaphore, watch};
use tokio::task::JoinError;

use super::findings::{Findings, slice};
use super::known::Known;
use super::status::Status;
use crate::case::Need;
use crate::drive::{CaseRunner, Executed, Sabotage, Session, TeardownPolicy};
use crate::history::{HostInstant, Request, SandboxId, StatusCode};
use crate::oracle::{self, INVARIANTS, Invariant, Undecided, WholeRun};
use crate::outcome::{Level, Outcome, Verdict};
use crate::plan::Planned;
use crate::recorder::Reader;
use crate::{host, limits};

/// A plan being executed.
#[derive(Debug)]
pub(super) struct Execution {
    session: Arc<Session>,
    known: Known,
    fail_fast: bool,
    teardown: TeardownPolicy,
    gate: Gate,
    status: Arc<Status>,
    to_do: watch::Sender<usize>,
    failed: AtomicBool,
    lost: OnceLock<String>,
    outcomes: Mutex<BTreeMap<usize, Outcome>>,
    found: Mutex<Findings>,
    kept: Mutex<Vec<SandboxId>>,
    whole_run: OnceCell<()>,
    reading: Mutex<(Reader, WholeRun)>,
    began: HostInstant,
}

/// How a plan shall be executed.
#[derive(Debug)]
pub(super) struct ExecutionOptions {
    pub(super) known: Known,
    pub(super) fail_fast: bool,
    pub(super) teardown: TeardownPolicy,
    pub(super) threads: usize,
    pub(super) cases: usize,
}

/// Lets so many cases run at once, and some only alone, in the order of the plan.
#[derive(Debug)]
struct Gate {
    turn: watch::Sender<usize>,
    places: Semaphore,
    alone: RwLock<()>,
}

impl Execution {
    pub(super) fn new(
        session: Arc<Session>,
        options: ExecutionOptions,
        status: Arc<Status>,
    ) -> Arc<Self> {
        let reader = session.recorder().reader();
        Arc::new(Self {
            session,
            known: options.known,
            fail_fast: options.fail_fast,
            teardown: options.teardown,
            gate: Gate {
                turn: watch::Sender::new(0),
                places: Semaphore::new(options.threads),
                alone: RwLock::new(()),
            },
            status,
            to_do: watch::Sender::new(options.cases),
            failed: AtomicBool::new(false),
            lost: OnceLock::new(),
            outcomes: Mutex::default(),
            found: Mutex::default(),
            kept: Mutex::default(),
            whole_run: OnceCell::new(),
            reading: Mutex::new((reader, WholeRun::default())),
            began: host::now(),
        })
    }

    /// What runs now.
    pub(super) fn status(&self) -> Arc<Status> {
        self.status.clone()
    }

    /// Executes the case at a place of the plan as soon as there is room for it.
    pub(super) async fn case(self: &Arc<Self>, place: usize, planned: &Planned) -> Outcome {
        let (this, plan) = (self.clone(), planned.clone());
        // In a task of its own: a panic of ours is this case's error, and stops nothing else.
        let task = tokio::spawn(async move { this.waited(place, &plan).await });
        let outcome = task.await.unwrap_or_else(|fault| {
            self.failed.store(true, Ordering::Relaxed);
            failed_itself(blank(planned), &fault)
        });
        lock(&self.outcomes).insert(place, outcome.clone());
        self.status.end(place);
        self.to_do.send_modify(|to_do| *to_do -= 1);
        outcome
    }

    async fn waited(&self, place: usize, planned: &Planned) -> Outcome {
        let turn = &self.gate.turn;
        // The sender lives as long as `self`.
        let _ = turn.subscribe().wait_for(|turn| *turn == place).await;
        let outcome = if planned.case.exclusive {
            let _alone = self.gate.alone.write().await;
            turn.send_modify(|turn| *turn += 1);
            self.admitted(place, planned).await
        } else {
            let _beside = self.gate.alone.read().await;
            let _place = self.gate.places.acquire().await;
            turn.send_modify(|turn| *turn += 1);
            self.admitted(place, planned).await
        };
        self.take_whole_run();
        outcome
    }

    async fn admitted(&self, place: usize, planned: &Planned) -> Outcome {
        let mut outcome = blank(planned);
        if let Some((verdict, reason)) = self.reason_not_to_run(planned) {
            (outcome.verdict, outcome.reason) = (verdict, Some(reason));
            return outcome;
        }
        let runner = CaseRunner::new(self.session.clone(), planned.case.clone());
        self.status.begin(place, &planned.case.id, &runner);
        let executed = runner.execute(self.teardown).await;
        let sabotage = &self.session.options().sabotage;
        Sabotage::strike(sabotage.verdict_of.as_deref(), &planned.case.id);
        self.settle(&mut outcome, planned, executed);
        if outcome.verdict == Verdict::Error {
            self.look_for_runtime(&outcome).await;
        }
        if matches!(
            outcome.verdict,
            Verdict::Fail | Verdict::Error | Verdict::UnexpectedPass
        ) {
            self.failed.store(true, Ordering::Relaxed);
        }
        outcome
    }

    fn reason_not_to_run(&self, planned: &Planned) -> Option<(Verdict, String)> {
        if let Some(lost) = self.lost.get() {
            return Some((Verdict::Error, format!("not run: {lost}")));
        }
        if self.session.stop().is_cancelled() {
            return Some((Verdict::Skip, "not run: the run was interrupted".to_owned()));
        }
        if self.fail_fast && self.failed.load(Ordering::Relaxed) {
            return Some((
                Verdict::Skip,
                "not run: --fail-fast, and a case has failed".to_owned(),
            ));
        }
        if planned.case.needs.contains(&Need::MemoryLimit) {
            let fault = self.session.options().kernel.oom_kills().err()?;
            let reason = format!("the kernel's count of OOM kills cannot be read: {fault}");
            return Some((Verdict::Skip, reason));
        }
        None
    }

    /// Fills in what the oracle says of an executed case.
    fn settle(&self, outcome: &mut Outcome, planned: &Planned, executed: Executed) {
        let history = &executed.history;
        let judgement = oracle::judge(&planned.case, history);
        outcome.duration = host::elapsed(outcome.began);
        outcome.leftovers = executed.leftovers;
        (outcome.verdict, outcome.reason) = match judgement.undecided {
            Some(Undecided::Error(reason)) => (Verdict::Error, Some(reason)),
            Some(Undecided::Inconclusive(reason)) => (Verdict::Inconclusive, Some(reason)),
            None if judgement.violations.is_empty() => (Verdict::Pass, None),
            None => (Verdict::Fail, None),
        };
        outcome.violations = judgement.violations;
        outcome.advice = judgement.advice;
        outcome.evidence = slice(history, outcome.violations.iter().chain(&outcome.advice));
        let seen = outcome
            .violations
            .iter()
            .map(|violation| violation.actual.clone())
            .collect();
        self.known.apply(outcome, &seen);
        lock(&self.kept).extend(executed.kept);
        lock(&self.found).take_in(&planned.case.id, history, self.session.metrics());
    }

    /// After an error, finds out whether the runtime is still there.
    async fn look_for_runtime(&self, outcome: &Outcome) {
        let answer = self.session.call(None, Request::Version).await;
        if let Err(fault) = answer
            && [StatusCode::UNAVAILABLE, StatusCode::DEADLINE_EXCEEDED].contains(&fault.code)
        {
            // Whoever finds it first tells it.
            let _ = self.lost.set(format!(
                "the runtime was lost during {}: {fault}",
                outcome.id
            ));
        }
    }

    /// Judges an invariant on all histories, once every case has ended and a quiet window is over.
    pub(super) async fn invariant(
        self: &Arc<Self>,
        place: usize,
        invariant: &'static Invariant,
    ) -> Outcome {
        let this = self.clone();
        let task = tokio::spawn(async move { this.judge_invariant(invariant).await });
        let outcome = task
            .await
            .unwrap_or_else(|fault| failed_itself(blank_invariant(invariant), &fault));
        lock(&self.outcomes).insert(place, outcome.clone());
        outcome
    }

    async fn judge_invariant(&self, invariant: &Invariant) -> Outcome {
        let mut to_do = self.to_do.subscribe();
        // The sender lives as long as `self`.
        let _ = to_do.wait_for(|to_do| *to_do == 0).await;
        self.whole_run
            .get_or_init(|| self.listen_for_late_events())
            .await;
        let mut outcome = blank_invariant(invariant);
        let seen = lock(&self.found).tell(invariant.id, &mut outcome);
        outcome.duration = host::elapsed(outcome.began);
        let ran = lock(&self.outcomes)
            .values()
            .any(|outcome| outcome.verdict != Verdict::Skip);
        if !ran {
            outcome.verdict = Verdict::Skip;
            outcome.reason = Some("no case ran".to_owned());
        }
        self.known.apply(&mut outcome, &seen);
        outcome
    }

    async fn listen_for_late_events(&self) {
        let part = host::elapsed(self.began) / limits::QUIET_PART;
        let window = part.clamp(limits::SHORTEST_QUIET_WINDOW, limits::QUIET_WINDOW);
        let window = self.session.stretched(window);
        self.status.doing("listening for events that come too late");
        let stopped = self.session.stop().cancelled();
        // Nothing to wait for but the absence of events: the window is the condition.
        let _ = tokio::time::timeout(window, stopped).await;
        self.take_whole_run();
        lock(&self.found).take_in_late(&lock(&self.reading).1);
    }

    /// Lets the whole-run rules see what has been recorded.
    fn take_whole_run(&self) {
        let mut reading = lock(&self.reading);
        let (reader, whole_run) = &mut *reading;
        if let Ok(entries) = reader.drain() {
            for entry in &entries {
                whole_run.push(entry);
            }
        }
    }

    /// The outcomes in the order of the plan, and the sandboxes that were kept.
    pub(super) fn finish(&self) -> (Vec<Outcome>, Vec<SandboxId>) {
        let outcomes = std::mem::take(&mut *lock(&self.outcomes))
            .into_values()
            .collect();
        (outcomes, std::mem::take(&mut *lock(&self.kept)))
    }
}

fn blank(planned: &Planned) -> Outcome {
    let case = &planned.case;
    Outcome {
        id: case.id.clone(),
        name: case.name.clone(),
        repetition: planned.repetition,
        title: case.title.clone(),
        why: case.why.trim().to_owned(),
        sources: case.sources.clone(),
        verdict: Verdict::Error,
        reason: None,
        violations: Vec::new(),
        advice: Vec::new(),
        leftovers: Vec::new(),
        evidence: Vec::new(),
        began: host::now(),
        duration: Duration::ZERO,
    }
}

/// What is said when a panic of ours took the verdict's place.
fn failed_itself(mut outcome: Outcome, fault: &JoinError) -> Outcome {
    outcome.verdict = Verdict::Error;
    outcome.reason = Some(format!("the suite itself failed: {fault}"));
    outcome.duration = host::elapsed(outcome.began);
    outcome
}

fn blank_invariant(invariant: &Invariant) -> Outcome {
    Outcome {
        id: invariant.id.to_owned(),
        name: invariant.name.to_owned(),
        repetition: None,
        title: invariant.sentence.to_owned(),
        why: String::new(),
        sources: vec![invariant.source.to_owned()],
        verdict: Verdict::Pass,
        reason: None,
        violations: Vec::new(),
        advice: Vec::new(),
        leftovers: Vec::new(),
        evidence: Vec::new(),
        began: host::now(),
        duration: Duration::ZERO,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether an invariant's level convicts: all that there are do, for some consumer.
const _: () = {
    let mut place = 0;
    while place < INVARIANTS.len() {
        assert!(matches!(INVARIANTS[place].levels.cache, Level::Must));
        place += 1;
    }
};
