//! Events, statuses and list items, in both directions.

use k8s_cri::v1;
use prost::{DecodeError, Message};

use super::{container_setup, image_spec, labels, to_map};
use crate::history::{
    ContainerId, ContainerListing, ContainerMetadata, ContainerState, ContainerStatus, Event,
    EventKind, PodUid, RuntimeNanos, SandboxId, SandboxListing, SandboxMetadata, SandboxState,
    SandboxStatus, Shared,
};

/// Decodes an event.
pub fn decode_event(bytes: &[u8]) -> Result<Event, DecodeError> {
    let message = v1::ContainerEventResponse::decode(bytes)?;
    let sandbox = message.pod_sandbox_status.map(decode_sandbox);
    Ok(Event {
        container: ContainerId::from(message.container_id),
        kind: match message.container_event_type {
            0 => EventKind::Created,
            1 => EventKind::Started,
            2 => EventKind::Stopped,
            3 => EventKind::Deleted,
            number => EventKind::Unknown(number),
        },
        created_at: RuntimeNanos(message.created_at),
        sandbox: sandbox.map(Into::into),
        containers: decode_containers(message.containers_statuses),
    })
}

pub fn encode_event(event: Event) -> Vec<u8> {
    let sandbox = event.sandbox.map(Shared::into_inner);
    v1::ContainerEventResponse {
        container_id: event.container.to_string(),
        container_event_type: match event.kind {
            EventKind::Created => 0,
            EventKind::Started => 1,
            EventKind::Stopped => 2,
            EventKind::Deleted => 3,
            EventKind::Unknown(number) => number,
        },
        created_at: event.created_at.0,
        pod_sandbox_status: sandbox.map(encode_sandbox),
        containers_statuses: encode_containers(event.containers),
    }
    .encode_to_vec()
}

pub(super) fn decode_sandbox(status: v1::PodSandboxStatus) -> SandboxStatus {
    let network = status.network.unwrap_or_default();
    let addresses = std::iter::once(network.ip)
        .chain(network.additional_ips.into_iter().map(|address| address.ip));
    SandboxStatus {
        id: SandboxId::from(status.id),
        metadata: status.metadata.map(decode_sandbox_metadata),
        state: decode_sandbox_state(status.state),
        created_at: RuntimeNanos(status.created_at),
        ips: addresses.filter(|address| !address.is_empty()).collect(),
        labels: labels(status.labels),
        annotations: labels(status.annotations),
        runtime_handler: status.runtime_handler,
    }
}

pub(super) fn encode_sandbox(status: SandboxStatus) -> v1::PodSandboxStatus {
    let mut ips = status.ips.into_iter();
    let network = ips.next().map(|ip| v1::PodSandboxNetworkStatus {
        ip,
        additional_ips: ips.map(|ip| v1::PodIp { ip }).collect(),
    });
    v1::PodSandboxStatus {
        id: status.id.to_string(),
        metadata: status.metadata.as_ref().map(encode_sandbox_metadata),
        state: encode_sandbox_state(status.state),
        created_at: status.created_at.0,
        network,
        labels: to_map(&status.labels),
        annotations: to_map(&status.annotations),
        runtime_handler: status.runtime_handler,
        ..Default::default()
    }
}

pub(super) fn decode_containers(
    statuses: Vec<v1::ContainerStatus>,
) -> Vec<Shared<ContainerStatus>> {
    let statuses = statuses.into_iter().map(decode_container);
    statuses.map(Into::into).collect()
}

pub(super) fn encode_containers(
    statuses: Vec<Shared<ContainerStatus>>,
) -> Vec<v1::ContainerStatus> {
    let statuses = statuses.into_iter().map(Shared::into_inner);
    statuses.map(encode_container).collect()
}

pub(super) fn decode_container(mut status: v1::ContainerStatus) -> ContainerStatus {
    let setup = container_setup::take(&mut status);
    ContainerStatus {
        id: ContainerId::from(status.id),
        metadata: status.metadata.map(decode_container_metadata),
        state: decode_container_state(status.state),
        created_at: RuntimeNanos(status.created_at),
        started_at: RuntimeNanos(status.started_at),
        finished_at: RuntimeNanos(status.finished_at),
        exit_code: status.exit_code,
        image: status.image.map(|image| image.image.into()),
        image_ref: status.image_ref.into(),
        reason: status.reason.into(),
        message: status.message,
        labels: labels(status.labels),
        annotations: labels(status.annotations),
        setup: setup.into(),
    }
}

