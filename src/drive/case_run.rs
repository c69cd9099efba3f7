//! One execution of one case: its steps, the wait for what they cause, and the teardown.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::active_case::ActiveCase;
use super::inspection::{inspect, list_pods};
use super::remaining::{checkpoints, containers_left, pods_in_doubt, sandboxes_left, unreadable};
use super::session::Session;
use super::steps::{Abort, Scope, StepContext};
use super::stream_error::stream_ended;
use crate::case::{Case, Need};
use crate::history::{
    Body, CaseHistory, CaseRun, HostFact, Request, SandboxId, StatusCode, StepsEnd,
};
use crate::oracle::{self, Index};
use crate::{checks, host, limits};

/// Whether a case's pods are removed when its verdict is not a pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TeardownPolicy {
    /// Always.
    #[default]
    Remove,
    /// Only after a pass; otherwise they stay for a look.
    KeepFailed,
}

#[derive(Debug)]
pub struct CaseRunner {
    active: Arc<ActiveCase>,
}

/// The result of one execution of a case. What happened is in the history.
#[derive(Debug)]
pub struct Executed {
    /// Sandboxes that were left for a look.
    pub kept: Vec<SandboxId>,
}

impl CaseRunner {
    /// A case about to be executed in a session, by its number in the plan.
    pub fn new(session: Arc<Session>, case: Arc<Case>, run: CaseRun) -> Arc<Self> {
        let active = Arc::new(ActiveCase::new(session, case, run));
        Arc::new(Self { active })
    }

    /// Takes the steps, waits for what they cause, and tears down.
    pub async fn execute(self: Arc<Self>, teardown: TeardownPolicy) -> Executed {
        let active = &self.active;
        let (session, case) = (&active.session, active.run);
        session.recorder().record(Body::CaseBegan {
            case,
            id: active.case.id.clone(),
            definition: active.case.definition.clone(),
            timeout_percent: session.options().asked.timeout_scale.percent(),
        });
        // In a task of its own, so that a panic of ours ends the steps and not the teardown.
        let mut steps = tokio::spawn(self.clone().take_steps());
        let end = tokio::select! {
            end = &mut steps => end,
            // A subscriber that does not read may hold up the very call that is under way.
            () = session.stop().cancelled() => {
                active.subscriptions.give_up_all().await;
                steps.await
            }
        };
        let end = end
            .unwrap_or_else(|fault| StepsEnd::Error(format!("the suite itself failed: {fault}")));
        let complete = end == StepsEnd::Complete;
        session.recorder().record(Body::StepsEnded { case, end });
        active.subscriptions.give_up_all().await;
        self.calls_ended().await;
        let mut kept = Vec::new();
        if teardown == TeardownPolicy::Remove || complete && self.keeps_expectations() {
            self.tear_down().await;
        } else {
            kept = self.sandboxes_left();
        }
        session.recorder().record(Body::CaseEnded { case });
        Executed { kept }
    }

    /// Whether nothing that has come breaks an expectation of the case.
    fn keeps_expectations(&self) -> bool {
        let history = self.active.view.history();
        let judgement = checks::judge(&self.active.case.claim(), &Index::new(&history));
        judgement.violations.is_empty()
    }

    /// What the case waits for now, for people.
    pub fn waiting_for(&self) -> Option<String> {
        let claim = self.active.case.claim();
        let pending = |history: &CaseHistory| checks::pending(&claim, &Index::new(history));
        self.active.view.peek(pending)?
    }

    async fn take_steps(self: Arc<Self>) -> StepsEnd {
        let end = match self.try_steps().await {
            Ok(()) => StepsEnd::Complete,
            Err(Abort::Unmet) => StepsEnd::Unmet,
            Err(Abort::Inconclusive(reason)) => StepsEnd::Inconclusive(reason),
            Err(Abort::NotApplicable(reason)) => StepsEnd::NotApplicable(reason),
            Err(Abort::Error(reason)) => return StepsEnd::Error(reason),
        };
        match self.trouble_with_stream(&end).await {
            Some(trouble) => StepsEnd::Error(trouble),
            None => unreadable(&self.active.view.history()).map_or(end, StepsEnd::Error),
        }
    }

