//! One execution of one case: its steps, the wait for what they cause, and the teardown.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::observing::Observers;
use super::relist::{inspect, list_pods};
use super::scope::Scope;
use super::session::Session;
use super::steps::Abort;
use super::stream_error::stream_ended;
use crate::case::{Case, Need};
use crate::history::{
    Body, CallFault, CaseHistory, CaseRun, ContainerId, Entry, EventKind, HostFact, PodUid, Reply,
    Request, SandboxId, SandboxSpec, StatusCode, StepsEnd, StreamEnd, Subject, SubjectKind,
    SubscriptionId,
};
use crate::host::PodCgroup;
use crate::oracle;
use crate::recorder::{Overrun, Reader};
use crate::{host, limits};

/// Whether a case's pods are removed when its verdict is not a pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TeardownPolicy {
    /// Always.
    #[default]
    Remove,
    /// Only after a pass; otherwise they stay for a look.
    KeepFailed,
}

/// Executes one case.
#[derive(Debug)]
pub struct CaseRunner {
    pub(super) session: Arc<Session>,
    pub(super) case: Arc<Case>,
    pub(super) run: CaseRun,
    view: Mutex<View>,
    pub(super) attempts: Mutex<BTreeMap<String, u32>>,
    pub(super) observers: Observers,
    /// What was made for its pods.
    cgroups: Mutex<Vec<PodCgroup>>,
}

/// What one execution of a case came to.
#[derive(Debug)]
pub struct Executed {
    /// Sandboxes that were left for a look.
    pub kept: Vec<SandboxId>,
}

/// What this execution has seen so far.
#[derive(Debug)]
struct View {
    reader: Reader,
    history: CaseHistory,
    overrun: bool,
    stream: Follow,
}

/// The run's own stream as a case has seen it.
#[derive(Debug, Default)]
struct Follow {
    /// Whether the case alone opens streams while it runs: then one that it opens takes the place
    /// of one that broke.
    alone: bool,
    known: BTreeSet<SubscriptionId>,
    broken: Option<StreamEnd>,
}

impl Follow {
    fn push(&mut self, body: &Body) {
        match body {
            Body::SubscriptionOpened {
                subscription,
                observer: None,
            } => {
                self.known.insert(*subscription);
                self.broken.take_if(|_| self.alone);
            }
            Body::SubscriptionEnded { subscription, end } => {
                let broke = *end != StreamEnd::Cancelled && self.known.contains(subscription);
                self.broken = self.broken.take().or(broke.then(|| end.clone()));
            }
            _ => {}
        }
    }
}

impl CaseRunner {
    /// A case about to be executed in a session, by its number in the plan.
    #[must_use]
    pub fn new(session: Arc<Session>, case: Arc<Case>, run: CaseRun) -> Arc<Self> {
        let recorder = session.recorder();
        let view = View {
            reader: recorder.reader(),
            history: CaseHistory::new(run),
            overrun: false,
            stream: Follow {
                alone: case.exclusive,
                ..Follow::default()
            },
        };
        Arc::new(Self {
            session,
            case,
            run,
            view: Mutex::new(view),
            attempts: Mutex::default(),
            observers: Observers::default(),
            cgroups: Mutex::default(),
        })
    }

    /// Does the steps, waits for what they cause, and tears down.
    pub async fn execute(self: Arc<Self>, teardown: TeardownPolicy) -> Executed {
        self.session.recorder().record(Body::CaseBegan {
            case: self.run,
            id: self.case.id.clone(),
            definition: self.case.definition.clone(),
            timeout_percent: self.session.options().asked.timeout_scale.percent(),
        });
        // In a task of its own, so that a panic of ours ends the steps and not the teardown.
        let mut steps = tokio::spawn(self.clone().do_all());
        let end = tokio::select! {
            end = &mut steps => end,
            // A subscriber that does not read may hold up the very call that is under way.
            () = self.session.stop().cancelled() => {
                self.unsubscribe_all().await;
                steps.await
            }
        };
        let end = end
            .unwrap_or_else(|fault| StepsEnd::Error(format!("the suite itself failed: {fault}")));
        let complete = end == StepsEnd::Complete;
        self.session.recorder().record(Body::StepsEnded {
            case: self.run,
            end,
        });
        self.unsubscribe_all().await;
        self.calls_ended().await;
        let passed = complete
            && oracle::judge(&self.case, &self.seen())
                .violations
                .is_empty();
        let mut kept = Vec::new();
        if passed || teardown == TeardownPolicy::Remove {
            self.tear_down().await;
        } else {
            kept = self.sandboxes_left();
        }
        self.session
            .recorder()
            .record(Body::CaseEnded { case: self.run });
        Executed { kept }
    }

