//! Whether a pod can have a cgroup that the suite has made on this host.

use std::sync::Arc;

use super::Unavailable;
use super::host_pid::FIND_SANDBOX;
use crate::drive::session::Session;
use crate::history::{Reply, Request, SandboxSpec};

/// The limit of memory of the trial pod.
const TRIAL_MEMORY_MIB: u32 = 64;

/// Looks where the process of a pod without such a cgroup is, and then where that of a pod with
/// one is.
pub(super) async fn probe_pod_cgroup(session: &Session) -> Result<(), Unavailable> {
    let (sandbox, _) = session.marker_pod().await?;
    let own = session.client().own(sandbox.as_str());
    let suits = session.options().kernel.check_pod_cgroups(&own);
    let probed = match suits {
        Err(fault) => Err(fault.to_string()),
        Ok(()) => try_cgroup(session).await,
    };
    Ok(probed.map_err(|lack| explain(&lack))?)
}

async fn try_cgroup(session: &Session) -> Result<(), String> {
    let cgroup = session.new_cgroup();
    let mut spec = SandboxSpec::clone(&session.sandbox_spec("cgroup", "trial"));
    let given = session.give_cgroup(&cgroup, TRIAL_MEMORY_MIB, &mut spec);
    given.map_err(|fault| fault.to_string())?;
    let run = Request::RunSandbox(Arc::new(spec));
    let found = match session.call(None, run).await {
        Ok(Reply::Sandbox(sandbox)) => {
            let kernel = &session.options().kernel;
            let own = session.client().own(sandbox.as_str());
            let found = kernel.is_in_cgroup(&cgroup, &own);
            // Leftovers are swept at the end of the run.
            let stop = Request::StopSandbox(sandbox.clone());
            let _ = session.call(None, stop).await;
            let _ = session.call(None, Request::RemoveSandbox(sandbox)).await;
            found.map_err(|fault| fault.to_string())
        }
        Ok(_) => Err("RunPodSandbox was answered by something else".to_owned()),
        Err(fault) => Err(format!("RunPodSandbox failed: {fault}")),
    };
    session.remove_cgroup(&cgroup).await;
    found
}

/// Why no pod can have a cgroup of the suite's: it is found by a process of the sandbox.
fn explain(lack: &str) -> String {
    format!(
        "no pod can have a cgroup that the suite has made, as was measured when the run began: \
         {lack}. {FIND_SANDBOX}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{CgroupError, ProcessError};

    #[test]
    fn a_sandbox_without_a_process_is_reported_with_what_gives_it_one() {
        let missing = CgroupError::from(ProcessError::Missing("beef".to_owned()));
        let text = explain(&missing.to_string());
        let cause = "began: no process of this host is in a cgroup of beef. By default CRI-O";
        let parts = [cause, "`drop_infra_ctr = false`", "as root"].map(|part| text.find(part));
        assert!(parts.is_sorted() && parts[0].is_some(), "{text}");
    }
}
