//! Needs of the node: its kernel, and processes that can be found on it.

use std::io;

use super::trial::{end_sandbox, look_at_container, run_sandbox};
use super::{Unavailable, measured};
use crate::drive::session::Session;
use crate::history::{Host, SandboxSpec};

/// How the process of a sandbox can be found.
const FIND_SANDBOX: &str = "By default CRI-O gives sandboxes no process: set \
    `drop_infra_ctr = false`. Else run the suite as root in the host's namespaces, on the runtime's node";

/// The limit of memory of the trial pod.
const TRIAL_MEMORY_MIB: u32 = 64;

pub(super) fn memory_limit(session: &Session) -> Result<(), String> {
    let kills = session.options().kernel.oom_kills();
    let unread = |fault| format!("the kernel's count of OOM kills cannot be read: {fault}");
    kills.map(drop).map_err(unread)
}

pub(super) fn cgroup_v2(session: &Session) -> Result<(), String> {
    let host = session.options().kernel.host();
    host.map_or(Ok(()), |host| has_cgroup_v2(&host))
}

/// Whether a host's containers have cgroups of version 2, whose files alone have what is needed.
fn has_cgroup_v2(host: &Host) -> Result<(), String> {
    let mounted = match host.cgroup.as_deref() {
        Some("2") => return Ok(()),
        Some("hybrid") => "it has both versions, of which containers then have version 1",
        Some(_) => "it has version 1",
        None => "it shows none",
    };
    Err(format!(
        "the host has to have cgroups of version 2 alone, and {mounted}; the kernel parameter \
         systemd.unified_cgroup_hierarchy=1, or cgroup_no_v1=all, boots it so"
    ))
}

pub(super) fn core_pipe(session: &Session) -> Result<(), String> {
    holds_dying(session.options().kernel.core_pattern())
}

/// Whether a process that dies of a fault is not gone at once on a host of this `core_pattern`.
fn holds_dying(pattern: io::Result<String>) -> Result<(), String> {
    let found = match pattern {
        Ok(pattern) if pattern.starts_with('|') => return Ok(()),
        Ok(pattern) => format!("is `{}`", pattern.trim_end()),
        Err(fault) => format!("cannot be read: {fault}"),
    };
    Err(format!(
        "the host's core dumps must go to a program, so that a dying process waits for it, and \
         /proc/sys/kernel/core_pattern {found}; a crash handler such as systemd-coredump sets it \
         to a pipe, as core(5) describes"
    ))
}

pub(super) async fn host_pid(session: &Session) -> Result<(), Unavailable> {
    let (sandbox, _) = session.marker_pod().await?;
    let own = session.client().own(sandbox.as_str());
    let found = session.options().kernel.check_process(&own);
    let lack = "the own processes of sandboxes are out of reach";
    Ok(measured(found, lack, FIND_SANDBOX)?)
}

/// Looks for the process of a trial container.
pub(super) async fn container_pid(session: &Session) -> Result<(), String> {
    let kernel = &session.options().kernel;
    let look = look_at_container(session, "in-sight", |trial| {
        match kernel.has_process(&trial.container) {
            Ok(true) => Ok(()),
            Ok(false) => Err("no process of this host is in a cgroup of one that runs".to_owned()),
            Err(fault) => Err(fault.to_string()),
        }
    });
    measured(
        look.await,
        "the processes of containers are out of sight",
        "Run the suite as root in the host's pid namespace, on the runtime's node",
    )
}

/// Looks for the monitor of a trial container.
pub(super) async fn monitor(session: &Session) -> Result<(), String> {
    let kernel = &session.options().kernel;
    let look = look_at_container(session, "monitored", |trial| kernel.check_monitor(trial));
    measured(
        look.await,
        "the runtime's monitors of containers are out of reach",
        "Run the suite as root in the host's pid namespace, on the runtime's node; \
         containerd-shim and conmon are known",
    )
}

