//! What each step of a case does to the runtime, and how steps follow one another.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::calls::is_refusal;
use super::case_run::CaseRunner;
use super::sabotage::Sabotage;
use super::scope::Scope;
use super::stream_error::StreamError;
use crate::case::{AwaitStep, RemoveStep, RepeatStep, StartStep, Step};
use crate::history::{
    Body, CallFault, CaseHistory, ContainerId, ContainerState, EventKind, Reply, Request,
    SandboxId, SubjectKind, Took,
};
use crate::limits;

/// Why the steps did not come to their end.
#[derive(Debug)]
pub(super) enum Abort {
    Unmet,
    Inconclusive(String),
    NotApplicable(String),
    Error(String),
}

type Steps<'a> = Pin<Box<dyn Future<Output = Result<(), Abort>> + Send + 'a>>;

impl CaseRunner {
    pub(super) fn steps<'a>(self: Arc<Self>, steps: &'a [Step], scope: &'a mut Scope) -> Steps<'a> {
        Box::pin(async move {
            for step in steps {
                if self.session.stop().is_cancelled() {
                    return Err(Abort::Error("interrupted".to_owned()));
                }
                self.step(step, scope).await?;
                let sabotage = &self.session.options().asked.sabotage;
                Sabotage::strike(sabotage.steps_of.as_deref(), &self.case.id);
            }
            Ok(())
        })
    }

    async fn step(self: &Arc<Self>, step: &Step, scope: &mut Scope) -> Result<(), Abort> {
        match step {
            Step::Sandbox(step) => self.run_sandbox(step, scope).await,
            Step::Create(step) => self.create(step, scope).await,
            Step::Start(step) => self.start(step, scope).await,
            Step::Stop(step) => {
                let request = Request::StopContainer {
                    container: called(scope, &step.container, step.by_prefix)?,
                    grace: scope.whole_seconds(step.grace),
                };
                let stopped = self.attempt(request, step.terms(), scope).await;
                taken(stopped, step.by_prefix)
            }
            Step::Remove(step) => self.remove(step, scope).await,
            Step::StopSandbox(step) => {
                let sandbox = bound_sandbox(scope, &step.sandbox)?;
                let request = Request::StopSandbox(sandbox);
                self.must(request, scope).await.map(drop)
            }
            Step::RemoveSandbox(step) => {
                let sandbox = bound_sandbox(scope, &step.sandbox)?;
                let remove = Request::RemoveSandbox(sandbox);
                self.must(remove, scope).await.map(drop)
            }
            Step::KillSandbox(step) => self.kill(&step.sandbox, scope).await,
            Step::Kill(step) => self.kill(&step.container, scope).await,
            Step::Gone(step) => self.gone(step, scope).await,
            Step::Await(step) => self.await_event(step, scope).await,
            Step::Relist(step) => {
                let sandbox = bound_sandbox(scope, &step.sandbox)?;
                self.relist_of_step(sandbox, scope).await
            }
            Step::Resubscribe(step) => self.resubscribe(step, scope).await,
            Step::Subscribe(step) => self.subscribe(step, scope).await,
            Step::Unsubscribe(step) => self.unsubscribe(step, scope).await,
            Step::Resume(step) => self.resume(&step.subscription, scope).await,
            Step::AwaitEnd(step) => self.await_end(step, scope).await,
            Step::Quiet(step) => self.quiet(step, scope).await,
            Step::Prompt(step) => self.prompt(step, scope).await,
            Step::Version(_) => self.must(Request::Version, scope).await.map(drop),
            Step::Parallel(branches) => self.parallel(branches, scope).await,
            Step::Filters(step) => self.filters(step, scope).await,
            Step::EachHandler(step) => self.each_handler(step, scope).await,
            Step::OnEvent(step) => self.on_event(step, scope).await,
            Step::Meanwhile(step) => self.meanwhile(step, scope).await,
            Step::Exec(step) => self.exec(step, scope).await,
            Step::Aside(step) => self.aside(step, scope).await,
            Step::Image(step) => self.image(*step, scope).await,
            Step::Unknown(step) => {
                self.unknown(*step, scope).await;
                Ok(())
            }
            Step::AnotherClient(step) => self.another_client(step, scope).await,
            Step::StepClock(step) => self.step_clock(step, scope).await,
            Step::OutsideCri(_) => self.live_outside_cri().await,
            Step::RestartRuntime(_) => self.restart_runtime().await,
            Step::Repeat(step) => self.repeat(step, scope).await,
        }
    }

