//! What a runtime need not have, found out when a run begins: only what its cases need.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::options::Allowance;
use super::session::Session;
use super::stream_error::StreamError;
use crate::case::Need;
use crate::history::{
    Audience, ContainerFilter, ContainerSpec, ContainerState, Host, Offers, Reply, Request,
    RuntimeStatus, SandboxFilter, SandboxSpec, SandboxState, Signal,
};
use crate::host::Kernel;
use crate::workload::Workload;

/// Of what was looked for: why a runtime, or its node, does not have it, if it does not.
pub(super) type Lacks = BTreeMap<Need, Option<String>>;

/// What a trial container exits with by the signal that it waits for.
const HEEDED_CODE: u8 = 42;
const HEEDED: i32 = HEEDED_CODE as i32;
/// What it exits with by SIGTERM instead.
const TERMINATED: i32 = 143;
/// How long a stop of a trial container waits for its end before it is killed.
const SIGNAL_GRACE: Duration = Duration::from_secs(2);
/// How many trial containers may miss their signal.
const SIGNAL_TRIALS: u32 = 3;

/// What a container showed that was stopped, with a stop signal of its own.
#[derive(Clone, Copy, Debug, Default)]
struct SignalTrial {
    /// Whether `ContainerStatus` reports the signal.
    is_reported: bool,
    exit_code: Option<i32>,
}

impl Session {
    /// Finds out whether the runtime has all of this.
    ///
    /// # Errors
    /// If the event stream cannot be relied on.
    pub async fn find_offers(&self, needs: &BTreeSet<Need>) -> Result<(), StreamError> {
        let mut lacks = Lacks::new();
        for need in needs {
            let lack = match need {
                Need::Handlers => self.lack_of_handlers().await,
                Need::Timestamp => self.lack_of_timestamps().await,
                Need::StreamedLists => self.lack_of_streams().await,
                Need::Network => self.lack_of_network().await,
                Need::StopSignal => self.lack_of_stop_signals().await,
                Need::Broadcast => self.lack_of_broadcast().await?,
                Need::HostPid => self.lack_of_processes().await?,
                Need::ContainerPid => self.lack_of_container_processes().await,
                Need::OutsideCri => self.lack_of_outsiders(),
                Need::FaultyHandler => self.lack_of_faults(),
                Need::RuntimeRestart => self.lack_of_restarts().await,
                Need::CorePipe => lack_of_core_pipe(self.options().kernel.core_pattern()),
                Need::MemoryLimit => self.lack_of_counts(),
                Need::ClockSteps => self.lack_of_clock_steps(),
                Need::NoEvents => Some(
                    "the runtime offers events, and this is about one that does not; switch them \
                     off, as CRI-O's `enable_pod_events = false` does, and run it again"
                        .to_owned(),
                ),
                Need::PodCgroup => self.lack_of_pod_cgroups().await?,
                Need::CgroupV2 => {
                    let host = self.options().kernel.host();
                    host.and_then(|host| lack_of_cgroup_v2(&host))
                }
            };
            lacks.insert(*need, lack);
        }
        let _ = self.lacks.set(lacks);
        Ok(())
    }

    /// Goes on without an event stream, for the cases alone that are about having none.
    pub fn do_without_events(&self, reason: String) {
        let _ = self.lacks.set(Lacks::from([(Need::NoEvents, None)]));
        let _ = self.no_events.set(reason);
    }

    /// Why there is no event stream, if the session does without.
    #[must_use]
    pub fn no_events(&self) -> Option<&str> {
        self.no_events.get().map(String::as_str)
    }

    /// Why a case with these needs cannot run, if that was found out.
    #[must_use]
    pub fn lack(&self, needs: &[Need]) -> Option<String> {
        if let Some(reason) = self.no_events()
            && !needs.contains(&Need::NoEvents)
        {
            return Some(reason.to_owned());
        }
        let lacks = self.lacks.get()?;
        needs.iter().find_map(|need| lacks.get(need)?.clone())
    }

    /// Who gets an event, if that was found out.
    #[must_use]
    pub fn audience(&self) -> Option<Audience> {
        let lack = self.lacks.get()?.get(&Need::Broadcast)?;
        Some(lack.as_ref().map_or(Audience::Everyone, |_| Audience::One))
    }

