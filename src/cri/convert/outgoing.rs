//! Answers and events as a server gives them. A reply that does not fit its call gives none.

use std::time::Duration;

use k8s_cri::v1;
use tonic::{Code, Status};

use super::{details, image_spec, to_map};
use crate::history::{
    CallFault, ContainerListing, ContainerMetadata, ContainerState, ContainerStatus, Event,
    EventKind, ImageListing, Reply, SandboxListing, SandboxMetadata, SandboxState, SandboxStatus,
    Shared, Signal, StatusCode,
};

/// A status as gRPC tells it.
pub(crate) fn status(fault: &CallFault) -> Status {
    Status::new(Code::from(fault.code.0), fault.message.clone())
}

/// What a server says when its backend's answer is not one to the question.
pub(crate) fn misfit() -> CallFault {
    CallFault {
        code: StatusCode(Code::Internal as i32),
        message: "the answer does not fit the call".to_owned(),
        deadline: Duration::ZERO,
    }
}

pub(crate) fn version(reply: Reply) -> Option<v1::VersionResponse> {
    let Reply::Version(version) = reply else {
        return None;
    };
    Some(v1::VersionResponse {
        version: "0.1.0".to_owned(),
        runtime_name: version.runtime_name,
        runtime_version: version.runtime_version,
        runtime_api_version: version.api_version,
    })
}

pub(crate) fn done<T: Default>(reply: &Reply) -> Option<T> {
    (*reply == Reply::Done).then(T::default)
}

pub(crate) fn sandbox(reply: Reply) -> Option<v1::RunPodSandboxResponse> {
    let Reply::Sandbox(id) = reply else {
        return None;
    };
    let pod_sandbox_id = id.to_string();
    Some(v1::RunPodSandboxResponse { pod_sandbox_id })
}

pub(crate) fn container(reply: Reply) -> Option<v1::CreateContainerResponse> {
    let Reply::Container(id) = reply else {
        return None;
    };
    let container_id = id.to_string();
    Some(v1::CreateContainerResponse { container_id })
}

pub(crate) fn sandbox_status_reply(reply: Reply) -> Option<v1::PodSandboxStatusResponse> {
    let Reply::SandboxStatus(report) = reply else {
        return None;
    };
    Some(v1::PodSandboxStatusResponse {
        status: Some(sandbox_status(report.status.into_inner())),
        containers_statuses: container_statuses(report.containers),
        timestamp: report.timestamp.0,
        ..Default::default()
    })
}

pub(crate) fn container_report(reply: Reply) -> Option<(v1::ContainerStatus, Signal)> {
    let Reply::ContainerStatus(report) = reply else {
        return None;
    };
    let status = container_status(report.status.into_inner());
    Some((status, report.stop_signal))
}

pub(crate) fn sandboxes(reply: Reply) -> Option<v1::ListPodSandboxResponse> {
    let Reply::Sandboxes(listed) = reply else {
        return None;
    };
    let items = listed.iter().map(sandbox_listing).collect();
    Some(v1::ListPodSandboxResponse { items })
}

pub(crate) fn containers(reply: Reply) -> Option<v1::ListContainersResponse> {
    let Reply::Containers(listed) = reply else {
        return None;
    };
    let containers = listed.iter().map(container_listing).collect();
    Some(v1::ListContainersResponse { containers })
}

pub(crate) fn runtime_status(reply: Reply) -> Option<v1::StatusResponse> {
    let Reply::RuntimeStatus(status) = reply else {
        return None;
    };
    let holding = |name| v1::RuntimeCondition {
        r#type: name,
        status: true,
        ..Default::default()
    };
    let handler = |name| v1::RuntimeHandler {
        name,
        ..Default::default()
    };
    Some(v1::StatusResponse {
        status: Some(v1::RuntimeStatus {
            conditions: status.conditions.into_iter().map(holding).collect(),
        }),
        runtime_handlers: status.handlers.into_iter().map(handler).collect(),
        ..Default::default()
    })
}

pub(crate) fn image_status(reply: Reply) -> Option<v1::ImageStatusResponse> {
    let Reply::Image(listing) = reply else {
        return None;
    };
    Some(v1::ImageStatusResponse {
        image: listing.map(image),
        ..Default::default()
    })
}

