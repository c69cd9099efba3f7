//! What the steps of a case and its teardown share while the case is executed, each part with the
//! methods that only it needs.

mod subscriptions;
mod view;
mod waits;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::session::Session;
use crate::case::Case;
use crate::history::{CallFault, CaseRun, ContainerId, PodUid, Reply, Request};
use crate::host::PodCgroup;

pub(super) use subscriptions::CaseSubscriptions;
pub(super) use view::CaseView;
pub(super) use waits::WaitLog;

/// One case while it is executed.
#[derive(Debug)]
pub(super) struct ActiveCase {
    pub(super) session: Arc<Session>,
    pub(super) case: Arc<Case>,
    pub(super) run: CaseRun,
    /// What the case has seen.
    pub(super) view: CaseView,
    pub(super) waits: WaitLog,
    /// The subscriptions that it has opened.
    pub(super) subscriptions: CaseSubscriptions,
    attempts: Mutex<BTreeMap<String, u32>>,
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

    /// The pod of which a call ends a sync, so that a kubelet 1.36 or later relists it on demand if
    /// the call succeeds. A sync starts what it creates, and removals are no part of one.
    pub(super) fn synced_by(&self, request: &Request) -> Option<PodUid> {
        let id = match request {
            Request::StartContainer(id) | Request::StopContainer { container: id, .. } => id,
            Request::StopSandbox(id) => &ContainerId::from(id),
            _ => return None,
        };
        Some(self.view.pod_of(id)?.1.uid.clone())
    }

    /// The attempt of the next container of this name.
    pub(super) fn next_attempt(&self, name: &str) -> u32 {
        let mut attempts = lock(&self.attempts);
        let next = attempts.entry(name.to_owned()).or_default();
        *next += 1;
        *next - 1
    }

    /// Notes a cgroup that is made for a pod of the case.
    pub(super) fn keep_cgroup(&self, cgroup: PodCgroup) {
        lock(&self.cgroups).push(cgroup);
    }

    /// The cgroups that were made for pods of the case, which forgets them.
    pub(super) fn take_cgroups(&self) -> Vec<PodCgroup> {
        std::mem::take(&mut *lock(&self.cgroups))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
