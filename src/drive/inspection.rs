//! Lists and statuses that a case asks for: of a pod at rest, as a kubelet inspects it, and of pods
//! in doubt. A call that fails shows nothing; it stands in the history all the same.

use std::collections::BTreeSet;

use super::active_case::ActiveCase;
use crate::history::{CallFault, ContainerId, PodUid, Reply, Request, SandboxId};
use crate::host;

/// Inspects a pod at rest, as a kubelet does: lists its sandbox and its containers, and reads the
/// status of each.
pub(super) async fn inspect(case: &ActiveCase, sandbox: SandboxId) {
    let began = host::now();
    let mut labels = case.session.labels();
    if let Some((_, pod)) = case.view.pod_of(&ContainerId::from(&sandbox)) {
        labels.insert("io.kubernetes.pod.uid".to_owned(), pod.uid.to_string());
    }
    let _ = case.call(Request::ListSandboxes(labels)).await;
    let _ = case.call(Request::SandboxStatus(sandbox.clone())).await;
    let _ = list_and_read(case, sandbox).await;
    let took = host::elapsed(began);
    case.session.metrics().pod_relisted(took);
}

/// Lists all that there is of some pods, whether the case knows of it or not. A kubelet's relist
/// lists the sandboxes first, and this is none.
pub(super) async fn list_pods(case: &ActiveCase, pods: &BTreeSet<PodUid>) {
    let labels_of = |pod: &PodUid| {
        let mut labels = case.session.labels();
        labels.insert("io.kubernetes.pod.uid".to_owned(), pod.to_string());
        labels
    };
    for pod in pods {
        let (sandbox, labels) = (None, labels_of(pod));
        let list = Request::ListContainers { sandbox, labels };
        let _ = case.call(list).await;
    }
    for pod in pods {
        let _ = case.call(Request::ListSandboxes(labels_of(pod))).await;
    }
}

/// Lists a sandbox's containers and reads the status of each. Fails if the list fails. A container
/// that is gone meanwhile is no fault: the list and the statuses are different moments.
pub(super) async fn list_and_read(case: &ActiveCase, sandbox: SandboxId) -> Result<(), CallFault> {
    if let Reply::Containers(listed) = case.call(list_request(case, sandbox)).await? {
        for container in listed {
            let _ = case.call(Request::ContainerStatus(container.id)).await;
        }
    }
    Ok(())
}

/// The call that lists a sandbox's containers.
pub(super) fn list_request(case: &ActiveCase, sandbox: SandboxId) -> Request {
    Request::ListContainers {
        sandbox: Some(sandbox),
        labels: case.session.labels(),
    }
}
