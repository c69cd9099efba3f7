//! A pod's status in the kubelet's cache, made from the CRI's statuses on inspection or from an
//! event.
//!
//! Source: kubernetes `pkg/kubelet/container/runtime.go` (`PodStatus`, `Status`),
//! `pkg/kubelet/kuberuntime/kuberuntime_manager.go` (`GetPodStatus`, `GeneratePodStatus`),
//! `kuberuntime_container.go` (`getPodContainerStatuses`, `toKubeContainerStatus`),
//! `kuberuntime_sandbox.go` (`determinePodSandboxIPs`).

use core::net::{IpAddr, Ipv4Addr};
use std::cmp::Reverse;
use std::sync::Arc;

use super::pod_list::{ListedItem, ListedPod};
use super::state::{Moment, State};
use super::{SharedId, SharedUid};
use crate::history::{
    ContainerState, ContainerStatus, Event, SandboxReport, SandboxState, SandboxStatus, Text,
};

const CONTAINER_NAME_LABEL: &str = "io.kubernetes.container.name";
const RESTART_COUNT_ANNOTATION: &str = "io.kubernetes.container.restartCount";
const HASH_ANNOTATION: &str = "io.kubernetes.container.hash";

/// A pod as in the kubelet's cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodStatus {
    pub uid: SharedUid,
    pub name: Text,
    pub namespace: Text,
    /// The pod's addresses, the primary one first.
    pub ips: Vec<String>,
    pub sandboxes: Vec<PodSandbox>,
    pub containers: Vec<PodContainer>,
    /// The containers in its newest, ready sandbox.
    pub active_containers: Vec<SharedId>,
    /// The time at which the runtime read it; [`Moment::NEVER`] if it is from an event.
    pub read_at: Moment,
}

impl PodStatus {
    /// Whether any of its sandboxes is ready.
    pub fn has_ready_sandbox(&self) -> bool {
        let mut sandboxes = self.sandboxes.iter();
        sandboxes.any(|sandbox| sandbox.state == SandboxState::Ready)
    }
}

/// A sandbox of a [`PodStatus`], as far as the kubelet's PLEGs read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodSandbox {
    pub id: SharedId,
    pub state: SandboxState,
    pub created_at: Moment,
    /// The number of sandboxes created for this pod before.
    pub attempt: u32,
}

/// A container of a [`PodStatus`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodContainer {
    pub id: SharedId,
    /// Its name, from a label; empty without it.
    pub name: Text,
    pub state: State,
    pub created_at: Moment,
    /// [`Moment::NEVER`] while it is only created.
    pub started_at: Moment,
    /// [`Moment::NEVER`] before its exit.
    pub finished_at: Moment,
    /// 0 before its exit.
    pub exit_code: i32,
    /// The image as the user named it.
    pub image: Text,
    /// The image as the runtime resolved it.
    pub image_id: Text,
    /// The number of restarts, from an annotation; 0 without it.
    pub restart_count: i32,
    /// The hash of its specification, from an annotation; 0 without it.
    pub hash: u64,
    /// The reason for its exit.
    pub reason: Text,
    /// The message on its exit. The kubelet may append a termination message that it reads
    /// from a file; this engine reads no files.
    pub message: String,
}

pub type Inspection = Result<Arc<PodStatus>, InspectError>;

/// The reason why a pod could not be inspected. `NotFound` is no error: deleted objects are left
/// out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InspectError {
    #[error("{method} of {id}: {fault}")]
    Failed {
        /// The RPC's name in the CRI.
        method: &'static str,
        id: SharedId,
        fault: String,
    },
    /// A status call returned OK and no status.
    #[error("{method} of {id}: the runtime answered with OK and without a status")]
    Empty {
        /// The RPC's name in the CRI.
        method: &'static str,
        id: SharedId,
    },
    /// The real kubelet would panic.
    #[error(transparent)]
    Panic(#[from] KubeletPanic),
}

