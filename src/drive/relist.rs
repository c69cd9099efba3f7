//! Relisting a case's pods beside its steps, as a kubelet does: what a list shows and no event has
//! told is a missed event.

use std::sync::Arc;

use tokio::task::JoinHandle;

use super::case_run::CaseRunner;
use crate::history::{CallFault, Reply, Request, SandboxId};
use crate::limits;

/// Relists that go on until this is dropped.
#[derive(Debug)]
pub(super) struct Relists {
    task: JoinHandle<()>,
}

impl Relists {
    /// Lists the containers of a case's sandboxes now and then.
    pub(super) fn begin(runner: &Arc<CaseRunner>) -> Self {
        let runner = runner.clone();
        let task = tokio::spawn(async move {
            let mut period = tokio::time::interval(limits::RELIST_PERIOD);
            // The first tick comes at once, when there is nothing to list yet.
            period.tick().await;
            loop {
                period.tick().await;
                for sandbox in runner.sandboxes_left() {
                    // A list that fails shows nothing; it stands in the history all the same.
                    let _ = list(&runner, sandbox).await;
                }
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

async fn list(runner: &CaseRunner, sandbox: SandboxId) -> Result<Reply, CallFault> {
    let labels = runner.session().labels();
    let request = Request::ListContainers {
        sandbox: Some(sandbox),
        labels,
    };
    runner.call(request).await
}

/// Inspects a pod at rest, as a kubelet does: lists its sandbox and its containers, and reads the
/// status of each. A call that fails shows nothing; it stands in the history all the same.
pub(super) async fn inspect(runner: &CaseRunner, sandbox: SandboxId) {
    let mut labels = runner.session().labels();
    if let Some(uid) = runner.pod_of(&sandbox) {
        labels.insert("io.kubernetes.pod.uid".to_owned(), uid.0);
    }
    let _ = runner.call(Request::ListSandboxes(labels)).await;
    let _ = runner.call(Request::SandboxStatus(sandbox.clone())).await;
    let _ = relist(runner, sandbox).await;
}

/// Lists a sandbox's containers and reads the status of each.
///
/// # Errors
/// If the list fails. A container that is gone meanwhile is no fault: the list and the statuses are
/// different moments.
pub(super) async fn relist(runner: &CaseRunner, sandbox: SandboxId) -> Result<(), CallFault> {
    if let Reply::Containers(listed) = list(runner, sandbox).await? {
        for container in listed {
            let _ = runner.call(Request::ContainerStatus(container.id)).await;
        }
    }
    Ok(())
}