    async fn do_all(self: Arc<Self>) -> StepsEnd {
        let end = match self.try_all().await {
            Ok(()) => StepsEnd::Complete,
            Err(Abort::Unmet) => StepsEnd::Unmet,
            Err(Abort::Inconclusive(reason)) => StepsEnd::Inconclusive(reason),
            Err(Abort::NotApplicable(reason)) => StepsEnd::NotApplicable(reason),
            Err(Abort::Error(reason)) => return StepsEnd::Error(reason),
        };
        match self.trouble_with_stream(&end).await {
            Some(trouble) => StepsEnd::Error(trouble),
            None => unreadable(&self.seen()).map_or(end, StepsEnd::Error),
        }
    }

    /// Why events may be missing that the runtime has sent, or would have sent had it not stopped:
    /// nobody can demand them then.
    async fn trouble_with_stream(&self, end_of_steps: &StepsEnd) -> Option<String> {
        let broken = self.view().ok()?.stream.broken.clone();
        if broken.is_none() && *end_of_steps != StepsEnd::Unmet {
            return None;
        }
        // The answer shows, too, whether the runtime has stopped or ended the stream alone.
        let answer = self.call(Request::Version).await;
        let gone = answer
            .err()
            .filter(|fault| fault.code == StatusCode::UNAVAILABLE);
        let gone = gone.map(|fault| format!("the runtime does not answer: {fault}"));
        match broken {
            // A runtime that lives on has ended the stream that a case wanted to stay open.
            Some(end) if *end_of_steps != StepsEnd::Unmet => Some(stream_ended(&end).to_string()),
            Some(_) | None => gone,
        }
    }

    async fn try_all(self: &Arc<Self>) -> Result<(), Abort> {
        let percent = self.session.options().asked.timeout_scale.percent();
        if self.case.needs.contains(&Need::NoEvents) {
            let mut scope = Scope::beginning(host::now(), percent);
            return self.clone().steps(&self.case.steps, &mut scope).await;
        }
        self.session.ensure_stream().await?;
        let stream = self.session.stream().await?;
        self.view()?.stream.known.insert(stream);
        self.read_kernel()?;
        let mut scope = Scope::beginning(host::now(), percent);
        let silence = if self.case.silent {
            Some(self.session.silence().await)
        } else {
            None
        };
        self.clone().steps(&self.case.steps, &mut scope).await?;
        // One bound for all that is still to come: what does not come costs it once.
        let deadline = Instant::now() + self.session.stretched(limits::EVENT_WAIT);
        let nothing_to_come = |history: &CaseHistory| {
            oracle::pending(&self.case, history).is_none() && oracle::unannounced(history).is_none()
        };
        if !self.wait_by(deadline, nothing_to_come).await? {
            // A call of ours may bring it now, which is then too late to count.
            self.session.stream().await?;
            return self.read_kernel();
        }
        drop(silence);
        for sandbox in self.sandboxes_left() {
            inspect(self, sandbox).await;
        }
        list_pods(self, &pods_in_doubt(&self.seen())).await;
        self.wait_by(deadline, nothing_to_come).await?;
        self.session.barrier().await?;
        self.await_observers().await;
        self.read_kernel()
    }

    /// Waits until a condition of the history holds; returns whether it did in time.
    pub(super) async fn wait_by(
        &self,
        deadline: Instant,
        condition: impl Fn(&CaseHistory) -> bool,
    ) -> Result<bool, Abort> {
        let met = tokio::time::timeout_at(deadline, self.wait_until(condition)).await;
        met.map_or(Ok(false), |met| met.map(|()| true))
    }

    /// The same without a bound of its own, for callers that have another. Once the stream has
    /// ended, nothing comes any more.
    pub(super) async fn wait_until(
        &self,
        condition: impl Fn(&CaseHistory) -> bool,
    ) -> Result<(), Abort> {
        let mut changes = self.session.recorder().changes();
        loop {
            {
                let view = self.view()?;
                if condition(&view.history) {
                    return Ok(());
                }
                if let Some(end) = &view.stream.broken {
                    return Err(stream_ended(end).into());
                }
            }
            tokio::select! {
                () = changes.next() => {}
                () = self.session.stop().cancelled() => {
                    return Err(Abort::Error("interrupted".to_owned()));
                }
            }
        }
    }

    /// Waits until the calls have ended that the steps have sent and not waited for: what they make
    /// is to be torn down. Their deadlines bound it.
    async fn calls_ended(&self) {
        let mut changes = self.session.recorder().changes();
        let ended = async {
            while self.view().is_ok_and(|view| is_calling(&view.history)) {
                changes.next().await;
            }
        };
        // A call of which we ourselves have lost the end shall not hold up the teardown.
        let _ = tokio::time::timeout(self.session.caller().client.deadline() * 2, ended).await;
    }

