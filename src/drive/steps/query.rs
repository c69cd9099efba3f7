//! What steps ask the runtime of a sandbox or container.

use super::Abort;
use crate::case::Query;
use crate::drive::active_case::ActiveCase;
use crate::history::{ContainerId, Request};

/// The calls by which a case asks about a sandbox or container.
pub(super) fn requests(
    case: &ActiveCase,
    id: &ContainerId,
    queries: &[Query],
) -> Result<Vec<Request>, Abort> {
    let pod = case.view.pod_of(id);
    let (sandbox, spec) = pod.ok_or_else(|| Abort::unbound(id.as_str()))?;
    let labels = case.session.labels();
    let request = |query: &Query| match query {
        Query::Containers => Request::ListContainers {
            sandbox: Some(sandbox.clone()),
            labels: labels.clone(),
        },
        Query::ContainerStatus => Request::ContainerStatus(id.clone()),
        Query::Sandboxes => Request::ListSandboxes(spec.labels.clone()),
        Query::SandboxStatus => Request::SandboxStatus(sandbox.clone()),
    };
    Ok(queries.iter().map(request).collect())
}

/// Sends calls, one after the other. One that fails stands in the history all the same.
pub(super) async fn ask(case: &ActiveCase, requests: &[Request]) {
    for request in requests {
        let _ = case.call(request.clone()).await;
    }
}
