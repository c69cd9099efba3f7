//! One execution of one case: its steps, the wait for their effects, and the teardown.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::active_case::ActiveCase;
use super::session::Session;
use super::steps::{Abort, Scope, StepContext};
use super::stream_error::stream_ended;
use crate::case::{Case, Need};
use crate::history::{
    Body, CaseHistory, CaseRun, ContainerId, EventKind, HostFact, PodUid, Reply, Request,
    SandboxId, StatusCode, StepsEnd, Subject,
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
    steps_taken: CancellationToken,
}

/// The result of one execution of a case, beside its history.
#[derive(Debug)]
pub struct Executed {
    /// Sandboxes that were left for a look.
    pub kept: Vec<SandboxId>,
}

impl CaseRunner {
    /// A case about to be executed in a session, by its number in the plan.
    pub fn new(session: Arc<Session>, case: Arc<Case>, run: CaseRun) -> Arc<Self> {
        let active = Arc::new(ActiveCase::new(session, case, run));
        let steps_taken = CancellationToken::new();
        Arc::new(Self {
            active,
            steps_taken,
        })
    }

    /// Cancelled once the case makes no more calls but to wait, to look and to tear down.
    pub fn steps_taken(&self) -> CancellationToken {
        self.steps_taken.clone()
    }

    /// Takes the steps, waits for their effects, and tears down.
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
                active.subscriptions.close_all().await;
                steps.await
            }
        };
        let end = end
            .unwrap_or_else(|fault| StepsEnd::Error(format!("the suite itself failed: {fault}")));
        let complete = end == StepsEnd::Complete;
        session.recorder().record(Body::StepsEnded { case, end });
        active.subscriptions.close_all().await;
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

    /// The event or state for which the case waits now, for people.
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
    /// a case cannot demand them then.
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
        self.steps_taken.cancel();
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

    /// The context of the case's own steps, which begin now.
    fn context(&self) -> StepContext {
        let percent = self.active.session.options().asked.timeout_scale.percent();
        StepContext {
            case: self.active.clone(),
            scope: Scope::new(host::now(), percent),
        }
    }

    /// Waits until the calls have ended that the steps have sent and not waited for: the objects
    /// that they create must be torn down. Their deadlines bound it.
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

    /// Stops and removes every sandbox of the case that has not been removed, and then their
    /// checkpoints, which may have hundreds of MB, and their cgroups.
    async fn tear_down(&self) {
        let active = &self.active;
        let client = active.session.client();
        let clean_up = |request| client.brief_call(Some(active.run), request);
        let mut removed = true;
        // Without the grace period that a runtime may give a container as its sandbox ends.
        for container in containers_left(&active.view.history()) {
            let grace = Duration::ZERO;
            let stop = Request::StopContainer { container, grace };
            let _ = clean_up(stop).await;
        }
        for sandbox in self.sandboxes_left() {
            // The removal tries the same as a failed stop, and fails then, too.
            let _ = clean_up(Request::StopSandbox(sandbox.clone())).await;
            let ended = clean_up(Request::RemoveSandbox(sandbox)).await;
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

/// Inspects a pod at rest, as a kubelet does: lists its sandbox and its containers, and reads the
/// status of each.
async fn inspect(case: &ActiveCase, sandbox: SandboxId) {
    let began = host::now();
    let mut labels = case.session.labels();
    if let Some((_, pod)) = case.view.pod_of(&ContainerId::from(&sandbox)) {
        labels.insert("io.kubernetes.pod.uid".to_owned(), pod.uid.to_string());
    }
    let _ = case.call(Request::sandboxes(labels)).await;
    let _ = case.call(Request::SandboxStatus(sandbox.clone())).await;
    let _ = case.list_and_read(sandbox).await;
    let took = host::elapsed(began);
    case.session.metrics().pod_relisted(took);
}

/// Lists all objects of some pods, whether the case knows them or not. A kubelet's relist
/// lists the sandboxes first, and this is none.
async fn list_pods(case: &ActiveCase, pods: &BTreeSet<PodUid>) {
    let labels_of = |pod: &PodUid| {
        let mut labels = case.session.labels();
        labels.insert("io.kubernetes.pod.uid".to_owned(), pod.to_string());
        labels
    };
    for pod in pods {
        let _ = case.call(Request::containers(None, labels_of(pod))).await;
    }
    for pod in pods {
        let _ = case.call(Request::sandboxes(labels_of(pod))).await;
    }
}

/// Why an answer of the runtime cannot be read, if there is such an answer: it proves nothing.
fn unreadable(history: &CaseHistory) -> Option<String> {
    history.calls().find_map(|call| match call.result() {
        Some(Err(fault)) if fault.code == StatusCode::DATA_LOSS => {
            let method = call.request().method();
            Some(format!("the answer of {method} is unusable: {fault}"))
        }
        _ => None,
    })
}

/// The pods in which a call that creates an object has failed: the runtime may have created it all
/// the same.
fn pods_in_doubt(history: &CaseHistory) -> BTreeSet<PodUid> {
    let failed = history.calls().filter(|call| {
        let failed = matches!(call.result(), Some(Err(_)));
        failed && !call.is_of_run()
    });
    let pods = failed.filter_map(|call| match call.request() {
        Request::RunSandbox(spec) => Some(spec.uid.clone()),
        Request::CreateContainer(spec) => Some(spec.sandbox_spec.uid.clone()),
        _ => None,
    });
    pods.collect()
}

/// The sandboxes that a successful call made and no successful call removed.
pub(super) fn sandboxes_left(history: &CaseHistory) -> Vec<SandboxId> {
    let mut left = Vec::new();
    for call in history.calls() {
        match (call.request(), call.result()) {
            (Request::RunSandbox(_), Some(Ok(Reply::Sandbox(id)))) => left.push(id.clone()),
            (Request::RemoveSandbox(id), Some(Ok(_))) => left.retain(|left| left != id),
            _ => {}
        }
    }
    left
}

fn checkpoints(history: &CaseHistory) -> Vec<String> {
    let locations = history.calls().filter_map(|call| match call.request() {
        Request::CheckpointContainer { location, .. } => Some(location.clone()),
        _ => None,
    });
    locations.collect()
}

/// The containers in such sandboxes that a successful call made, that no successful call removed,
/// and that have not been seen to stop.
pub(super) fn containers_left(history: &CaseHistory) -> Vec<ContainerId> {
    let sandboxes = sandboxes_left(history);
    let mut left = Vec::new();
    for call in history.calls() {
        match (call.request(), call.result()) {
            (Request::CreateContainer(spec), Some(Ok(Reply::Container(id))))
                if sandboxes.contains(&spec.sandbox) =>
            {
                left.push(id.clone());
            }
            (Request::RemoveContainer(id), Some(Ok(_))) => left.retain(|left| left != id),
            _ => {}
        }
    }
    let has_stopped = |subject: &Subject| subject.first(EventKind::Stopped).is_some();
    let stopped = history.subjects().iter().filter(|it| has_stopped(it));
    let stopped: BTreeSet<&ContainerId> = stopped.map(|subject| &subject.id).collect();
    left.retain(|id| !stopped.contains(id));
    left
}
