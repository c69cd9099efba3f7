//! What a runtime need not have, found out when a run begins: only what its cases need.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::session::Session;
use crate::case::Need;
use crate::history::{
    ContainerFilter, ContainerSpec, Offers, Reply, Request, RuntimeStatus, SandboxFilter,
    SandboxSpec, SandboxState, Signal,
};
use crate::workload::Workload;

/// Of what was looked for: why a runtime, or its node, does not have it, if it does not.
pub(super) type Lacks = BTreeMap<Need, Option<String>>;

impl Session {
    /// Finds out whether the runtime has all of this.
    pub async fn find_offers(&self, needs: &BTreeSet<Need>) {
        let mut lacks = Lacks::new();
        for need in needs {
            let lack = match need {
                Need::Handlers => self.lack_of_handlers().await,
                Need::Timestamp => self.lack_of_timestamps().await,
                Need::StreamedLists => self.lack_of_streams().await,
                Need::Network => self.lack_of_network().await,
                Need::StopSignal => self.lack_of_stop_signals().await,
                Need::MemoryLimit | Need::CgroupV2 | Need::Broadcast | Need::HostPid => continue,
            };
            lacks.insert(*need, lack);
        }
        let _ = self.lacks.set(lacks);
    }

    /// Why there is no such thing, if that was found out.
    #[must_use]
    pub fn lack(&self, need: Need) -> Option<String> {
        self.lacks.get()?.get(&need)?.clone()
    }

    /// What was found out.
    #[must_use]
    pub fn offers(&self) -> Offers {
        let has = |need| Some(self.lacks.get()?.get(&need)?.is_none());
        Offers {
            streamed_lists: has(Need::StreamedLists),
            handlers: has(Need::Handlers),
            network: has(Need::Network),
        }
    }

    async fn status(&self) -> Result<RuntimeStatus, String> {
        match self.call(None, Request::RuntimeStatus).await {
            Ok(Reply::RuntimeStatus(status)) => Ok(status),
            Ok(_) => Err("Status was answered by something else".to_owned()),
            Err(fault) => Err(format!("Status failed: {fault}")),
        }
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

    /// A runtime that takes a container's stop signal tells it in the container's status.
    async fn lack_of_stop_signals(&self) -> Option<String> {
        let (sandbox, pod) = match self.marker_pod().await {
            Ok(pod) => pod,
            Err(fault) => return Some(fault.to_string()),
        };
        let spec = ContainerSpec {
            stop_signal: Signal::USER_1,
            ..self.container_spec((&sandbox, &pod), "stop-signal", 0, &Workload::Pause)
        };
        let create = Request::CreateContainer(Arc::new(spec));
        let container = match self.call(None, create).await {
            Ok(Reply::Container(container)) => container,
            Ok(_) => return Some("CreateContainer was answered by something else".to_owned()),
            Err(fault) => return Some(format!("no container can have a stop signal: {fault}")),
        };
        let ask = Request::ContainerStatus(container.clone());
        let told = self.call(None, ask).await;
        // What is left is swept at the run's end.
        let _ = self.call(None, Request::RemoveContainer(container)).await;
        match told {
            Ok(Reply::ContainerStatus(report)) if report.stop_signal == Signal::USER_1 => None,
            Ok(_) => Some(
                "ContainerStatus does not tell the stop signal that a container was given: the \
                 runtime does not know this field of the CRI, which came with Kubernetes 1.33 \
                 (KEP-4960), and to containerd with containerd/containerd#11774"
                    .to_owned(),
            ),
            Err(fault) => Some(format!("ContainerStatus failed: {fault}")),
        }
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
