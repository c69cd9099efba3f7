//! The state that the steps of a case and its teardown share while the case is executed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::session::Session;
use super::steps::Abort;
use super::stream_error::stream_ended;
use crate::case::Case;
use crate::cri::Subscription;
use crate::history::{
    Body, CallFault, CaseHistory, CaseRun, ContainerId, Entry, PodUid, Reply, Request, SandboxId,
    SandboxSpec, StreamEnd, SubjectKind, SubscriptionId, Took,
};
use crate::host::PodCgroup;
use crate::recorder::{Overrun, Reader, Recorder};

/// One case while it is executed.
#[derive(Debug)]
pub(super) struct ActiveCase {
    pub(super) session: Arc<Session>,
    pub(super) case: Arc<Case>,
    pub(super) run: CaseRun,
    /// The history of the case so far.
    pub(super) view: CaseView,
    pub(super) waits: WaitLog,
    /// The subscriptions that it has opened.
    pub(super) subscriptions: CaseSubscriptions,
    attempts: Mutex<BTreeMap<(PodUid, String), u32>>,
    cgroups: Mutex<Vec<PodCgroup>>,
}

impl ActiveCase {
    pub(super) fn new(session: Arc<Session>, case: Arc<Case>, run: CaseRun) -> Self {
        Self {
            view: CaseView::new(&session, &case, run),
            waits: WaitLog::new(session.recorder().clone(), run),
            session,
            case,
            run,
            subscriptions: CaseSubscriptions::default(),
            attempts: Mutex::default(),
            cgroups: Mutex::default(),
        }
    }

    /// Sends a call for the case.
    pub(super) async fn call(&self, request: Request) -> Result<Reply, CallFault> {
        self.session.call(Some(self.run), request).await
    }

    /// Lists a sandbox's containers and reads the status of each. Fails if the list fails. A
    /// container that is removed meanwhile is no fault: the list and the statuses are of different
    /// moments.
    pub(super) async fn list_and_read(&self, sandbox: SandboxId) -> Result<(), CallFault> {
        if let Reply::Containers(listed) = self.call(self.list_request(sandbox)).await? {
            for container in listed {
                let _ = self.call(Request::ContainerStatus(container.id)).await;
            }
        }
        Ok(())
    }

    /// The call that lists a sandbox's containers.
    pub(super) fn list_request(&self, sandbox: SandboxId) -> Request {
        Request::containers(Some(sandbox), self.session.labels())
    }

    /// The pod of which a call ends a sync, so that a kubelet 1.36 or later relists it on demand if
    /// the call succeeds. A sync starts each container that it creates, and removes none.
    pub(super) fn synced_by(&self, request: &Request) -> Option<PodUid> {
        let id = match request {
            Request::StartContainer(id) | Request::StopContainer { container: id, .. } => id,
            Request::StopSandbox(id) => &ContainerId::from(id),
            _ => return None,
        };
        Some(self.view.pod_of(id)?.1.uid.clone())
    }

    /// The attempt of the next container of this name in a pod, as a kubelet counts them.
    pub(super) fn next_attempt(&self, pod: &PodUid, name: &str) -> u32 {
        let mut attempts = lock(&self.attempts);
        let next = attempts.entry((pod.clone(), name.to_owned())).or_default();
        *next += 1;
        *next - 1
    }

    /// Records a cgroup that is made for a pod of the case.
    pub(super) fn keep_cgroup(&self, cgroup: PodCgroup) {
        lock(&self.cgroups).push(cgroup);
    }

