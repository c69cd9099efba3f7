//! Requests, in both directions.

use std::sync::Arc;
use std::time::Duration;

use k8s_cri::v1;
use prost::Message;

use super::errors::RequestError;
use super::{containers, extra, image_spec, labels, no_event_calls, sandboxes, to_map};
use crate::history::{
    ContainerFilter, ContainerId, NoEventCall, Request, SandboxFilter, SandboxId, SandboxSpec,
};

/// The CRI's message of a request.
pub fn encode_request(request: &Request) -> Vec<u8> {
    match request {
        Request::Version => v1::VersionRequest {
            version: "v1".to_owned(),
        }
        .encode_to_vec(),
        Request::RunSandbox(spec) => v1::RunPodSandboxRequest {
            config: Some(sandboxes::encode(spec)),
            runtime_handler: spec.runtime_handler.clone(),
        }
        .encode_to_vec(),
        Request::StopSandbox(id) => v1::StopPodSandboxRequest {
            pod_sandbox_id: id.to_string(),
        }
        .encode_to_vec(),
        Request::RemoveSandbox(id) => v1::RemovePodSandboxRequest {
            pod_sandbox_id: id.to_string(),
        }
        .encode_to_vec(),
        Request::SandboxStatus(id) => v1::PodSandboxStatusRequest {
            pod_sandbox_id: id.to_string(),
            verbose: false,
        }
        .encode_to_vec(),
        Request::ListSandboxes(labels) => encode_sandbox_filter(&SandboxFilter {
            labels: labels.clone(),
            ..SandboxFilter::default()
        }),
        Request::FindSandboxes(filter) => encode_sandbox_filter(filter),
        Request::ListContainers { sandbox, labels } => encode_container_filter(&ContainerFilter {
            sandbox: sandbox.clone(),
            labels: labels.clone(),
            ..ContainerFilter::default()
        }),
        Request::FindContainers(filter) => encode_container_filter(filter),
        Request::RuntimeStatus => v1::StatusRequest { verbose: false }.encode_to_vec(),
        Request::ListImages => v1::ListImagesRequest { filter: None }.encode_to_vec(),
        Request::ImageStatus(reference) => v1::ImageStatusRequest {
            image: Some(image_spec(reference)),
            verbose: false,
        }
        .encode_to_vec(),
        Request::PullImage(reference) => v1::PullImageRequest {
            image: Some(image_spec(reference)),
            ..Default::default()
        }
        .encode_to_vec(),
        Request::RemoveImage(reference) => v1::RemoveImageRequest {
            image: Some(image_spec(reference)),
        }
        .encode_to_vec(),
        Request::NoEventCall(call, id) => no_event_calls::encode(*call, id.clone()),
        Request::CreateContainer(_)
        | Request::StartContainer(_)
        | Request::StopContainer { .. }
        | Request::RemoveContainer(_)
        | Request::ContainerStatus(_)
        | Request::ExecSync { .. }
        | Request::CheckpointContainer { .. } => encode_for_container(request),
    }
}

fn encode_for_container(request: &Request) -> Vec<u8> {
    match request {
        Request::CreateContainer(spec) => {
            extra::encode_create(containers::encode(spec), spec.stop_signal)
        }
        Request::StartContainer(id) => v1::StartContainerRequest {
            container_id: id.to_string(),
        }
        .encode_to_vec(),
        Request::StopContainer { container, grace } => v1::StopContainerRequest {
            container_id: container.to_string(),
            timeout: seconds(*grace),
        }
        .encode_to_vec(),
        Request::RemoveContainer(id) => v1::RemoveContainerRequest {
            container_id: id.to_string(),
        }
        .encode_to_vec(),
        Request::ContainerStatus(id) => v1::ContainerStatusRequest {
            container_id: id.to_string(),
            verbose: false,
        }
        .encode_to_vec(),
        Request::ExecSync {
            container,
            command,
            timeout,
        } => v1::ExecSyncRequest {
            container_id: container.to_string(),
            cmd: command.clone(),
            timeout: seconds(*timeout),
        }
        .encode_to_vec(),
        Request::CheckpointContainer {
            container,
            location,
        } => v1::CheckpointContainerRequest {
            container_id: container.to_string(),
            location: location.clone(),
            timeout: 0,
        }
        .encode_to_vec(),
        _ => unreachable!("`encode_request` has encoded all others"),
    }
}

/// The request of the CRI's method of this name.
pub fn decode_request(method: &str, bytes: &[u8]) -> Result<Request, RequestError> {
    Ok(match method {
        "Version" => Request::Version,
        "Status" => Request::RuntimeStatus,
        "ListImages" => Request::ListImages,
        "RunPodSandbox" => {
            let request = v1::RunPodSandboxRequest::decode(bytes)?;
            let config = request.config.ok_or(RequestError::Lacks("config"))?;
            Request::RunSandbox(Arc::new(SandboxSpec {
                runtime_handler: request.runtime_handler,
                ..sandboxes::decode(config)?
            }))
        }
        "StopPodSandbox" => {
            let request = v1::StopPodSandboxRequest::decode(bytes)?;
            Request::StopSandbox(SandboxId::from(request.pod_sandbox_id))
        }
        "RemovePodSandbox" => {
            let request = v1::RemovePodSandboxRequest::decode(bytes)?;
            Request::RemoveSandbox(SandboxId::from(request.pod_sandbox_id))
        }
        "PodSandboxStatus" => {
            let request = v1::PodSandboxStatusRequest::decode(bytes)?;
            Request::SandboxStatus(SandboxId::from(request.pod_sandbox_id))
        }
        "ListPodSandbox" => listed_sandboxes(decode_sandbox_filter(bytes, false)?),
        "StreamPodSandboxes" => Request::FindSandboxes(decode_sandbox_filter(bytes, true)?),
        "ListContainers" => listed_containers(decode_container_filter(bytes, false)?),
        "StreamContainers" => Request::FindContainers(decode_container_filter(bytes, true)?),
        "ImageStatus" => {
            Request::ImageStatus(reference(v1::ImageStatusRequest::decode(bytes)?.image)?)
        }
        "PullImage" => Request::PullImage(reference(v1::PullImageRequest::decode(bytes)?.image)?),
        "RemoveImage" => {
            Request::RemoveImage(reference(v1::RemoveImageRequest::decode(bytes)?.image)?)
        }
        _ => return decode_for_container(method, bytes),
    })
}

