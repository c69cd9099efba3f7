//! The expected state of an engine after a step, and the conversion of ours.

use std::collections::BTreeMap;
use std::time::Duration;

use cri_event_conformance::testing::history::SandboxState;
use cri_event_conformance::testing::pleg::{
    Entry, Generic, Kubelet, LifecycleEvent, Moment, PodContainer, PodStatus, State,
};
use serde::{Deserialize, Deserializer};

/// The state after a step.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct After {
    /// By pod, because the order between pods is undefined.
    pub(crate) events: BTreeMap<String, Vec<Told>>,
    pub(crate) discarded: u64,
    pub(crate) ignored: bool,
    pub(crate) queue_len: Option<usize>,
    pub(crate) cache: BTreeMap<String, Cached>,
    pub(crate) global_ts: Option<i64>,
    pub(crate) reinspect: Vec<String>,
    pub(crate) records: Vec<String>,
    pub(crate) relist_time: Option<i64>,
    pub(crate) running_pods: i64,
    pub(crate) running_containers: BTreeMap<String, i64>,
    pub(crate) healthy_at_now_plus_threshold: Option<bool>,
    pub(crate) healthy_1ns_later: Option<bool>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Told {
    #[serde(rename = "type")]
    kind: String,
    data: Option<String>,
}

impl From<LifecycleEvent> for Told {
    fn from(event: LifecycleEvent) -> Self {
        Self {
            kind: event.kind.to_string(),
            data: event.container.map(|id| id.to_string()),
        }
    }
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Cached {
    rev: Option<i32>,
    err: bool,
    has_status: bool,
    modified: i64,
    observed: i64,
    name: String,
    namespace: String,
    #[serde(deserialize_with = "null_is_empty")]
    ips: Vec<String>,
    sandboxes: Vec<Sandbox>,
    containers: Vec<Container>,
    active_containers: Vec<String>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sandbox {
    id: String,
    state: String,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Container {
    id: String,
    name: String,
    state: String,
    created_at: i64,
    started_at: Option<i64>,
    finished_at: Option<i64>,
    exit_code: i32,
    image: String,
    image_id: String,
    restart_count: i32,
    reason: String,
    message: String,
}

fn null_is_empty<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

impl After {
    /// Reads our state; `scripted` statuses carry their identity in place of containers.
    pub(crate) fn read(kubelet: &Kubelet, generic: &Generic, scripted: bool) -> Self {
        let cached = |entry: &Entry| Cached::read(entry, scripted);
        let threshold = Generic::THRESHOLD;
        let healthy = |later: Duration| {
            let relisted_at = generic.relisted_at().filter(|_| scripted)?;
            Some(
                generic
                    .health(relisted_at.plus(later), threshold)
                    .is_healthy(),
            )
        };
        let count = |state: State| Some((state.label().into(), kubelet.gauges.containers(state)?));
        Self {
            queue_len: scripted.then(|| kubelet.channel.len()),
            cache: kubelet
                .cache
                .entries()
                .into_iter()
                .map(|(uid, entry)| (uid.to_string(), cached(entry)))
                .collect(),
            global_ts: kubelet.cache.global().map(Moment::ns),
            reinspect: generic
                .inspection_requests()
                .map(ToString::to_string)
                .collect(),
            records: generic
                .pods()
                .into_iter()
                .map(ToString::to_string)
                .collect(),
            relist_time: generic.relisted_at().filter(|_| scripted).map(Moment::ns),
            running_pods: kubelet.gauges.running_pods(),
            running_containers: State::ALL.into_iter().filter_map(count).collect(),
            healthy_at_now_plus_threshold: healthy(threshold),
            healthy_1ns_later: healthy(threshold + Duration::from_nanos(1)),
            ..Self::default()
        }
    }
}

impl Cached {
    fn read(entry: &Entry, scripted: bool) -> Self {
        let times = Self {
            err: entry.error().is_some(),
            modified: entry.modified.ns(),
            observed: entry.observed.ns(),
            ..Self::default()
        };
        match entry.status() {
            None => times,
            Some(status) => Self {
                has_status: true,
                name: status.name.to_string(),
                namespace: status.namespace.to_string(),
                ips: status.ips.clone(),
                sandboxes: status
                    .sandboxes
                    .iter()
                    .map(|sandbox| Sandbox {
                        id: sandbox.id.to_string(),
                        state: state_name(sandbox.state),
                    })
                    .collect(),
                ..times.with_containers(status, scripted)
            },
        }
    }

    fn with_containers(self, status: &PodStatus, scripted: bool) -> Self {
        if scripted {
            let rev = status
                .containers
                .first()
                .map(|container| container.restart_count);
            return Self { rev, ..self };
        }
        let active = status.active_containers.iter().map(ToString::to_string);
        Self {
            containers: status.containers.iter().map(Container::read).collect(),
            active_containers: active.collect(),
            ..self
        }
    }
}

impl Container {
    fn read(container: &PodContainer) -> Self {
        let known = |moment: Moment| (moment != Moment::NEVER).then(|| moment.ns());
        Self {
            id: container.id.to_string(),
            name: container.name.to_string(),
            state: container.state.label().to_owned(),
            created_at: container.created_at.ns(),
            started_at: known(container.started_at),
            finished_at: known(container.finished_at),
            exit_code: container.exit_code,
            image: container.image.to_string(),
            image_id: container.image_id.to_string(),
            restart_count: container.restart_count,
            reason: container.reason.to_string(),
            message: container.message.clone(),
        }
    }
}

fn state_name(state: SandboxState) -> String {
    match state {
        SandboxState::Ready => "SANDBOX_READY".to_owned(),
        SandboxState::NotReady => "SANDBOX_NOTREADY".to_owned(),
        SandboxState::Unknown(number) => number.to_string(),
    }
}
