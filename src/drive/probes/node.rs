//! Needs of the node, its kernel and processes that can be found on it, and of the user: commands,
//! allowances and handlers.

use std::collections::BTreeSet;
use std::io;

use super::{Unavailable, end_sandbox, look_at_container, measured, run_sandbox};
use crate::drive::options::Allowance;
use crate::drive::session::Session;
use crate::drive::sweep::foreign_pods;
use crate::history::{Holder, Host, SandboxSpec};
use crate::host::RuntimeProcess;
use crate::limits;

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

/// Whether a host's containers have cgroups of version 2, which alone have the needed files.
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
        "Run the suite as root in the host's pid namespace, on the runtime's node; a monitor is the \
         parent of a container's process, and names its id or its sandbox's",
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

pub(super) fn clock_steps(session: &Session) -> Result<(), String> {
    let options = session.options();
    let is_allowed = options.asked.allow.contains(&Allowance::ClockSteps);
    if options.kernel.is_simulated() || is_allowed {
        return Ok(());
    }
    Err(
        "the host's wall clock would be set 10 s back and forward for a moment, which all that \
         runs there sees; on a node that can bear it, as root, allow it by --allow clock-steps"
            .to_owned(),
    )
}

pub(super) fn faulty_handler(session: &Session) -> Result<(), String> {
    given(
        session.options().asked.hooks.faulty_handler(),
        "the low-level runtime has to die on demand: configure a runtime handler with \
         ci/lib/faulty-runtime, as src/run/README.md shows, and name it by --faulty-handler",
    )
    .map(drop)
}

pub(super) fn outside_cri(session: &Session) -> Result<(), String> {
    given(
        session.options().asked.hooks.outside_cri(),
        "no call of the CRI makes such a container: give a command that does by --outside-cri, \
         such as 'ctr --namespace beside run --rm --null-io IMAGE outsider COMMAND'; \
         src/run/README.md says more",
    )
    .map(drop)
}

fn given<T>(hook: Option<T>, advice: &str) -> Result<T, String> {
    hook.ok_or_else(|| advice.to_owned())
}

pub(super) async fn runtime_log(session: &Session) -> Result<(), String> {
    let options = session.options();
    let command = given(
        options.asked.hooks.runtime_log(),
        "the log of the runtime is out of sight: say how to print it by --runtime-log-cmd, or by \
         --runtime-unit where systemd runs the runtime",
    )?;
    let bound = session.scaled(limits::LOG_WAIT);
    match options.kernel.log_lines(Some(&command), bound).await {
        Ok(0) if !options.kernel.is_simulated() => {
            Err("the command that prints the log of the runtime prints nothing".to_owned())
        }
        Ok(_) => Ok(()),
        Err(fault) => Err(format!(
            "the command that prints the log of the runtime: {fault}"
        )),
    }
}

pub(super) async fn runtime_process(session: &Session) -> Result<(), String> {
    let options = session.options();
    let (kernel, socket) = (&options.kernel, options.endpoint.socket());
    for holder in [Holder::Runtime, Holder::Pods] {
        let counted = kernel.resources(socket, holder, &BTreeSet::new()).await;
        measured(
            counted.map(drop),
            "what the process of the runtime holds is out of sight",
            "Run the suite as root in the host's pid namespace, on the runtime's node, and let \
             the runtime make its socket itself",
        )?;
    }
    Ok(())
}

pub(super) async fn runtime_kill(session: &Session) -> Result<(), String> {
    let options = session.options();
    let commands = options.asked.hooks.runtime_commands();
    if options.kernel.is_simulated() || commands.is_some_and(|commands| commands.kill.is_some()) {
        return Ok(());
    }
    let missing = match options.endpoint.socket() {
        Some(socket) => match RuntimeProcess::find(socket).await {
            Ok(_) => return Ok(()),
            Err(missing) => missing.to_string(),
        },
        None => "it has no socket on this host".to_owned(),
    };
    Err(format!(
        "the runtime has to be killed, and its process is out of reach: {missing}. Say how by \
         --runtime-kill-cmd, or by --runtime-unit where systemd runs the runtime"
    ))
}

/// Whether the runtime can be restarted now.
pub(in crate::drive) async fn may_restart(session: &Session) -> Result<(), String> {
    let options = session.options();
    given(
        options.asked.hooks.runtime_commands(),
        "the runtime has to be stopped and started: say how by --runtime-stop-cmd and \
         --runtime-start-cmd, or by --runtime-unit where systemd runs it",
    )?;
    let allow = &options.asked.allow;
    let anywhere = allow.contains(&Allowance::DisruptionWithForeignPods);
    if options.kernel.is_simulated() || anywhere {
        return Ok(());
    }
    if !allow.contains(&Allowance::Disruption) {
        return Err(
            "the runtime would be stopped and started again, and nothing on this node can use it \
             meanwhile; where that does no harm, allow it by --allow disruption"
                .to_owned(),
        );
    }
    match foreign_pods(session.client()).await {
        Ok(pods) if pods.all == 0 => Ok(()),
        Ok(pods) => Err(format!(
            "the runtime would be stopped and started again under pods of others ({}); where that \
             does them no harm, allow it by --allow disruption-with-foreign-pods",
            pods.all
        )),
        Err(fault) => Err(format!(
            "whether it has pods of others cannot be found out: {fault}"
        )),
    }
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
