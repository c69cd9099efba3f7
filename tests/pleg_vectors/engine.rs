//! The families that step an engine: generic, cri, evented and mixed.

use std::sync::Arc;

use cri_event_conformance::testing::pleg::{
    Features, Generic, InspectError, Inspection, Kubelet, ListedItem, Moment, PodContainer,
    PodIdentity, PodList, PodSandbox, PodStatus, Receipt, SharedId, SharedUid, State, list_pods,
    pod_status, receive,
};
use serde::Deserialize;

use crate::cri::Runtime;
use crate::diff::compare;
use crate::expected::After;
use crate::steps::{Item, Pod, Relist, Step};

#[derive(Deserialize)]
struct Vector {
    evented_gate: bool,
    evented_in_use: bool,
    channel_capacity: usize,
    drain_each_step: bool,
    steps: Vec<Step>,
    expected: Vec<After>,
}

struct Engine {
    kubelet: Kubelet,
    generic: Generic,
    scripted: bool,
    discarded: u64,
}

pub(crate) fn check(kind: &str, line: &str) -> Result<(), String> {
    let vector: Vector = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let features = match (vector.evented_gate, vector.evented_in_use) {
        (false, _) => Features::Generic,
        (true, false) => Features::GateOnly,
        (true, true) => Features::EventedInUse,
    };
    let mut engine = Engine {
        kubelet: Kubelet::new(features, vector.channel_capacity),
        generic: Generic::new(),
        scripted: kind == "generic",
        discarded: 0,
    };
    if vector.steps.len() != vector.expected.len() {
        return Err("steps and expectations do not pair up".to_owned());
    }
    for (number, (step, expected)) in vector.steps.iter().zip(&vector.expected).enumerate() {
        let ignored = engine.take(step);
        let mut after = After::read(&engine.kubelet, &engine.generic, engine.scripted);
        after.ignored = ignored;
        let discarded = engine.kubelet.channel.discarded();
        after.discarded = discarded - std::mem::replace(&mut engine.discarded, discarded);
        let last = !engine.scripted && number + 1 == vector.steps.len();
        if vector.drain_each_step || last || matches!(step, Step::Drain) {
            for event in engine.kubelet.channel.drain() {
                let events = after.events.entry(event.pod.to_string()).or_default();
                events.push(event.into());
            }
            after.queue_len = after.queue_len.map(|_| 0);
        }
        compare(&format!("step {number}"), expected, &after)?;
    }
    Ok(())
}

impl Engine {
    /// Executes a step. Returns whether it was an ignored event.
    fn take(&mut self, step: &Step) -> bool {
        match step {
            Step::Relist(relist) => self.relist(relist, None),
            Step::RelistPod(relist) => self.relist(relist, Some(&relist.uid)),
            Step::Reinspect { uid } => self.generic.request_inspection(uid),
            Step::UpdateTime { now } => self.kubelet.bump_global_time(Moment::from_ns(*now)),
            Step::Event { event } => {
                let receipt = receive(&mut self.kubelet, &event.to_event());
                return receipt.expect("the real kubelet did not panic") == Receipt::Ignored;
            }
            Step::Drain => {}
        }
        false
    }

    fn relist(&mut self, relist: &Relist, pod: Option<&str>) {
        match &relist.snapshot {
            _ if relist.list_error => {}
            Some(snapshot) if !snapshot.list_err.is_empty() => {}
            None => {
                let list = scripted_list(relist);
                self.list(relist, pod, &list);
                self.inspect(|index| scripted_inspection(relist, index));
            }
            Some(snapshot) => {
                let read_at = Moment::from_ns(relist.list_ts);
                let runtime = Runtime::new(snapshot, pod);
                let list = list_pods(read_at, &runtime.sandboxes, &runtime.containers);
                let gate = self.kubelet.gate();
                self.list(relist, pod, &list);
                self.inspect(|index| {
                    let listed = list.pod(index).expect("it is wanted");
                    pod_status(&listed, gate, read_at, &runtime).map(Arc::new)
                });
            }
        }
    }

    fn list(&mut self, relist: &Relist, pod: Option<&str>, list: &PodList<'_>) {
        let now = Moment::from_ns(relist.now);
        if let Some(uid) = pod {
            self.generic.relist_pod(&mut self.kubelet, uid, list);
        } else {
            self.generic.relist(&mut self.kubelet, now, list);
        }
    }

    fn inspect(&mut self, answer: impl Fn(usize) -> Inspection) {
        while let Some(wanted) = self.generic.wanted() {
            let inspection = answer(wanted.index);
            self.generic.inspected(&mut self.kubelet, inspection);
        }
    }
}

fn scripted_inspection(relist: &Relist, index: usize) -> Inspection {
    let pod = &relist.pods[index];
    if relist.inspect_errors.contains(&pod.uid) {
        return Err(InspectError::Empty {
            method: "PodSandboxStatus",
            id: SharedId::from(""),
        });
    }
    Ok(scripted_status(pod))
}

fn scripted_list(relist: &Relist) -> PodList<'_> {
    fn seen(items: Option<&Vec<Item>>) -> impl Iterator<Item = ListedItem<'_>> {
        let items = items.into_iter().flatten();
        items.map(|item| ListedItem::sandbox(&item.id, item.state()))
    }
    let mut list = PodList::new(Moment::from_ns(relist.list_ts));
    for pod in &relist.pods {
        list.push(
            PodIdentity {
                uid: &pod.uid,
                name: &pod.name,
                namespace: &pod.namespace,
            },
            seen(pod.containers.as_ref()),
            seen(pod.sandboxes.as_ref()),
        );
    }
    list
}

/// A status of the generic family; a made-up container carries its identity.
fn scripted_status(pod: &Pod) -> Arc<PodStatus> {
    let sandbox = |item: &Item| PodSandbox {
        id: SharedId::from(item.id.as_str()),
        state: pod.sandbox_state(),
        created_at: Moment::from_ns(0),
        attempt: 0,
    };
    let identity = PodContainer {
        id: SharedId::from("identity"),
        name: "".into(),
        state: State::Unknown,
        created_at: Moment::NEVER,
        started_at: Moment::NEVER,
        finished_at: Moment::NEVER,
        exit_code: 0,
        image: "".into(),
        image_id: "".into(),
        restart_count: pod.status_rev,
        hash: 0,
        reason: "".into(),
        message: String::new(),
    };
    Arc::new(PodStatus {
        uid: SharedUid::from(pod.uid.as_str()),
        name: pod.name.as_str().into(),
        namespace: pod.namespace.as_str().into(),
        ips: pod.status_ips.clone(),
        sandboxes: pod.sandboxes.iter().flatten().map(sandbox).collect(),
        containers: vec![identity],
        active_containers: Vec::new(),
        read_at: Moment::from_ns(pod.status_ts),
    })
}
