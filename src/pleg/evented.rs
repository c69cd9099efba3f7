//! The Evented PLEG: up to kubelet 1.36 it stores the payload of events in the cache. From 1.37 on
//! STOPPED is a hint to relist one pod, everything else in an event is ignored, and only the
//! Generic PLEG writes the cache.
//!
//! Source: kubernetes `pkg/kubelet/pleg/evented.go` of 1.36.2 (`processCRIEvents`,
//! `processCRIEvent`, `updateRunningPodMetric`, `updateRunningContainerMetric`, `Healthy`) and
//! after pull request 139262 (`processCRIEvents`).

use std::sync::Arc;

use super::SharedUid;
use super::generic::send;
use super::kubelet::{Kubelet, LifecycleKind, Tally};
use super::pod_status::{KubeletPanic, PodStatus, event_status, image};
use super::state::State;
use crate::history::{Event, EventKind, SandboxStatus};

/// The result of processing an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// It has no sandbox status, or one without metadata, and is ignored; it does not count for the
    /// latency either.
    Ignored,
    /// It is older than the cache entry: it has no effect.
    Refused(SharedUid),
    /// It was stored in the cache, or was a deletion.
    Taken(SharedUid),
}

/// The effect of an event on such a kubelet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// None: it has no sandbox status, or one without metadata.
    Ignored,
    /// A sample of the latency, from `created_at` to now.
    Sample,
    /// A sample of the latency, and an on-demand relist of this pod.
    Relist(SharedUid),
}

/// Processes an event of the runtime.
///
/// The caller measures its latency, the time from `created_at` to now. Fails if the real kubelet
/// would have panicked. Then nothing has changed.
pub fn receive(kubelet: &mut Kubelet, event: &Event) -> Result<Receipt, KubeletPanic> {
    let Some((sandbox_status, metadata)) = event
        .sandbox
        .as_ref()
        .and_then(|sandbox_status| Some((sandbox_status, sandbox_status.metadata.as_ref()?)))
    else {
        return Ok(Receipt::Ignored);
    };
    for container in &event.containers {
        image(container)?;
    }
    let uid = metadata.uid.clone();
    follow(kubelet, &uid, sandbox_status, event)?;
    if event.kind == EventKind::Deleted {
        deleted(kubelet, &uid, sandbox_status, event);
        return Ok(Receipt::Taken(uid));
    }
    let mut status = event_status(uid.clone(), sandbox_status, event)?;
    if let Some(ips) = kubelet.preserved_ips(&status) {
        status.ips = ips;
    }
    if !kubelet
        .cache
        .set(&uid, Ok(Arc::new(status)), event.created_at.into())
    {
        return Ok(Receipt::Refused(uid));
    }
    let kind = match event.kind {
        EventKind::Started => Some(LifecycleKind::ContainerStarted),
        EventKind::Stopped => Some(LifecycleKind::ContainerDied),
        EventKind::Created | EventKind::Deleted | EventKind::Unknown(_) => None,
    };
    if let Some(kind) = kind {
        send(kubelet, &uid, kind, event.container.clone());
    }
    Ok(Receipt::Taken(uid))
}

/// The deletion of a sandbox deletes the cache entry of its pod, even if the pod has another
/// sandbox. The deletion of a container does not change the cache.
fn deleted(kubelet: &mut Kubelet, uid: &SharedUid, sandbox_status: &SandboxStatus, event: &Event) {
    if sandbox_status.id.as_str() == event.container.as_str() {
        kubelet.cache.delete(uid.as_str());
    }
    let container = event.container.clone();
    send(
        kubelet,
        uid,
        LifecycleKind::ContainerDied,
        container.clone(),
    );
    send(kubelet, uid, LifecycleKind::ContainerRemoved, container);
}

/// Updates the gauges by the difference to the cached pod, whether or not the event is stored.
fn follow(
    kubelet: &mut Kubelet,
    uid: &SharedUid,
    sandbox_status: &SandboxStatus,
    event: &Event,
) -> Result<(), KubeletPanic> {
    let was = match kubelet.cache.get(uid.as_str()) {
        None => None,
        Some(entry) => {
            let status = entry
                .status()
                .ok_or_else(|| KubeletPanic::EventAfterFailedInspection { pod: uid.clone() })?;
            (!status.sandboxes.is_empty()).then(|| cached(status))
        }
    };
    let containers = event.containers.iter();
    let is = Tally::new(
        sandbox_status.id.as_str(),
        containers.map(|status| (status.id.as_str(), State::from(status.state))),
    );
    kubelet.gauges.follow(was.as_ref(), &is);
    Ok(())
}

fn cached(status: &PodStatus) -> Tally {
    let sandbox = status
        .sandboxes
        .first()
        .map_or("", |sandbox| sandbox.id.as_str());
    let containers = status.containers.iter();
    Tally::new(
        sandbox,
        containers.map(|container| (container.id.as_str(), container.state)),
    )
}

/// The effect of an event of the runtime.
pub fn relist_hint(event: &Event) -> Hint {
    match (event.pod_uid(), event.kind) {
        (None, _) => Hint::Ignored,
        (Some(uid), EventKind::Stopped) => Hint::Relist(uid.clone()),
        (Some(_), _) => Hint::Sample,
    }
}