    /// Takes the cgroups that were made for pods of the case.
    pub(super) fn take_cgroups(&self) -> Vec<PodCgroup> {
        std::mem::take(&mut *lock(&self.cgroups))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The history of a case so far, and the state of the run's own stream.
#[derive(Debug)]
pub(super) struct CaseView {
    seen: Mutex<Seen>,
    recorder: Recorder,
    stop: CancellationToken,
}

#[derive(Debug)]
struct Seen {
    reader: Reader,
    history: CaseHistory,
    overrun: bool,
    stream: RunStream,
}

/// The state of the run's own stream since the case began.
#[derive(Debug, Default)]
struct RunStream {
    /// Whether the case alone opens streams while it runs: then one that it opens takes the place
    /// of one that broke.
    alone: bool,
    known: BTreeSet<SubscriptionId>,
    broken: Option<StreamEnd>,
}

impl CaseView {
    fn new(session: &Session, case: &Case, run: CaseRun) -> Self {
        let recorder = session.recorder().clone();
        let seen = Seen {
            reader: recorder.reader(),
            history: CaseHistory::new(run),
            overrun: false,
            stream: RunStream {
                alone: case.exclusive,
                ..RunStream::default()
            },
        };
        Self {
            seen: Mutex::new(seen),
            recorder,
            stop: session.stop().clone(),
        }
    }

    /// The history up to now.
    pub(super) fn history(&self) -> CaseHistory {
        let mut seen = lock(&self.seen);
        let _ = seen.refresh();
        seen.history.clone()
    }

    /// A value from the history at the last refresh; none while it is refreshed.
    pub(super) fn peek<T>(&self, look: impl FnOnce(&CaseHistory) -> T) -> Option<T> {
        let seen = self.seen.try_lock().ok()?;
        Some(look(&seen.history))
    }

    /// Whether a condition of the history holds.
    pub(super) fn holds(&self, condition: impl Fn(&CaseHistory) -> bool) -> Result<bool, Abort> {
        Ok(condition(&self.refreshed()?.history))
    }

    /// Follows a subscription as the run's own stream.
    pub(super) fn follow(&self, stream: SubscriptionId) -> Result<(), Abort> {
        self.refreshed()?.stream.known.insert(stream);
        Ok(())
    }

    /// How the run's own stream has broken, if it has.
    pub(super) fn broken_stream(&self) -> Result<Option<StreamEnd>, Abort> {
        Ok(self.refreshed()?.stream.broken.clone())
    }

    /// The sandbox that has this id, or that has a container of this id, and how it was asked for.
    pub(super) fn pod_of(&self, id: &ContainerId) -> Option<(SandboxId, Arc<SandboxSpec>)> {
        let mut seen = lock(&self.seen);
        let _ = seen.refresh();
        let mut subjects = seen.history.subjects().iter();
        let subject = subjects.find(|subject| subject.id == *id)?;
        match &subject.kind {
            SubjectKind::Sandbox(spec) => Some((SandboxId::from(id.as_str()), spec.clone())),
            SubjectKind::Container(spec) => Some((spec.sandbox.clone(), spec.sandbox_spec.clone())),
            SubjectKind::Stray => None,
        }
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

    /// Waits until a condition of the history holds. The bound is the caller's. Fails if the run's
    /// own stream has broken, for nothing comes after that; or if the run is stopped.
    pub(super) async fn wait_until(
        &self,
        condition: impl Fn(&CaseHistory) -> bool,
    ) -> Result<(), Abort> {
        let mut changes = self.recorder.changes();
        loop {
            {
                let seen = self.refreshed()?;
                if condition(&seen.history) {
                    return Ok(());
                }
                if let Some(end) = &seen.stream.broken {
                    return Err(stream_ended(end).into());
                }
            }
            tokio::select! {
                () = changes.next() => {}
                () = self.stop.cancelled() => return Err(Abort::interrupted()),
            }
        }
    }

    /// Waits until a call of the case is no longer under way, or the history has overrun.
    pub(super) async fn calls_ended(&self) {
        let mut changes = self.recorder.changes();
        while self.holds(is_calling).unwrap_or(false) {
            changes.next().await;
        }
    }

    fn refreshed(&self) -> Result<MutexGuard<'_, Seen>, Abort> {
        let mut seen = lock(&self.seen);
        seen.refresh()
            .map_err(|fault| Abort::Error(fault.to_string()))?;
        Ok(seen)
    }
}

impl Seen {
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

impl RunStream {
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

/// Whether a call of the case is under way.
fn is_calling(history: &CaseHistory) -> bool {
    let mut own = history.calls().filter(|call| !call.is_of_run());
    own.any(|call| call.result().is_none())
}

/// Records the waits of a case.
#[derive(Debug)]
pub(super) struct WaitLog {
    recorder: Recorder,
    run: CaseRun,
}

impl WaitLog {
    fn new(recorder: Recorder, run: CaseRun) -> Self {
        Self { recorder, run }
    }

    /// Records a wait.
    pub(super) fn record(&self, wanted: String, met: bool, bound: Duration) {
        self.push(wanted, met, bound, None, String::new());
    }

    /// Records a wait, and how long it took, if its condition was met.
    pub(super) fn record_timed(&self, wanted: String, met: bool, bound: Duration, took: Took) {
        self.push(wanted, met, bound, met.then_some(took), String::new());
    }

    /// Records a wait whose condition was met if nothing was seen instead.
    pub(super) fn record_unless(
        &self,
        wanted: String,
        bound: Duration,
        instead: Option<String>,
    ) -> Result<(), Abort> {
        let met = instead.is_none();
        self.push(wanted, met, bound, None, instead.unwrap_or_default());
        if met { Ok(()) } else { Err(Abort::Unmet) }
    }

    fn push(
        &self,
        wanted: String,
        met: bool,
        bound: Duration,
        took: Option<Took>,
        instead: String,
    ) {
        self.recorder.record(Body::Waited {
            case: self.run,
            wanted,
            met,
            bound,
            took,
            instead,
        });
    }
}

/// The subscriptions that a case has opened and not given up.
#[derive(Debug, Default)]
pub(super) struct CaseSubscriptions(tokio::sync::Mutex<BTreeMap<SubscriptionId, Subscription>>);

impl CaseSubscriptions {
    pub(super) async fn add(&self, subscription: Subscription) {
        let mut open = self.0.lock().await;
        open.insert(subscription.id(), subscription);
    }

    /// Cancels a subscription, or closes its connection as a killed subscriber does.
    pub(super) async fn close(&self, id: SubscriptionId, hang_up: bool) {
        let subscription = self.0.lock().await.remove(&id);
        match subscription {
            Some(subscription) if hang_up => subscription.hang_up().await,
            Some(subscription) => subscription.cancel().await,
            None => {}
        }
    }

    /// Lets a subscriber that has stopped reading read on.
    pub(super) async fn resume(&self, id: SubscriptionId) {
        if let Some(subscription) = self.0.lock().await.get(&id) {
            subscription.set_reading(true);
        }
    }

    /// Waits until all that was sent has arrived at those who read. Whether it has is for the
    /// oracle to judge.
    pub(super) async fn catch_up(&self, session: &Session) {
        for (id, subscription) in &*self.0.lock().await {
            let mut reader = session.recorder().reader();
            if subscription.is_open() && subscription.is_reading() {
                let _ = session.pass_marker(&mut reader, *id).await;
            }
        }
    }

    /// Gives up all of them, those first that do not read: they may hold up all others.
    pub(super) async fn close_all(&self) {
        let open = std::mem::take(&mut *self.0.lock().await);
        let (reading, stalled): (Vec<_>, Vec<_>) =
            open.into_values().partition(Subscription::is_reading);
        for subscription in stalled {
            subscription.hang_up().await;
        }
        for subscription in reading {
            subscription.cancel().await;
        }
    }
}