    /// What else was found out.
    #[must_use]
    pub fn offers(&self) -> Offers {
        let has = |need| Some(self.lacks.get()?.get(&need)?.is_none());
        Offers {
            events: has(Need::NoEvents).map(|none| !none),
            streamed_lists: has(Need::StreamedLists),
            handlers: has(Need::Handlers),
            network: has(Need::Network),
            stop_signal: self.sends_stop_signals.get().copied(),
        }
    }

    async fn status(&self) -> Result<RuntimeStatus, String> {
        match self.call(None, Request::RuntimeStatus).await {
            Ok(Reply::RuntimeStatus(status)) => Ok(status),
            Ok(_) => Err("Status was answered by something else".to_owned()),
            Err(fault) => Err(format!("Status failed: {fault}")),
        }
    }

    fn lack_of_counts(&self) -> Option<String> {
        let fault = self.options().kernel.oom_kills().err()?;
        Some(format!(
            "the kernel's count of OOM kills cannot be read: {fault}"
        ))
    }

    fn lack_of_clock_steps(&self) -> Option<String> {
        let options = self.options();
        let simulated = matches!(options.kernel, Kernel::Simulated(_));
        let allowed = options.asked.allow.contains(&Allowance::ClockSteps) || simulated;
        (!allowed).then(|| {
            "the host's wall clock would be set 10 s back and forward for a moment, which all that \
             runs there sees; on a node that can bear it, as root, allow it by --allow clock-steps"
                .to_owned()
        })
    }

    fn lack_of_outsiders(&self) -> Option<String> {
        let command = self.options().asked.hooks.outside_cri();
        command.is_none().then(|| {
            "no call of the CRI makes such a container: give a command that does by --outside-cri, \
             such as 'ctr --namespace beside run --rm --null-io IMAGE outsider COMMAND'; \
             src/run/README.md says more"
                .to_owned()
        })
    }

    fn lack_of_faults(&self) -> Option<String> {
        let handler = self.options().asked.hooks.faulty_handler();
        handler.is_none().then(|| {
            "the low-level runtime has to die on demand: configure a runtime handler with \
             ci/lib/faulty-runtime, as src/run/README.md shows, and name it by --faulty-handler"
                .to_owned()
        })
    }

    async fn lack_of_broadcast(&self) -> Result<Option<String>, StreamError> {
        let audience = self.find_audience().await?;
        Ok((audience == Audience::One).then(|| {
            "the runtime gives each event to one subscriber alone, as was measured when the run \
             began: a second one would take events from the first"
                .to_owned()
        }))
    }

    async fn lack_of_processes(&self) -> Result<Option<String>, StreamError> {
        let (sandbox, _) = self.marker_pod().await?;
        let found = self.options().kernel.finds_process_of(sandbox.as_str());
        Ok(found.err().map(|missing| {
            format!(
                "the own processes of sandboxes are out of reach, as was measured when the run \
                 began: {missing}. Run the suite as root in the host's pid namespace, on the \
                 runtime's node; for CRI-O set `drop_infra_ctr = false`"
            )
        }))
    }

    /// The process of a trial container is seen, or what is in the way.
    async fn lack_of_container_processes(&self) -> Option<String> {
        let missing = match self.sees_process_of_container().await {
            Ok(true) => return None,
            Ok(false) => "no process of this host is in a cgroup of one that runs".to_owned(),
            Err(fault) => fault,
        };
        Some(format!(
            "the processes of containers are out of sight, as was measured when the run began: \
             {missing}. Run the suite as root in the host's pid namespace, on the runtime's node"
        ))
    }

    async fn sees_process_of_container(&self) -> Result<bool, String> {
        let (sandbox, pod) = self.marker_pod().await.map_err(|fault| fault.to_string())?;
        let spec = self.container_spec((&sandbox, &pod), "in-sight", 0, &Workload::Obey);
        let create = Request::CreateContainer(Arc::new(spec));
        let refused = |fault| format!("no trial container can be made: {fault}");
        let Reply::Container(container) = self.call(None, create).await.map_err(refused)? else {
            return Err("CreateContainer was answered by something else".to_owned());
        };
        let start = Request::StartContainer(container.clone());
        let failed = |fault| format!("the trial container cannot be started: {fault}");
        self.call(None, start).await.map_err(failed)?;
        let seen = self.options().kernel.has_process_of(container.as_str());
        let stop = Request::StopContainer {
            container: container.clone(),
            grace: Duration::ZERO,
        };
        // What is left is swept at the run's end.
        let _ = self.call(None, stop).await;
        let _ = self.call(None, Request::RemoveContainer(container)).await;
        seen.map_err(|fault| fault.to_string())
    }

