//! Whether lists can be had as streams (KEP-5825).

use super::Unavailable;
use crate::drive::session::Session;
use crate::history::{ContainerFilter, Request, SandboxFilter};

pub(super) async fn probe_streamed_lists(session: &Session) -> Result<(), Unavailable> {
    let sandboxes = SandboxFilter {
        labels: session.labels(),
        streamed: true,
        ..SandboxFilter::default()
    };
    let containers = ContainerFilter {
        labels: session.labels(),
        streamed: true,
        ..ContainerFilter::default()
    };
    for request in [
        Request::FindSandboxes(sandboxes),
        Request::FindContainers(containers),
    ] {
        let method = request.method();
        let unavailable = |code| {
            format!("{method} is not to be had ({code}); it came with Kubernetes 1.36 (KEP-5825)")
        };
        let answer = session.call(None, request).await;
        answer.map_err(|fault| unavailable(fault.code))?;
    }
    Ok(())
}
