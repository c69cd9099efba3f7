//! A cgroup of the run's own for a pod, with a limit of memory, as a kubelet makes one for each.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::time::Instant;

use super::session::Session;
use super::stream_error::StreamError;
use crate::history::{CgroupDriver, Reply, Request, SandboxSpec};
use crate::host::{CgroupError, Kernel, PodCgroup};
use crate::limits;

/// What a pod may use that shows whether it can have a cgroup of ours.
const TRIAL_MEMORY_MIB: u32 = 64;

impl Session {
    /// A new name for a cgroup.
    pub(super) fn new_cgroup(&self) -> PodCgroup {
        let number = self.cgroups.fetch_add(1, Ordering::Relaxed);
        let driver = self.options().cgroup_driver;
        let driver = driver.unwrap_or(CgroupDriver::Cgroupfs);
        PodCgroup::new(&self.options().run, number, driver)
    }

    /// Makes a cgroup of this name, and gives it to a pod.
    pub(super) fn give_cgroup(
        &self,
        cgroup: &PodCgroup,
        memory_mib: u32,
        spec: &mut SandboxSpec,
    ) -> Result<(), CgroupError> {
        let bytes = u64::from(memory_mib) << 20;
        self.options().kernel.make_cgroup(cgroup, bytes)?;
        spec.cgroup_parent = cgroup.parent();
        spec.memory_bytes = Some(bytes);
        Ok(())
    }

    /// Removes a cgroup whose pod is gone. What cannot be removed now is swept at the run's end.
    pub(super) async fn take_cgroup(&self, cgroup: &PodCgroup) {
        let _ = remove(&self.options().kernel, cgroup).await;
    }

    /// Looks where a pod's process is that was made without one, and then where one is that has
    /// one.
    pub(super) async fn lack_of_pod_cgroups(&self) -> Result<Option<String>, StreamError> {
        let (sandbox, _) = self.marker_pod().await?;
        let lack = match self.options().kernel.suits_pod_cgroups(sandbox.as_str()) {
            Err(fault) => Some(fault.to_string()),
            Ok(()) => self.trial_of_cgroup().await.err(),
        };
        Ok(lack.as_deref().map(explain_lack))
    }

    async fn trial_of_cgroup(&self) -> Result<(), String> {
        let cgroup = self.new_cgroup();
        let mut spec = SandboxSpec::clone(&self.sandbox_spec("cgroup", "trial"));
        let given = self.give_cgroup(&cgroup, TRIAL_MEMORY_MIB, &mut spec);
        given.map_err(|fault| fault.to_string())?;
        let found = match self.call(None, Request::RunSandbox(Arc::new(spec))).await {
            Ok(Reply::Sandbox(sandbox)) => {
                let kernel = &self.options().kernel;
                let found = kernel.is_in_cgroup(&cgroup, sandbox.as_str());
                // What is left is swept at the run's end.
                let _ = self.call(None, Request::StopSandbox(sandbox.clone())).await;
                let _ = self.call(None, Request::RemoveSandbox(sandbox)).await;
                found.map_err(|fault| fault.to_string())
            }
            Ok(_) => Err("RunPodSandbox was answered by something else".to_owned()),
            Err(fault) => Err(format!("RunPodSandbox failed: {fault}")),
        };
        self.take_cgroup(&cgroup).await;
        found
    }
}

/// Why no pod can have a cgroup of the suite's, and what to do about it. By default CRI-O has no
/// process in a sandbox, by which the suite would find the sandbox's cgroup.
fn explain_lack(lack: &str) -> String {
    format!(
        "no pod can have a cgroup that the suite has made, as was measured when the run began: \
         {lack}. Run the suite as root in the host's namespaces, on the runtime's node; for CRI-O \
         set `drop_infra_ctr = false`"
    )
}

/// Removes a cgroup, as soon as nothing is left in it: a process that has ended is in its cgroup
/// for some moments more.
pub(super) async fn remove(kernel: &Kernel, cgroup: &PodCgroup) -> Result<(), CgroupError> {
    let until = Instant::now() + limits::SWEEP_WAIT;
    let mut pace = tokio::time::interval(limits::SWEEP_PACE);
    loop {
        pace.tick().await;
        match kernel.remove_cgroup(cgroup) {
            Err(CgroupError::Busy) if Instant::now() < until => {}
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::ProcessError;

    #[test]
    fn a_sandbox_without_a_process_is_reported_with_what_gives_it_one() {
        let missing = CgroupError::from(ProcessError::Missing("beef".to_owned()));
        let text = explain_lack(&missing.to_string());
        let cause = "began: no process of this host is in a cgroup of beef. Run";
        for part in [cause, "as root", "for CRI-O set `drop_infra_ctr = false`"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