fn decode_for_container(method: &str, bytes: &[u8]) -> Result<Request, RequestError> {
    Ok(match method {
        "CreateContainer" => {
            let (request, stop_signal) = extra::decode_create(bytes)?;
            Request::CreateContainer(Arc::new(containers::decode(request, stop_signal)?))
        }
        "StartContainer" => {
            let request = v1::StartContainerRequest::decode(bytes)?;
            Request::StartContainer(ContainerId::from(request.container_id))
        }
        "StopContainer" => {
            let request = v1::StopContainerRequest::decode(bytes)?;
            Request::StopContainer {
                container: ContainerId::from(request.container_id),
                grace: duration(request.timeout),
            }
        }
        "RemoveContainer" => {
            let request = v1::RemoveContainerRequest::decode(bytes)?;
            Request::RemoveContainer(ContainerId::from(request.container_id))
        }
        "ContainerStatus" => {
            let request = v1::ContainerStatusRequest::decode(bytes)?;
            Request::ContainerStatus(ContainerId::from(request.container_id))
        }
        "ExecSync" => {
            let request = v1::ExecSyncRequest::decode(bytes)?;
            Request::ExecSync {
                container: ContainerId::from(request.container_id),
                command: request.cmd,
                timeout: duration(request.timeout),
            }
        }
        "CheckpointContainer" => {
            let request = v1::CheckpointContainerRequest::decode(bytes)?;
            Request::CheckpointContainer {
                container: ContainerId::from(request.container_id),
                location: request.location,
            }
        }
        _ => {
            let call = NoEventCall::named(method).ok_or(RequestError::UnknownMethod)?;
            Request::NoEventCall(call, no_event_calls::decode(call, bytes)?)
        }
    })
}

fn encode_sandbox_filter(filter: &SandboxFilter) -> Vec<u8> {
    let state = filter.state.map(|state| v1::PodSandboxStateValue {
        state: state.into(),
    });
    let filter = v1::PodSandboxFilter {
        id: text(filter.id.as_ref()),
        state,
        label_selector: to_map(&filter.labels),
    };
    v1::ListPodSandboxRequest {
        filter: Some(filter),
    }
    .encode_to_vec()
}

fn decode_sandbox_filter(bytes: &[u8], streamed: bool) -> Result<SandboxFilter, RequestError> {
    let request = v1::ListPodSandboxRequest::decode(bytes)?;
    let filter = request.filter.unwrap_or_default();
    Ok(SandboxFilter {
        id: given(filter.id).map(SandboxId::from),
        state: filter.state.map(|value| value.state.into()),
        labels: labels(filter.label_selector),
        streamed,
    })
}

/// A filter by labels alone is that of a relist.
fn listed_sandboxes(filter: SandboxFilter) -> Request {
    if filter.id.is_none() && filter.state.is_none() {
        Request::ListSandboxes(filter.labels)
    } else {
        Request::FindSandboxes(filter)
    }
}

fn encode_container_filter(filter: &ContainerFilter) -> Vec<u8> {
    let state = filter.state.map(|state| v1::ContainerStateValue {
        state: state.into(),
    });
    let filter = v1::ContainerFilter {
        id: text(filter.id.as_ref()),
        state,
        pod_sandbox_id: text(filter.sandbox.as_ref()),
        label_selector: to_map(&filter.labels),
    };
    v1::ListContainersRequest {
        filter: Some(filter),
    }
    .encode_to_vec()
}

fn decode_container_filter(bytes: &[u8], streamed: bool) -> Result<ContainerFilter, RequestError> {
    let request = v1::ListContainersRequest::decode(bytes)?;
    let filter = request.filter.unwrap_or_default();
    Ok(ContainerFilter {
        id: given(filter.id).map(ContainerId::from),
        state: filter.state.map(|value| value.state.into()),
        sandbox: given(filter.pod_sandbox_id).map(SandboxId::from),
        labels: labels(filter.label_selector),
        streamed,
    })
}

/// A filter by sandbox and labels alone is that of a relist.
fn listed_containers(filter: ContainerFilter) -> Request {
    if filter.id.is_none() && filter.state.is_none() {
        Request::ListContainers {
            sandbox: filter.sandbox,
            labels: filter.labels,
        }
    } else {
        Request::FindContainers(filter)
    }
}

fn reference(image: Option<v1::ImageSpec>) -> Result<String, RequestError> {
    Ok(image.ok_or(RequestError::Lacks("image"))?.image)
}

fn text(id: Option<&impl ToString>) -> String {
    id.map(ToString::to_string).unwrap_or_default()
}

fn given(id: String) -> Option<String> {
    Some(id).filter(|id| !id.is_empty())
}

fn seconds(span: Duration) -> i64 {
    i64::try_from(span.as_secs()).unwrap_or(i64::MAX)
}

fn duration(seconds: i64) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}
