//! The Evented PLEG of kubelet 1.26 to 1.36: puts what an event carries into the cache.
//!
//! Source: kubernetes `pkg/kubelet/pleg/evented.go` of 1.36.2 (`processCRIEvents`,
//! `processCRIEvent`, `updateRunningPodMetric`, `updateRunningContainerMetric`, `Healthy`).

use std::sync::Arc;
use std::time::Duration;

use super::gauges::Tally;
use super::generic::send;
use super::inspect::{event_status, image};
use super::kubelet::Kubelet;
use super::lifecycle::LifecycleKind;
use super::shared_id::{SharedId, SharedUid};
use super::state::State;
use super::status::{KubeletPanic, PodStatus};
use crate::history::{Event, EventKind, SandboxStatus};

/// How often the cache's global time is set to now while the Evented PLEG is in use, without asking
/// the runtime anything.
pub const GLOBAL_TIME_PERIOD: Duration = Duration::from_secs(5);

/// What became of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// It has no sandbox status, or one without metadata: it is as if it had not come. It gives no
    /// sample of latency either.
    Ignored,
    /// It is not newer than what the cache has: nobody will hear of it.
    Refused(SharedUid),
    /// It was taken: it is in the cache, or was a deletion.
    Taken(SharedUid),
}

/// Takes an event of the runtime.
///
/// Its latency, which is the caller's to measure, is the time from `created_at` to now.
///
/// # Errors
///
/// If the real kubelet would have panicked. Then nothing has changed.
pub fn receive(kubelet: &mut Kubelet, event: &Event) -> Result<Receipt, KubeletPanic> {
    let Some((told, metadata)) = event
        .sandbox
        .as_ref()
        .and_then(|told| Some((told, told.metadata.as_ref()?)))
    else {
        return Ok(Receipt::Ignored);
    };
    for container in &event.containers {
        image(container)?;
    }
    let uid = SharedUid::from(Arc::from(&metadata.uid));
    follow(kubelet, &uid, told, event)?;
    if event.kind == EventKind::Deleted {
        deleted(kubelet, &uid, told, event);
        return Ok(Receipt::Taken(uid));
    }
    let mut status = event_status(uid.clone(), told, event)?;
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
        send(
            kubelet,
            &uid,
            kind,
            SharedId::from(Arc::from(&event.container)),
        );
    }
    Ok(Receipt::Taken(uid))
}

/// The deletion of a sandbox forgets its pod, whatever other sandbox the pod has. That of a
/// container leaves the cache alone.
fn deleted(kubelet: &mut Kubelet, uid: &SharedUid, told: &SandboxStatus, event: &Event) {
    if told.id.as_str() == event.container.as_str() {
        kubelet.cache.delete(uid.as_str());
    }
    let container = SharedId::from(Arc::from(&event.container));
    send(
        kubelet,
        uid,
        LifecycleKind::ContainerDied,
        container.clone(),
    );
    send(kubelet, uid, LifecycleKind::ContainerRemoved, container);
}

/// Moves the gauges by what the event changes in its pod, whether or not it will be taken.
fn follow(
    kubelet: &mut Kubelet,
    uid: &SharedUid,
    told: &SandboxStatus,
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
    let is = Tally::of(
        told.id.as_str(),
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
    Tally::of(
        sandbox,
        containers.map(|container| (container.id.as_str(), container.state)),
    )
}