    async fn start(&self, step: &StartStep, scope: &Scope) -> Result<(), Abort> {
        let container = called(scope, &step.container, step.by_prefix)?;
        let start = Request::StartContainer(container);
        let started = self.attempt(start, step.terms(), scope).await;
        taken(started, step.by_prefix)
    }

    async fn remove(&self, step: &RemoveStep, scope: &Scope) -> Result<(), Abort> {
        let container = called(scope, &step.container, step.by_prefix)?;
        let remove = Request::RemoveContainer(container);
        let Some(within) = step.within else {
            let removed = self.attempt(remove, step.terms(), scope).await;
            return taken(removed, step.by_prefix);
        };
        let bound = self.session.stretched(within);
        let until = Instant::now() + bound;
        let mut pace = tokio::time::interval(limits::REMOVAL_PACE);
        let refused = loop {
            pace.tick().await;
            match self.call_of_step(remove.clone(), scope).await? {
                Ok(_) => break None,
                Err(fault) if !is_refusal(&fault) => return Err(failed(remove.method(), &fault)),
                Err(fault) if Instant::now() >= until => break Some(fault),
                Err(_) => {}
            }
        };
        let wanted = format!("the removal of {}", step.container);
        let instead = refused.map(|fault| format!("refused to the last: {fault}"));
        self.waited_unless(wanted, bound, instead)
    }

    async fn repeat(self: &Arc<Self>, step: &RepeatStep, scope: &Scope) -> Result<(), Abort> {
        let rounds = match step.times {
            Some(times) => times as usize,
            None => step.items.len(),
        };
        let next = AtomicUsize::new(0);
        let next = Arc::new(next);
        let mut workers = JoinSet::new();
        for _ in 0..step.workers.max(1) {
            let (this, next) = (self.clone(), next.clone());
            let (step, scope) = (step.clone(), scope.clone());
            workers.spawn(async move { this.rounds(&step, &scope, &next, rounds).await });
        }
        while let Some(ended) = workers.join_next().await {
            ended.map_err(|fault| Abort::Error(format!("the suite itself failed: {fault}")))??;
        }
        Ok(())
    }

    async fn rounds(
        self: Arc<Self>,
        step: &RepeatStep,
        scope: &Scope,
        next: &AtomicUsize,
        rounds: usize,
    ) -> Result<(), Abort> {
        loop {
            let round = next.fetch_add(1, Ordering::Relaxed);
            if round >= rounds {
                return Ok(());
            }
            let mut scope = scope.clone().with_item(step.items.get(round).copied());
            self.clone().steps(&step.steps, &mut scope).await?;
        }
    }

    pub(super) async fn await_event(&self, step: &AwaitStep, scope: &Scope) -> Result<(), Abort> {
        let id = scope.subject(&step.of).ok_or_else(|| unbound(&step.of))?;
        let bound = self
            .session
            .stretched(step.within.unwrap_or(limits::EVENT_WAIT));
        let wanted = format!("{} of {} ({id})", step.event, step.of);
        let began = Instant::now();
        let met = self
            .wait_by(began + bound, |history| has_seen(history, &id, step.event))
            .await?;
        self.waited_for(wanted, met, bound, Took::Event(began.elapsed()));
        if met {
            return Ok(());
        }
        // What a stream that has ended did not bring, nobody can demand.
        self.session.stream().await?;
        let may_run_on =
            step.event == EventKind::Stopped && !self.holds(|history| was_stopped(history, &id))?;
        if may_run_on && self.still_runs(&id).await {
            return Err(Abort::Inconclusive(format!(
                "{} of {} ({id}) did not come within {bound:?}, and its status says that it runs: \
                 it has not ended",
                step.event, step.of
            )));
        }
        Err(Abort::Unmet)
    }

    /// Whether the status of a container says that it runs, and the kernel does not know better.
    async fn still_runs(&self, id: &ContainerId) -> bool {
        let asked = self.call(Request::ContainerStatus(id.clone())).await;
        let Ok(Reply::ContainerStatus(report)) = asked else {
            return false;
        };
        let kernel = &self.session.options().kernel;
        let is_dead = matches!(kernel.has_process_of(id.as_str()), Ok(false));
        report.status.state == ContainerState::Running && !is_dead
    }

    /// Records that the case has waited for something.
    pub(super) fn waited(&self, wanted: String, met: bool, bound: Duration) {
        self.record_wait(wanted, met, bound, None, String::new());
    }

    /// Records that the case has waited for something, and how long that took, if it came.
    pub(super) fn waited_for(&self, wanted: String, met: bool, bound: Duration, took: Took) {
        self.record_wait(wanted, met, bound, met.then_some(took), String::new());
    }

