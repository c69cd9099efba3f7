//! Whether sandboxes can have a network of their own.

use std::sync::Arc;

use super::Unavailable;
use super::runtime_status;
use crate::drive::session::Session;
use crate::history::{Reply, Request, SandboxSpec, SandboxState};

/// A network is there if the runtime says so, and a sandbox that wants one gets an address.
pub(super) async fn probe_network(session: &Session) -> Result<(), Unavailable> {
    let is_ready = |condition: &String| condition == "NetworkReady";
    let status = runtime_status(session).await;
    if !status.is_ok_and(|status| status.conditions.iter().any(is_ready)) {
        return Err(Unavailable::because(
            "the runtime's Status does not report NetworkReady: it has no CNI network; for a \
             private containerd, ci/containerd up has --cni bridge",
        ));
    }
    let spec = SandboxSpec {
        own_network: true,
        ..SandboxSpec::clone(&session.sandbox_spec("network", "trial"))
    };
    let run = Request::RunSandbox(Arc::new(spec));
    let sandbox = match session.call(None, run).await {
        Ok(Reply::Sandbox(sandbox)) => sandbox,
        Ok(_) => {
            return Err("RunPodSandbox was answered by something else"
                .to_owned()
                .into());
        }
        Err(fault) => {
            return Err(format!("no sandbox can have a network of its own: {fault}").into());
        }
    };
    let status = Request::SandboxStatus(sandbox.clone());
    let status = session.call(None, status).await;
    // Leftovers are swept at the end of the run.
    let stop = Request::StopSandbox(sandbox.clone());
    let _ = session.call(None, stop).await;
    let _ = session.call(None, Request::RemoveSandbox(sandbox)).await;
    match status {
        Ok(Reply::SandboxStatus(report))
            if report.status.state == SandboxState::Ready && !report.status.ips.is_empty() =>
        {
            Ok(())
        }
        Ok(_) => Err(Unavailable::because(
            "a sandbox with a network of its own gets no address",
        )),
        Err(fault) => Err(format!("PodSandboxStatus failed: {fault}").into()),
    }
}
