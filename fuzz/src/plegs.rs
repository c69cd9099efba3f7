//! Both PLEGs, with the content of a history as input.

use std::borrow::Borrow;
use std::sync::Arc;

use cri_event_conformance::testing::history::{
    Body, ContainerListing, ContainerStatus, Entry, Reply, SandboxListing, SandboxReport,
};
use cri_event_conformance::testing::pleg::{
    Features, Generic, Kubelet, Moment, StatusFault, Statuses, list_pods, pod_status, receive,
    relist_hint,
};

/// Passes all entries to a kubelet. Nothing may panic.
pub fn follow(features: Features, entries: &[impl Borrow<Entry>]) {
    let mut kubelet = Kubelet::new(features, 10);
    let mut generic = Generic::new();
    let mut runtime = Runtime::default();
    for entry in entries {
        let entry: &Entry = entry.borrow();
        match &entry.body {
            Body::Event { event, .. } => {
                let _ = relist_hint(event);
                let _ = receive(&mut kubelet, event);
            }
            Body::CallEnded {
                result: Ok(reply), ..
            } => {
                runtime.take(reply.clone());
                relist(&mut kubelet, &mut generic, &runtime, entry.at.realtime_ns);
            }
            _ => {}
        }
    }
}

fn relist(kubelet: &mut Kubelet, generic: &mut Generic, runtime: &Runtime, now_ns: i64) {
    let now = Moment::from_ns(now_ns);
    let list = list_pods(now, &runtime.sandboxes, &runtime.containers);
    generic.relist(kubelet, now, &list);
    while let Some(wanted) = generic.wanted() {
        let pod = list.pod(wanted.index).expect("it is wanted");
        let inspection = pod_status(&pod, kubelet.gate(), now, runtime).map(Arc::new);
        generic.inspected(kubelet, inspection);
    }
}

/// The last answers.
#[derive(Default)]
struct Runtime {
    sandboxes: Vec<SandboxListing>,
    containers: Vec<ContainerListing>,
    sandbox: Option<SandboxReport>,
    container: Option<ContainerStatus>,
}

impl Runtime {
    fn take(&mut self, reply: Reply) {
        match reply {
            Reply::Sandboxes(sandboxes) => self.sandboxes = sandboxes,
            Reply::Containers(containers) => self.containers = containers,
            Reply::SandboxStatus(report) => self.sandbox = Some(report),
            Reply::ContainerStatus(report) => self.container = Some(report.status.into_inner()),
            _ => {}
        }
    }
}

impl Statuses for Runtime {
    fn sandbox(&self, _id: &str) -> Result<&SandboxReport, StatusFault> {
        self.sandbox.as_ref().ok_or(StatusFault::NotFound)
    }

    /// Not any container's: thousands with the same huge text would be gigabytes.
    fn container(&self, id: &str) -> Result<&ContainerStatus, StatusFault> {
        let own = self.container.as_ref();
        own.filter(|status| status.id.as_str() == id)
            .ok_or(StatusFault::NotFound)
    }
}