    /// Records that the case has waited for something, which came if nothing was seen instead.
    ///
    /// # Errors
    /// If something was.
    pub(super) fn waited_unless(
        &self,
        wanted: String,
        bound: Duration,
        instead: Option<String>,
    ) -> Result<(), Abort> {
        let met = instead.is_none();
        self.record_wait(wanted, met, bound, None, instead.unwrap_or_default());
        if met { Ok(()) } else { Err(Abort::Unmet) }
    }

    fn record_wait(
        &self,
        wanted: String,
        met: bool,
        bound: Duration,
        took: Option<Took>,
        instead: String,
    ) {
        self.session.recorder().record(Body::Waited {
            case: self.run,
            wanted,
            met,
            bound,
            took,
            instead,
        });
    }

    pub(super) async fn must(&self, request: Request, scope: &Scope) -> Result<Reply, Abort> {
        let method = request.method();
        let result = self.call_of_step(request, scope).await?;
        result.map_err(|fault| failed(method, &fault))
    }

    /// Sends a step's call, which has to return as soon as the case asks for.
    pub(super) async fn call_of_step(
        &self,
        request: Request,
        scope: &Scope,
    ) -> Result<Result<Reply, CallFault>, Abort> {
        let (client, case) = (self.caller_in(scope), Some(self.run));
        let Some(bound) = scope.prompt() else {
            return Ok(client.call(case, request).await);
        };
        let method = request.method();
        let called = tokio::time::timeout(bound, client.call(case, request));
        called.await.map_err(|_| {
            self.waited(format!("the return of {method}"), false, bound);
            Abort::Unmet
        })
    }

    /// The number of the next container of this name.
    pub(super) fn next_attempt(&self, binding: &str) -> u32 {
        let mut attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        let next = attempts.entry(binding.to_owned()).or_default();
        *next += 1;
        *next - 1
    }
}

impl From<StreamError> for Abort {
    fn from(fault: StreamError) -> Self {
        Self::Error(fault.to_string())
    }
}

pub(super) fn failed(method: &str, fault: &CallFault) -> Abort {
    Abort::Error(format!("{method} failed: {fault}"))
}

pub(super) fn unbound(name: &str) -> Abort {
    Abort::Error(format!("`{name}` was never made"))
}

pub(super) fn bound_container(scope: &Scope, name: &str) -> Result<ContainerId, Abort> {
    scope.container(name).cloned().ok_or_else(|| unbound(name))
}

/// What a container is called in a call: by its id, or by as much of it as people write.
fn called(scope: &Scope, name: &str, by_prefix: bool) -> Result<ContainerId, Abort> {
    let id = bound_container(scope, name)?;
    let prefix = id.as_str().get(..limits::ID_PREFIX);
    let prefix = prefix.filter(|_| by_prefix).map(ContainerId::from);
    Ok(prefix.unwrap_or(id))
}

/// What a call came to. That a runtime takes nothing but whole ids is no fault of it.
fn taken(called: Result<Option<Reply>, Abort>, by_prefix: bool) -> Result<(), Abort> {
    match called {
        Err(Abort::Error(fault)) if by_prefix => Err(Abort::Inconclusive(format!(
            "the runtime does not take the beginning of an id for the id: {fault}"
        ))),
        called => called.map(drop),
    }
}

pub(super) fn bound_sandbox(scope: &Scope, name: &str) -> Result<SandboxId, Abort> {
    scope
        .sandbox(name)
        .map(|(id, _)| id.clone())
        .ok_or_else(|| unbound(name))
}

/// Whether the runtime has said that it has stopped a container, or the sandbox that it is in.
fn was_stopped(history: &CaseHistory, id: &ContainerId) -> bool {
    let mut subjects = history.subjects().iter();
    let sandbox = subjects.find_map(|subject| match &subject.kind {
        SubjectKind::Container(spec) if subject.id == *id => Some(&spec.sandbox),
        _ => None,
    });
    history.calls().any(|call| {
        let stops = match call.request() {
            Request::StopContainer { container, .. } => container == id,
            Request::StopSandbox(stopped) => Some(stopped) == sandbox,
            _ => false,
        };
        stops && matches!(call.result(), Some(Ok(_)))
    })
}

pub(super) fn has_seen(history: &CaseHistory, id: &ContainerId, kind: EventKind) -> bool {
    let subject = history.subjects().iter().find(|subject| subject.id == *id);
    subject.is_some_and(|subject| subject.first(kind).is_some())
}