pub(crate) fn pulled(reply: Reply) -> Option<v1::PullImageResponse> {
    let Reply::Pulled(image_ref) = reply else {
        return None;
    };
    Some(v1::PullImageResponse { image_ref })
}

pub(crate) fn exec(reply: &Reply) -> Option<v1::ExecSyncResponse> {
    let Reply::Exec(exit_code) = *reply else {
        return None;
    };
    Some(v1::ExecSyncResponse {
        exit_code,
        ..Default::default()
    })
}

pub(crate) fn images(reply: Reply) -> Option<v1::ListImagesResponse> {
    let Reply::Images(listed) = reply else {
        return None;
    };
    let images = listed.into_iter().map(image).collect();
    Some(v1::ListImagesResponse { images })
}

pub(crate) fn event(event: Event) -> v1::ContainerEventResponse {
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
        pod_sandbox_status: event
            .sandbox
            .map(|status| sandbox_status(status.into_inner())),
        containers_statuses: container_statuses(event.containers),
    }
}

fn sandbox_status(status: SandboxStatus) -> v1::PodSandboxStatus {
    let mut ips = status.ips.into_iter();
    let network = ips.next().map(|ip| v1::PodSandboxNetworkStatus {
        ip,
        additional_ips: ips.map(|ip| v1::PodIp { ip }).collect(),
    });
    v1::PodSandboxStatus {
        id: status.id.to_string(),
        metadata: status.metadata.as_ref().map(sandbox_metadata),
        state: sandbox_state(status.state),
        created_at: status.created_at.0,
        network,
        labels: to_map(&status.labels),
        annotations: to_map(&status.annotations),
        runtime_handler: status.runtime_handler,
        ..Default::default()
    }
}

fn container_statuses(statuses: Vec<Shared<ContainerStatus>>) -> Vec<v1::ContainerStatus> {
    let statuses = statuses.into_iter();
    statuses
        .map(|status| container_status(status.into_inner()))
        .collect()
}

fn container_status(status: ContainerStatus) -> v1::ContainerStatus {
    let mut told = v1::ContainerStatus {
        id: status.id.to_string(),
        metadata: status.metadata.as_ref().map(container_metadata),
        state: container_state(status.state),
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
    if let Some(details) = &status.details {
        details::put(details, &mut told);
    }
    told
}

fn sandbox_listing(listing: &SandboxListing) -> v1::PodSandbox {
    v1::PodSandbox {
        id: listing.id.to_string(),
        metadata: listing.metadata.as_ref().map(sandbox_metadata),
        state: sandbox_state(listing.state),
        created_at: listing.created_at.0,
        labels: to_map(&listing.labels),
        ..Default::default()
    }
}

fn container_listing(listing: &ContainerListing) -> v1::Container {
    v1::Container {
        id: listing.id.to_string(),
        pod_sandbox_id: listing.sandbox.to_string(),
        metadata: listing.metadata.as_ref().map(container_metadata),
        image: listing.image.as_deref().map(image_spec),
        state: container_state(listing.state),
        created_at: listing.created_at.0,
        labels: to_map(&listing.labels),
        ..Default::default()
    }
}

fn sandbox_metadata(metadata: &SandboxMetadata) -> v1::PodSandboxMetadata {
    v1::PodSandboxMetadata {
        name: metadata.name.to_string(),
        uid: metadata.uid.to_string(),
        namespace: metadata.namespace.to_string(),
        attempt: metadata.attempt,
    }
}

fn container_metadata(metadata: &ContainerMetadata) -> v1::ContainerMetadata {
    v1::ContainerMetadata {
        name: metadata.name.to_string(),
        attempt: metadata.attempt,
    }
}

pub(super) fn sandbox_state(state: SandboxState) -> i32 {
    match state {
        SandboxState::Ready => 0,
        SandboxState::NotReady => 1,
        SandboxState::Unknown(number) => number,
    }
}

pub(super) fn container_state(state: ContainerState) -> i32 {
    match state {
        ContainerState::Created => 0,
        ContainerState::Running => 1,
        ContainerState::Exited => 2,
        ContainerState::Unknown(number) => number,
    }
}

fn image(listing: ImageListing) -> v1::Image {
    v1::Image {
        id: listing.id,
        repo_tags: listing.tags,
        ..Default::default()
    }
}