/// A message that makes the real kubelet panic. Here it is an error and changes no state.
///
/// A null entry in a list of statuses would be a third one, but protobuf cannot express it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KubeletPanic {
    /// `kuberuntime_container.go` (`toKubeContainerStatus`) dereferences the image without a check.
    #[error("the status of container {container} has no image, and the kubelet dereferences it")]
    NoImage { container: SharedId },
    /// `evented.go` (`updateRunningPodMetric`) dereferences the cached status without a check, but
    /// a failed inspection leaves none.
    #[error(
        "an event came for pod {pod}, whose last inspection failed, and the kubelet dereferences \
         the status that is not there"
    )]
    EventAfterFailedInspection { pod: SharedUid },
}

/// A runtime's answers to status calls. The caller has made the calls beforehand, or reads them
/// from a recording.
pub trait Statuses {
    fn sandbox(&self, id: &str) -> Result<&SandboxReport, StatusFault>;

    fn container(&self, id: &str) -> Result<&ContainerStatus, StatusFault>;
}

/// The reason for a missing status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatusFault {
    /// The object is gone. A kubelet then leaves it out.
    NotFound,
    /// The call failed with another error.
    Failed(String),
    /// The call succeeded, and its answer has no status.
    Empty,
}

/// The pod status that a kubelet gets from the runtime on inspection.
///
/// With the gate on, a timestamp in the newest sandbox's answer means that it includes container
/// statuses, and `ContainerStatus` is not called. `now` is the moment just before the calls. Fails
/// if a status call failed, except with `NotFound`.
pub fn pod_status(
    pod: &ListedPod<'_>,
    gate: bool,
    now: Moment,
    runtime: &impl Statuses,
) -> Result<PodStatus, InspectError> {
    let mut status = PodStatus {
        uid: SharedUid::from(pod.uid),
        name: pod.name.into(),
        namespace: pod.namespace.into(),
        ips: Vec::new(),
        sandboxes: Vec::with_capacity(pod.sandboxes().len()),
        containers: Vec::new(),
        active_containers: Vec::new(),
        read_at: now,
    };
    let mut active = None;
    let mut needs_containers = !gate;
    for (place, seen) in pod.sandboxes().iter().enumerate() {
        let answer = match runtime.sandbox(seen.id) {
            Err(StatusFault::NotFound) => continue,
            answer => answer.map_err(|fault| failure("PodSandboxStatus", seen.id, fault))?,
        };
        status.sandboxes.push(sandbox(&answer.status));
        if place > 0 {
            continue;
        }
        if answer.status.state == SandboxState::Ready {
            status.ips = ips(&answer.status);
            active = Some(seen.id);
        }
        if gate && answer.timestamp.0 != 0 {
            status.read_at = answer.timestamp.into();
            status.containers = converted(
                answer
                    .containers
                    .iter()
                    .map(|sandbox_status| &**sandbox_status),
            )?;
        } else if gate {
            needs_containers = true;
        }
    }
    if needs_containers {
        add_containers(&mut status, pod.containers(), active, runtime)?;
    }
    Ok(status)
}

/// Adds the status of each listed container.
fn add_containers(
    status: &mut PodStatus,
    listed: &[ListedItem<'_>],
    active: Option<&str>,
    runtime: &impl Statuses,
) -> Result<(), InspectError> {
    let mut answers = Vec::with_capacity(listed.len());
    for seen in listed {
        match runtime.container(seen.id) {
            Err(StatusFault::NotFound) => {}
            Err(fault) => return Err(failure("ContainerStatus", seen.id, fault)),
            Ok(answer) => {
                image(answer)?;
                answers.push((answer, active == Some(seen.sandbox)));
            }
        }
    }
    answers.sort_by_key(|(answer, _)| Reverse(answer.created_at));
    status.containers = converted(answers.iter().map(|(answer, _)| *answer))?;
    let actives = status
        .containers
        .iter()
        .zip(&answers)
        .filter(|(_, (_, active))| *active);
    status.active_containers = actives.map(|(container, _)| container.id.clone()).collect();
    Ok(())
}

/// The pod status that a kubelet gets from an event, which must have a sandbox status.
pub(super) fn event_status(
    uid: SharedUid,
    sandbox_status: &SandboxStatus,
    event: &Event,
) -> Result<PodStatus, KubeletPanic> {
    let metadata = sandbox_status.metadata.as_ref();
    let mut containers = converted(event.containers.iter().map(|status| &**status))?;
    containers.sort_by_key(|container| Reverse(container.created_at));
    Ok(PodStatus {
        uid,
        name: metadata.map_or_else(Text::default, |metadata| metadata.name.clone()),
        namespace: metadata.map_or_else(Text::default, |metadata| metadata.namespace.clone()),
        ips: ips(sandbox_status),
        sandboxes: vec![sandbox(sandbox_status)],
        containers,
        active_containers: Vec::new(),
        read_at: Moment::NEVER,
    })
}

fn failure(method: &'static str, id: &str, fault: StatusFault) -> InspectError {
    let id = SharedId::from(id);
    match fault {
        StatusFault::Empty => InspectError::Empty { method, id },
        StatusFault::Failed(fault) => InspectError::Failed { method, id, fault },
        StatusFault::NotFound => InspectError::Failed {
            method,
            id,
            fault: "not found".to_owned(),
        },
    }
}

fn sandbox(status: &SandboxStatus) -> PodSandbox {
    PodSandbox {
        id: SharedId::from(&status.id),
        state: status.state,
        created_at: status.created_at.into(),
        attempt: status
            .metadata
            .as_ref()
            .map_or(0, |metadata| metadata.attempt),
    }
}

fn converted<'a>(
    statuses: impl Iterator<Item = &'a ContainerStatus>,
) -> Result<Vec<PodContainer>, KubeletPanic> {
    statuses.map(container).collect()
}

