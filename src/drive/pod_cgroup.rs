//! A cgroup of the run's own for a pod, with a limit of memory, as a kubelet makes one for each.

use std::sync::atomic::Ordering;

use tokio::time::Instant;

use super::session::Session;
use crate::history::{CgroupDriver, SandboxSpec};
use crate::host::{CgroupError, Kernel, PodCgroup};
use crate::limits;

impl Session {
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
    pub(super) async fn remove_cgroup(&self, cgroup: &PodCgroup) {
        let _ = remove(&self.options().kernel, cgroup).await;
    }
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
