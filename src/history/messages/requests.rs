//! Requests, in both directions.

use std::sync::Arc;

use k8s_cri::v1;
use prost::Message;

use super::errors::RequestError;
use super::{containers, extra, labels, no_event_calls, sandboxes, to_map};
use crate::history::protobuf::Unreadable;
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
        Request::CreateContainer(spec) => {
            extra::encode_create(containers::encode(spec), spec.stop_signal)
        }
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
        Request::NoEventCall(call, id) => no_event_calls::encode(*call, id.clone()),
        _ => request.to_bytes(),
    }
}

/// The request of the CRI's method of this name.
pub fn decode_request(method: &str, bytes: &[u8]) -> Result<Request, RequestError> {
    Ok(match method {
        "Version" => Request::Version,
        "RunPodSandbox" => {
            let request = v1::RunPodSandboxRequest::decode(bytes)?;
            let config = request.config.ok_or(Unreadable::Lacks("config"))?;
            Request::RunSandbox(Arc::new(SandboxSpec {
                runtime_handler: request.runtime_handler,
                ..sandboxes::decode(config)?
            }))
        }
        "CreateContainer" => {
            let (request, stop_signal) = extra::decode_create(bytes)?;
            Request::CreateContainer(Arc::new(containers::decode(request, stop_signal)?))
        }
        "ListPodSandbox" => listed_sandboxes(decode_sandbox_filter(bytes, false)?),
        "StreamPodSandboxes" => Request::FindSandboxes(decode_sandbox_filter(bytes, true)?),
        "ListContainers" => listed_containers(decode_container_filter(bytes, false)?),
        "StreamContainers" => Request::FindContainers(decode_container_filter(bytes, true)?),
        _ => {
            if let Some(request) = Request::read(method, bytes)? {
                return Ok(request);
            }
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

fn text(id: Option<&impl ToString>) -> String {
    id.map(ToString::to_string).unwrap_or_default()
}

fn given(id: String) -> Option<String> {
    Some(id).filter(|id| !id.is_empty())
}