fn container(status: &ContainerStatus) -> Result<PodContainer, KubeletPanic> {
    let image = image(status)?.clone();
    let exited = status.state == ContainerState::Exited;
    let annotation = |key: &str| status.annotations.get(key);
    Ok(PodContainer {
        id: status.id.clone(),
        name: (status.labels.get(CONTAINER_NAME_LABEL).cloned()).unwrap_or_default(),
        state: State::from(status.state),
        created_at: status.created_at.into(),
        started_at: if status.state == ContainerState::Created {
            Moment::NEVER
        } else {
            status.started_at.into()
        },
        finished_at: if exited {
            status.finished_at.into()
        } else {
            Moment::NEVER
        },
        exit_code: if exited { status.exit_code } else { 0 },
        image,
        image_id: status.image_ref.clone(),
        restart_count: annotation(RESTART_COUNT_ANNOTATION)
            .and_then(|count| count.parse().ok())
            .unwrap_or(0),
        hash: annotation(HASH_ANNOTATION)
            .and_then(|hash| u64::from_str_radix(hash, 16).ok())
            .unwrap_or(0),
        reason: if exited {
            status.reason.clone()
        } else {
            Text::default()
        },
        message: if exited {
            status.message.clone()
        } else {
            String::new()
        },
    })
}

/// The image, which the kubelet dereferences without a check.
pub(super) fn image(status: &ContainerStatus) -> Result<&Text, KubeletPanic> {
    status.image.as_ref().ok_or_else(|| KubeletPanic::NoImage {
        container: status.id.clone(),
    })
}

/// A sandbox's addresses; empty if any of them is invalid.
fn ips(status: &SandboxStatus) -> Vec<String> {
    if status.ips.iter().all(|ip| is_address(ip)) {
        status.ips.clone()
    } else {
        Vec::new()
    }
}

/// Whether the kubelet accepts this as an address: unlike Rust, it accepts leading zeros.
fn is_address(text: &str) -> bool {
    let octet = |part: &str| {
        let digits = part.trim_start_matches('0');
        let number = if digits.is_empty() { "0" } else { digits };
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && number.parse::<u8>().is_ok()
    };
    text.parse::<IpAddr>().is_ok()
        || (text.split('.').count() == Ipv4Addr::BITS as usize / 8 && text.split('.').all(octet))
}

#[cfg(test)]
mod tests {
    use super::is_address;

    #[test]
    fn addresses_are_parsed_as_by_the_kubelet() {
        for good in ["10.0.0.1", "010.00.0.001", "fd00::1", "::ffff:1.2.3.4"] {
            assert!(is_address(good), "{good}");
        }
        for bad in [
            "",
            "bad",
            "10.0.0",
            "256.0.0.1",
            "1.2.3.4.5",
            "1..2.3",
            "fe80::1%eth0",
            "+1.2.3.4",
        ] {
            assert!(!is_address(bad), "{bad}");
        }
    }
}