/// Looks at where the monitor of a trial container writes.
pub(super) async fn small_disk(session: &Session) -> Result<(), String> {
    let kernel = &session.options().kernel;
    let look = look_at_container(session, "monitored", |trial| kernel.check_disk(trial));
    measured(
        look.await,
        "the runtime's monitors cannot be left without room",
        "Mount a small tmpfs there before the runtime starts: on CRI-O's container_exits_dir, or \
         as containerd's state directory",
    )
}

/// Looks where the process of a pod without a cgroup of the suite's is, and then where that of a
/// pod with one is.
pub(super) async fn pod_cgroup(session: &Session) -> Result<(), Unavailable> {
    let (sandbox, _) = session.marker_pod().await?;
    let own = session.client().own(sandbox.as_str());
    let probed = match session.options().kernel.check_pod_cgroups(&own) {
        Err(fault) => Err(fault.to_string()),
        Ok(()) => try_cgroup(session).await,
    };
    Ok(can_have_cgroup(probed)?)
}

/// A cgroup of the suite's is found by a process of the sandbox.
fn can_have_cgroup(probed: Result<(), String>) -> Result<(), String> {
    let lack = "no pod can have a cgroup that the suite has made";
    measured(probed, lack, FIND_SANDBOX)
}

async fn try_cgroup(session: &Session) -> Result<(), String> {
    let cgroup = session.new_cgroup();
    let mut spec = SandboxSpec::clone(&session.sandbox_spec("cgroup", "trial"));
    let given = session.give_cgroup(&cgroup, TRIAL_MEMORY_MIB, &mut spec);
    given.map_err(|fault| fault.to_string())?;
    let found = match run_sandbox(session, spec).await {
        Ok(sandbox) => {
            let own = session.client().own(sandbox.as_str());
            let found = session.options().kernel.is_in_cgroup(&cgroup, &own);
            end_sandbox(session, sandbox).await;
            found.map_err(|fault| fault.to_string())
        }
        Err(fault) => Err(format!("RunPodSandbox failed: {fault}")),
    };
    session.remove_cgroup(&cgroup).await;
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{CgroupError, ProcessError};

    #[track_caller]
    fn check(cgroup: Option<&str>, lack: Option<&str>) {
        let host = Host {
            cgroup: cgroup.map(str::to_owned),
            ..Host::default()
        };
        let found = has_cgroup_v2(&host).err();
        assert_eq!(found.is_some(), lack.is_some(), "{found:?}");
        assert!(found.unwrap_or_default().contains(lack.unwrap_or_default()));
    }

    #[test]
    fn version_2_alone_will_do() {
        check(Some("2"), None);
        check(Some("1"), Some("it has version 1;"));
        check(Some("hybrid"), Some("both versions"));
        check(None, Some("none"));
    }

    #[test]
    fn core_dumps_go_to_a_program_or_to_a_file() {
        let lack = |pattern: &str| holds_dying(Ok(pattern.to_owned())).err();
        assert_eq!(lack("|/usr/bin/handler %P\n"), None);
        let file = lack("core\n").expect("a file holds nobody up");
        assert!(file.contains("is `core`"), "{file}");
        assert!(lack("core.%e|x").is_some());
        let unread = holds_dying(Err(io::ErrorKind::NotFound.into())).err();
        assert!(unread.is_some_and(|unread| unread.contains("cannot be read")));
    }

    #[test]
    fn a_sandbox_without_a_process_is_reported_with_what_gives_it_one() {
        let missing = CgroupError::from(ProcessError::Missing("beef".to_owned()));
        let text = can_have_cgroup(Err(missing.to_string())).unwrap_err();
        let cause = "began: no process of this host is in a cgroup of beef. By default CRI-O";
        let parts = [cause, "`drop_infra_ctr = false`", "as root"].map(|part| text.find(part));
        assert!(parts.is_sorted() && parts[0].is_some(), "{text}");
    }
}
