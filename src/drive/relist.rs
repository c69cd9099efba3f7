//! Relisting what a run made, as a kubelet does: all pods now and then, and one pod where a case is
//! at rest. What a list shows and no event has told is a missed event.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::task::JoinHandle;

use super::case_run::CaseRunner;
use super::relister::Relister;
use super::scope::Scope;
use super::session::Session;
use super::steps::{Abort, failed};
use crate::history::{CallFault, ContainerId, PodUid, Reply, Request, SandboxId};
use crate::host;
use crate::pleg::Generic;

/// Relists that go on until this is dropped.
#[derive(Debug)]
pub struct Relists {
    task: JoinHandle<()>,
}

impl Relists {
    /// Relists the pods of a run each second, except while a case wants silence.
    #[must_use]
    pub fn begin(session: &Arc<Session>) -> Self {
        let session = session.clone();
        let (caller, metrics) = (session.caller().clone(), session.metrics().clone());
        let mut relister = Relister::new(caller, metrics, session.labels());
        let task = tokio::spawn(async move {
            let mut period = tokio::time::interval(Generic::PERIOD);
            // The first tick comes at once, when there is nothing to list yet.
            period.tick().await;
            loop {
                period.tick().await;
                let _quiet = session.relisting().await;
                // A list that fails shows nothing; it stands in the history all the same.
                let _ = relister.relist().await;
                period.reset();
            }
        });
        Self { task }
    }
}

impl Drop for Relists {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn listing(runner: &CaseRunner, sandbox: SandboxId) -> Request {
    let labels = runner.session().labels();
    Request::ListContainers {
        sandbox: Some(sandbox),
        labels,
    }
}

impl CaseRunner {
    /// Does what `relist` does, and each call has to return as soon as the case asks for.
    pub(super) async fn relist_of_step(
        &self,
        sandbox: SandboxId,
        scope: &Scope,
    ) -> Result<(), Abort> {
        if scope.prompt().is_none() {
            let relisted = relist(self, sandbox).await;
            return relisted.map_err(|fault| failed("ListContainers", &fault));
        }
        let request = listing(self, sandbox);
        if let Reply::Containers(listed) = self.must(request, scope).await? {
            for container in listed {
                let status = Request::ContainerStatus(container.id);
                let _ = self.call_of_step(status, scope).await?;
            }
        }
        Ok(())
    }
}

/// Inspects a pod at rest, as a kubelet does: lists its sandbox and its containers, and reads the
/// status of each. A call that fails shows nothing; it stands in the history all the same.
pub(super) async fn inspect(runner: &CaseRunner, sandbox: SandboxId) {
    let began = host::now();
    let mut labels = runner.session().labels();
    if let Some((_, pod)) = runner.pod_of(&ContainerId::from(&sandbox)) {
        labels.insert("io.kubernetes.pod.uid".to_owned(), pod.uid.to_string());
    }
    let _ = runner.call(Request::ListSandboxes(labels)).await;
    let _ = runner.call(Request::SandboxStatus(sandbox.clone())).await;
    let _ = relist(runner, sandbox).await;
    let took = host::elapsed(began);
    runner.session().metrics().pod_relisted(took);
}

/// Lists all that there is of some pods, whether the case knows of it or not. A kubelet's relist
/// lists the sandboxes first, and this is none.
pub(super) async fn list_pods(runner: &CaseRunner, pods: &BTreeSet<PodUid>) {
    let labels_of = |pod: &PodUid| {
        let mut labels = runner.session().labels();
        labels.insert("io.kubernetes.pod.uid".to_owned(), pod.to_string());
        labels
    };
    for pod in pods {
        let (sandbox, labels) = (None, labels_of(pod));
        let _ = runner
            .call(Request::ListContainers { sandbox, labels })
            .await;
    }
    for pod in pods {
        let _ = runner.call(Request::ListSandboxes(labels_of(pod))).await;
    }
}

/// Lists a sandbox's containers and reads the status of each.
///
/// # Errors
/// If the list fails. A container that is gone meanwhile is no fault: the list and the statuses are
/// different moments.
pub(super) async fn relist(runner: &CaseRunner, sandbox: SandboxId) -> Result<(), CallFault> {
    if let Reply::Containers(listed) = runner.call(listing(runner, sandbox)).await? {
        for container in listed {
            let _ = runner.call(Request::ContainerStatus(container.id)).await;
        }
    }
    Ok(())
}
