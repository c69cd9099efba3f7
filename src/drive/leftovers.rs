//! Ending processes and removing cgroups on the host that the calls of the CRI do not reach: those
//! of objects that a run has made and removed, or cannot remove.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

use crate::host::{CgroupError, Kernel, Leftover, OwnIds, PodCgroup};
use crate::limits;

/// The outcome for processes that were still alive.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// Those that were ended, one sentence each.
    pub(super) ended: Vec<String>,
    /// Those that could not be, one sentence each.
    pub(super) left: Vec<String>,
}

/// Ends the processes of these containers and sandboxes, and removes the cgroups that are empty
/// then. If those are removed, their processes have a while to end by themselves.
pub(super) async fn end(kernel: &Kernel, ids: &OwnIds, removed: bool) -> Ended {
    let patience = if removed {
        limits::PROCESS_END
    } else {
        Duration::ZERO
    };
    let found = after(kernel, ids, patience).await;
    for process in &found {
        // One that cannot be killed is found again.
        let _ = process.kill();
    }
    let left = if found.is_empty() {
        BTreeSet::new()
    } else {
        let left = after(kernel, ids, limits::KILL_WAIT).await;
        left.iter().map(ToString::to_string).collect()
    };
    remove_cgroups(kernel, ids, !found.is_empty()).await;
    let found = found.iter().map(ToString::to_string);
    Ended {
        ended: found.filter(|process| !left.contains(process)).collect(),
        left: left.into_iter().collect(),
    }
}

/// Removes the empty cgroups. Those of processes that were just killed are in use for a moment.
async fn remove_cgroups(kernel: &Kernel, ids: &OwnIds, killed: bool) {
    let until = Instant::now() + limits::CGROUP_RELEASE;
    let mut pace = tokio::time::interval(limits::PROCESS_LOOK);
    loop {
        pace.tick().await;
        if kernel.remove_empty_cgroups(ids) || !killed || Instant::now() >= until {
            return;
        }
    }
}

/// The processes that are left once all have ended, or after this time.
async fn after(kernel: &Kernel, ids: &OwnIds, patience: Duration) -> Vec<Leftover> {
    let until = Instant::now() + patience;
    let mut pace = tokio::time::interval(limits::PROCESS_LOOK);
    loop {
        pace.tick().await;
        let found = kernel.leftovers(ids);
        if found.is_empty() || Instant::now() >= until {
            return found;
        }
    }
}

/// Removes a cgroup, as soon as nothing is left in it: a process that has ended is in its cgroup
/// for some moments more.
pub(super) async fn remove_cgroup(kernel: &Kernel, cgroup: &PodCgroup) -> Result<(), CgroupError> {
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