    async fn lack_of_handlers(&self) -> Option<String> {
        let status = match self.status().await {
            Ok(status) => status,
            Err(fault) => return Some(fault),
        };
        let named = status.handlers.iter().filter(|name| !name.is_empty());
        (named.count() < 2).then(|| {
            "the runtime's Status does not tell of several runtime handlers; configure another one \
             to have its events tested, or test one by --runtime-handler"
                .to_owned()
        })
    }

    async fn lack_of_timestamps(&self) -> Option<String> {
        let pod = match self.marker_pod().await {
            Ok((sandbox, _)) => sandbox,
            Err(fault) => return Some(fault.to_string()),
        };
        match self.call(None, Request::SandboxStatus(pod)).await {
            Ok(Reply::SandboxStatus(report)) if report.timestamp.0 != 0 => None,
            Ok(_) => Some(
                "PodSandboxStatus has no timestamp, which a runtime need not give; CRI-O has one \
                 where enable_pod_events is set"
                    .to_owned(),
            ),
            Err(fault) => Some(format!("PodSandboxStatus failed: {fault}")),
        }
    }

    async fn lack_of_streams(&self) -> Option<String> {
        let sandboxes = SandboxFilter {
            labels: self.labels(),
            streamed: true,
            ..SandboxFilter::default()
        };
        let containers = ContainerFilter {
            labels: self.labels(),
            streamed: true,
            ..ContainerFilter::default()
        };
        for request in [
            Request::FindSandboxes(sandboxes),
            Request::FindContainers(containers),
        ] {
            let method = request.method();
            if let Err(fault) = self.call(None, request).await {
                return Some(format!(
                    "{method} is not to be had ({}); it came with Kubernetes 1.36 (KEP-5825)",
                    fault.code
                ));
            }
        }
        None
    }

    /// A runtime knows a container's stop signal if it reports it in the container's status, or if
    /// a container ends by it that has another exit code for SIGTERM: CRI-O does not report it.
    async fn lack_of_stop_signals(&self) -> Option<String> {
        let mut is_reported = false;
        for attempt in 0..SIGNAL_TRIALS {
            let trial = match self.try_stop_signal(attempt).await {
                Ok(trial) => trial,
                Err(fault) => return Some(fault),
            };
            is_reported |= trial.is_reported;
            let sent = match trial.exit_code {
                Some(HEEDED) => true,
                Some(TERMINATED) => false,
                // A signal before the program has set how it takes it is lost.
                _ => continue,
            };
            let _ = self.sends_stop_signals.set(sent);
            return (!sent && !is_reported).then(|| {
                "a stop sends SIGTERM whatever stop signal the container was given, as was \
                 measured when the run began: the runtime does not know this field of the CRI, \
                 which came with Kubernetes 1.33 (KEP-4960), and to containerd with \
                 containerd/containerd#11774"
                    .to_owned()
            });
        }
        (!is_reported).then(|| {
            format!(
                "which signal a stop sends could not be measured when the run began: it was lost \
                 in {SIGNAL_TRIALS} of {SIGNAL_TRIALS} containers"
            )
        })
    }

    /// Stops a trial container that has a stop signal of its own.
    async fn try_stop_signal(&self, attempt: u32) -> Result<SignalTrial, String> {
        let (sandbox, pod) = self.marker_pod().await.map_err(|fault| fault.to_string())?;
        let heed = Workload::Heed {
            signal: 10,
            code: HEEDED_CODE,
        };
        let spec = ContainerSpec {
            stop_signal: Signal::USER_1,
            ..self.container_spec((&sandbox, &pod), "stop-signal", attempt, &heed)
        };
        let create = Request::CreateContainer(Arc::new(spec));
        let refused = |fault| format!("no container can have a stop signal: {fault}");
        let Reply::Container(container) = self.call(None, create).await.map_err(refused)? else {
            return Err("CreateContainer was answered by something else".to_owned());
        };
        let mut trial = SignalTrial::default();
        for request in [
            Request::StartContainer(container.clone()),
            Request::StopContainer {
                container: container.clone(),
                grace: SIGNAL_GRACE,
            },
            Request::ContainerStatus(container.clone()),
        ] {
            let method = request.method();
            let failed = |fault| format!("{method} of a container with a stop signal: {fault}");
            if let Reply::ContainerStatus(report) =
                self.call(None, request).await.map_err(failed)?
            {
                let exited = report.status.state == ContainerState::Exited;
                trial = SignalTrial {
                    is_reported: report.stop_signal == Signal::USER_1,
                    exit_code: exited.then_some(report.status.exit_code),
                };
            }
        }
        // What is left is swept at the run's end.
        let _ = self.call(None, Request::RemoveContainer(container)).await;
        Ok(trial)
    }