pub(super) fn encode_container(status: ContainerStatus) -> v1::ContainerStatus {
    let mut message = v1::ContainerStatus {
        id: status.id.to_string(),
        metadata: status.metadata.as_ref().map(encode_container_metadata),
        state: encode_container_state(status.state),
        created_at: status.created_at.0,
        started_at: status.started_at.0,
        finished_at: status.finished_at.0,
        exit_code: status.exit_code,
        image: status.image.as_deref().map(image_spec),
        image_ref: status.image_ref.to_string(),
        reason: status.reason.to_string(),
        message: status.message,
        labels: to_map(&status.labels),
        annotations: to_map(&status.annotations),
        ..Default::default()
    };
    container_setup::put(&status.setup, &mut message);
    message
}

pub(super) fn decode_sandbox_listing(item: v1::PodSandbox) -> SandboxListing {
    SandboxListing {
        id: SandboxId::from(item.id),
        metadata: item.metadata.map(decode_sandbox_metadata),
        state: decode_sandbox_state(item.state),
        created_at: RuntimeNanos(item.created_at),
        labels: labels(item.labels),
    }
}

pub(super) fn encode_sandbox_listing(listing: &SandboxListing) -> v1::PodSandbox {
    v1::PodSandbox {
        id: listing.id.to_string(),
        metadata: listing.metadata.as_ref().map(encode_sandbox_metadata),
        state: encode_sandbox_state(listing.state),
        created_at: listing.created_at.0,
        labels: to_map(&listing.labels),
        ..Default::default()
    }
}

pub(super) fn decode_container_listing(item: v1::Container) -> ContainerListing {
    ContainerListing {
        id: ContainerId::from(item.id),
        sandbox: SandboxId::from(item.pod_sandbox_id),
        metadata: item.metadata.map(decode_container_metadata),
        state: decode_container_state(item.state),
        created_at: RuntimeNanos(item.created_at),
        labels: labels(item.labels),
        image: item.image.map(|image| image.image.into()),
    }
}

pub(super) fn encode_container_listing(listing: &ContainerListing) -> v1::Container {
    v1::Container {
        id: listing.id.to_string(),
        pod_sandbox_id: listing.sandbox.to_string(),
        metadata: listing.metadata.as_ref().map(encode_container_metadata),
        image: listing.image.as_deref().map(image_spec),
        state: encode_container_state(listing.state),
        created_at: listing.created_at.0,
        labels: to_map(&listing.labels),
        ..Default::default()
    }
}

fn decode_sandbox_metadata(metadata: v1::PodSandboxMetadata) -> SandboxMetadata {
    SandboxMetadata {
        name: metadata.name.into(),
        uid: PodUid::from(metadata.uid),
        namespace: metadata.namespace.into(),
        attempt: metadata.attempt,
    }
}

fn encode_sandbox_metadata(metadata: &SandboxMetadata) -> v1::PodSandboxMetadata {
    v1::PodSandboxMetadata {
        name: metadata.name.to_string(),
        uid: metadata.uid.to_string(),
        namespace: metadata.namespace.to_string(),
        attempt: metadata.attempt,
    }
}

fn decode_container_metadata(metadata: v1::ContainerMetadata) -> ContainerMetadata {
    ContainerMetadata {
        name: metadata.name.into(),
        attempt: metadata.attempt,
    }
}

fn encode_container_metadata(metadata: &ContainerMetadata) -> v1::ContainerMetadata {
    v1::ContainerMetadata {
        name: metadata.name.to_string(),
        attempt: metadata.attempt,
    }
}

pub(super) fn decode_sandbox_state(number: i32) -> SandboxState {
    match number {
        0 => SandboxState::Ready,
        1 => SandboxState::NotReady,
        number => SandboxState::Unknown(number),
    }
}

pub(super) fn encode_sandbox_state(state: SandboxState) -> i32 {
    match state {
        SandboxState::Ready => 0,
        SandboxState::NotReady => 1,
        SandboxState::Unknown(number) => number,
    }
}

pub(super) fn decode_container_state(number: i32) -> ContainerState {
    match number {
        0 => ContainerState::Created,
        1 => ContainerState::Running,
        2 => ContainerState::Exited,
        number => ContainerState::Unknown(number),
    }
}

pub(super) fn encode_container_state(state: ContainerState) -> i32 {
    match state {
        ContainerState::Created => 0,
        ContainerState::Running => 1,
        ContainerState::Exited => 2,
        ContainerState::Unknown(number) => number,
    }
}