    /// Reads what the case's situation is told by, before the steps and after them.
    fn read_kernel(&self) -> Result<(), Abort> {
        if self.case.needs.contains(&Need::MemoryLimit) {
            let kills = self.session.options().kernel.oom_kills().map_err(|fault| {
                Abort::Inconclusive(format!("the kernel's count of OOM kills: {fault}"))
            })?;
            let fact = HostFact::OomKills(kills);
            self.session.recorder().record(Body::Fact {
                case: self.run,
                fact,
            });
        }
        Ok(())
    }

    /// The session that the case runs in.
    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    /// Sends a call for the case.
    pub(super) async fn call(&self, request: Request) -> Result<Reply, CallFault> {
        self.session.call(Some(self.run), request).await
    }

    /// What was made for the case's pods.
    pub(super) fn cgroups(&self) -> MutexGuard<'_, Vec<PodCgroup>> {
        self.cgroups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops and removes every sandbox of the case that has not been removed, and then what was
    /// made for them.
    async fn tear_down(&self) {
        let mut removed = true;
        // Without the grace period that a runtime may give a container as its sandbox ends.
        for container in containers_left(&self.seen()) {
            let grace = Duration::ZERO;
            let _ = self.call(Request::StopContainer { container, grace }).await;
        }
        for sandbox in self.sandboxes_left() {
            // A failed stop is told by the removal, which tries the same.
            let _ = self.call(Request::StopSandbox(sandbox.clone())).await;
            let ended = self.call(Request::RemoveSandbox(sandbox)).await;
            removed &= ended.is_ok();
        }
        let cgroups = std::mem::take(&mut *self.cgroups());
        for cgroup in cgroups.iter().filter(|_| removed) {
            self.session.take_cgroup(cgroup).await;
        }
        if removed {
            // What the teardown causes belongs to this case; wait for it, whatever comes.
            let _ = self.session.barrier().await;
        }
    }

    /// The case's sandboxes that are there.
    pub(super) fn sandboxes_left(&self) -> Vec<SandboxId> {
        sandboxes_left(&self.seen())
    }

    /// The sandbox that has this id, or that has a container of this id, and how it was asked for.
    pub(super) fn pod_of(&self, id: &ContainerId) -> Option<(SandboxId, Arc<SandboxSpec>)> {
        let history = self.seen();
        let subject = history
            .subjects()
            .iter()
            .find(|subject| subject.id == *id)?;
        match &subject.kind {
            SubjectKind::Sandbox(spec) => Some((SandboxId::from(id.as_str()), spec.clone())),
            SubjectKind::Container(spec) => Some((spec.sandbox.clone(), spec.sandbox_spec.clone())),
            SubjectKind::Stray => None,
        }
    }

    /// What has been seen up to now.
    pub(super) fn seen(&self) -> CaseHistory {
        let mut view = self.view.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = view.refresh();
        view.history.clone()
    }

    /// Whether this holds of what the case has recorded so far.
    pub(super) fn holds(&self, condition: impl Fn(&CaseHistory) -> bool) -> Result<bool, Abort> {
        Ok(condition(&self.view()?.history))
    }

    fn view(&self) -> Result<MutexGuard<'_, View>, Abort> {
        let mut view = self.view.lock().unwrap_or_else(PoisonError::into_inner);
        view.refresh()
            .map_err(|fault| Abort::Error(fault.to_string()))?;
        Ok(view)
    }

    /// What the case waits for now, for people.
    #[must_use]
    pub fn waiting_for(&self) -> Option<String> {
        let view = self.view.try_lock().ok()?;
        oracle::pending(&self.case, &view.history)
    }
}

impl View {
    fn refresh(&mut self) -> Result<(), Overrun> {
        if self.overrun {
            return Err(Overrun);
        }
        let news: Result<Vec<Arc<Entry>>, Overrun> = self.reader.drain();
        self.overrun = news.is_err();
        for entry in news? {
            self.stream.push(&entry.body);
            self.history.push(&entry);
        }
        Ok(())
    }
}

/// What is wrong with an answer that nobody can read: nothing is known then of what it showed.
fn unreadable(history: &CaseHistory) -> Option<String> {
    history.calls().find_map(|call| match call.result() {
        Some(Err(fault)) if fault.code == StatusCode::DATA_LOSS => {
            let method = call.request().method();
            Some(format!("the answer of {method} cannot be read: {fault}"))
        }
        _ => None,
    })
}

/// Whether a call of the case is under way.
fn is_calling(history: &CaseHistory) -> bool {
    let mut own = history.calls().filter(|call| !call.is_of_run());
    own.any(|call| call.result().is_none())
}

/// The pods of which a call that was to make something has failed: there may be more than what was
/// returned.
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
fn sandboxes_left(history: &CaseHistory) -> Vec<SandboxId> {
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

/// The containers in such sandboxes that a successful call made, that no successful call removed,
/// and that have not been seen to stop.
fn containers_left(history: &CaseHistory) -> Vec<ContainerId> {
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