    /// A network is there if the runtime says so, and a sandbox that wants one gets an address.
    async fn lack_of_network(&self) -> Option<String> {
        let ready = self.status().await;
        if !ready.is_ok_and(|status| status.conditions.iter().any(|it| it == "NetworkReady")) {
            return Some(
                "the runtime's Status does not tell NetworkReady: it has no CNI network; for a \
                 private containerd, ci/containerd up has --cni bridge"
                    .to_owned(),
            );
        }
        let spec = SandboxSpec {
            own_network: true,
            ..SandboxSpec::clone(&self.sandbox_spec("network", "trial"))
        };
        let run = Request::RunSandbox(Arc::new(spec));
        let sandbox = match self.call(None, run).await {
            Ok(Reply::Sandbox(sandbox)) => sandbox,
            Ok(_) => return Some("RunPodSandbox was answered by something else".to_owned()),
            Err(fault) => {
                return Some(format!("no sandbox can have a network of its own: {fault}"));
            }
        };
        let told = self
            .call(None, Request::SandboxStatus(sandbox.clone()))
            .await;
        // What is left is swept at the run's end.
        let _ = self.call(None, Request::StopSandbox(sandbox.clone())).await;
        let _ = self.call(None, Request::RemoveSandbox(sandbox)).await;
        match told {
            Ok(Reply::SandboxStatus(report))
                if report.status.state == SandboxState::Ready && !report.status.ips.is_empty() =>
            {
                None
            }
            Ok(_) => Some("a sandbox with a network of its own gets no address".to_owned()),
            Err(fault) => Some(format!("PodSandboxStatus failed: {fault}")),
        }
    }
}

/// Why a process that dies of a fault is gone at once on a host of this `core_pattern`.
fn lack_of_core_pipe(pattern: io::Result<String>) -> Option<String> {
    let found = match pattern {
        Ok(pattern) if pattern.starts_with('|') => return None,
        Ok(pattern) => format!("is `{}`", pattern.trim_end()),
        Err(fault) => format!("cannot be read: {fault}"),
    };
    Some(format!(
        "the host's core dumps must go to a program, so that a dying process waits for it, and \
         /proc/sys/kernel/core_pattern {found}; a crash handler such as systemd-coredump sets it \
         to a pipe, as core(5) tells"
    ))
}

/// Why a host's containers have no cgroups of version 2, whose files alone have what is needed.
fn lack_of_cgroup_v2(host: &Host) -> Option<String> {
    let mounted = match host.cgroup.as_deref() {
        Some("2") => return None,
        Some("hybrid") => "it has both versions, of which containers then have version 1",
        Some(_) => "it has version 1",
        None => "it shows none",
    };
    Some(format!(
        "the host has to have cgroups of version 2 alone, and {mounted}; the kernel parameter \
         systemd.unified_cgroup_hierarchy=1, or cgroup_no_v1=all, boots it so"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(cgroup: Option<&str>, lack: Option<&str>) {
        let host = Host {
            cgroup: cgroup.map(str::to_owned),
            ..Host::default()
        };
        let found = lack_of_cgroup_v2(&host);
        assert_eq!(found.is_some(), lack.is_some(), "{found:?}");
        assert!(found.unwrap_or_default().contains(lack.unwrap_or_default()));
    }

    #[test]
    fn core_dumps_go_to_a_program_or_to_a_file() {
        let lack = |pattern: &str| lack_of_core_pipe(Ok(pattern.to_owned()));
        assert_eq!(lack("|/usr/bin/handler %P\n"), None);
        let file = lack("core\n").expect("a file holds nobody up");
        assert!(file.contains("is `core`"), "{file}");
        assert!(lack("core.%e|x").is_some());
        let unread = lack_of_core_pipe(Err(io::ErrorKind::NotFound.into()));
        assert!(unread.is_some_and(|unread| unread.contains("cannot be read")));
    }

    #[test]
    fn version_2_alone_will_do() {
        check(Some("2"), None);
        check(Some("1"), Some("it has version 1;"));
        check(Some("hybrid"), Some("both versions"));
        check(None, Some("none"));
    }
}