    /// Why events may be missing that the runtime has sent, or would have sent had it not stopped:
    /// nobody can demand them then.
    async fn trouble_with_stream(&self, end_of_steps: &StepsEnd) -> Option<String> {
        let broken = self.active.view.broken_stream().ok()?;
        if broken.is_none() && *end_of_steps != StepsEnd::Unmet {
            return None;
        }
        // The answer shows, too, whether the runtime has stopped or ended the stream alone.
        let answer = self.active.call(Request::Version).await;
        let unavailable = answer
            .err()
            .filter(|fault| fault.code == StatusCode::UNAVAILABLE)
            .map(|fault| format!("the runtime does not answer: {fault}"));
        match broken {
            // A runtime that lives on has ended the stream that a case wanted to stay open.
            Some(end) if *end_of_steps != StepsEnd::Unmet => Some(stream_ended(&end).to_string()),
            Some(_) | None => unavailable,
        }
    }

    async fn try_steps(&self) -> Result<(), Abort> {
        let active = &self.active;
        if active.case.needs.contains(&Need::NoEvents) {
            return self.context().take(&active.case.steps).await;
        }
        let session = &active.session;
        session.ensure_stream().await?;
        active.view.follow(session.stream().await?)?;
        self.read_kernel()?;
        let mut context = self.context();
        let silence = if active.case.silent {
            Some(session.silence().await)
        } else {
            None
        };
        context.take(&active.case.steps).await?;
        // One bound for all that is still to come: what does not come costs it once.
        let deadline = Instant::now() + session.scaled(limits::EVENT_WAIT);
        let nothing_to_come = |history: &CaseHistory| {
            let index = Index::new(history);
            checks::pending(&active.case.claim(), &index).is_none()
                && oracle::unannounced(&index).is_none()
        };
        if !active.view.wait_by(deadline, nothing_to_come).await? {
            // A call of ours may bring it now, which is then too late to count.
            session.stream().await?;
            return self.read_kernel();
        }
        drop(silence);
        for sandbox in self.sandboxes_left() {
            inspect(active, sandbox).await;
        }
        list_pods(active, &pods_in_doubt(&active.view.history())).await;
        active.view.wait_by(deadline, nothing_to_come).await?;
        session.barrier().await?;
        active.subscriptions.catch_up(session).await;
        self.read_kernel()
    }

    /// What the case's own steps have to work with, which begin now.
    fn context(&self) -> StepContext {
        let percent = self.active.session.options().asked.timeout_scale.percent();
        StepContext {
            case: self.active.clone(),
            scope: Scope::new(host::now(), percent),
        }
    }

    /// Waits until the calls have ended that the steps have sent and not waited for: what they make
    /// is to be torn down. Their deadlines bound it.
    async fn calls_ended(&self) {
        let bound = self.active.session.client().client.deadline() * 2;
        // A call of which we ourselves have lost the end shall not hold up the teardown.
        let _ = tokio::time::timeout(bound, self.active.view.calls_ended()).await;
    }

    /// Records the kernel's count of OOM kills, before the steps and after them, which shows
    /// whether the situation arose that the case provokes.
    fn read_kernel(&self) -> Result<(), Abort> {
        let session = &self.active.session;
        if self.active.case.needs.contains(&Need::MemoryLimit) {
            let kills = session.options().kernel.oom_kills().map_err(|fault| {
                Abort::Inconclusive(format!("the kernel's count of OOM kills: {fault}"))
            })?;
            session.recorder().record(Body::Fact {
                case: self.active.run,
                fact: HostFact::OomKills(kills),
            });
        }
        Ok(())
    }

    /// Stops and removes every sandbox of the case that has not been removed, and then what was
    /// made for them. Checkpoints go, too: they may have hundreds of MB.
    async fn tear_down(&self) {
        let active = &self.active;
        let mut removed = true;
        // Without the grace period that a runtime may give a container as its sandbox ends.
        for container in containers_left(&active.view.history()) {
            let grace = Duration::ZERO;
            let stop = Request::StopContainer { container, grace };
            let _ = active.call(stop).await;
        }
        for sandbox in self.sandboxes_left() {
            // The removal tries the same as a failed stop, and fails then, too.
            let _ = active.call(Request::StopSandbox(sandbox.clone())).await;
            let ended = active.call(Request::RemoveSandbox(sandbox)).await;
            removed &= ended.is_ok();
        }
        for location in checkpoints(&active.view.history()) {
            active.session.options().kernel.remove_checkpoint(&location);
        }
        for cgroup in active.take_cgroups().iter().filter(|_| removed) {
            active.session.remove_cgroup(cgroup).await;
        }
        if removed {
            // What the teardown causes belongs to this case; wait for it, whatever comes.
            let _ = active.session.barrier().await;
        }
    }

    fn sandboxes_left(&self) -> Vec<SandboxId> {
        sandboxes_left(&self.active.view.history())
    }
}
