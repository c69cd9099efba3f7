//! The calls that change no state and so cause no event. Their responses are not looked at.

use k8s_cri::v1;
use prost::{DecodeError, Message};

use crate::history::NoEventCall;

/// The request of such a call about the sandbox or container with this id.
pub(super) fn encode(call: NoEventCall, id: String) -> Vec<u8> {
    match call {
        NoEventCall::UpdateContainerResources => v1::UpdateContainerResourcesRequest {
            container_id: id,
            linux: Some(v1::LinuxContainerResources::default()),
            ..Default::default()
        }
        .encode_to_vec(),
        NoEventCall::ReopenContainerLog => {
            v1::ReopenContainerLogRequest { container_id: id }.encode_to_vec()
        }
        NoEventCall::ContainerStats => {
            v1::ContainerStatsRequest { container_id: id }.encode_to_vec()
        }
        NoEventCall::ListContainerStats => v1::ListContainerStatsRequest {
            filter: Some(v1::ContainerStatsFilter {
                id,
                ..Default::default()
            }),
        }
        .encode_to_vec(),
        NoEventCall::Exec => v1::ExecRequest {
            container_id: id,
            cmd: vec!["true".to_owned()],
            stdout: true,
            ..Default::default()
        }
        .encode_to_vec(),
        NoEventCall::Attach => v1::AttachRequest {
            container_id: id,
            stdout: true,
            ..Default::default()
        }
        .encode_to_vec(),
        NoEventCall::PortForward => v1::PortForwardRequest {
            pod_sandbox_id: id,
            port: Vec::new(),
        }
        .encode_to_vec(),
        NoEventCall::PodSandboxStats => {
            v1::PodSandboxStatsRequest { pod_sandbox_id: id }.encode_to_vec()
        }
        NoEventCall::ListPodSandboxStats => v1::ListPodSandboxStatsRequest {
            filter: Some(v1::PodSandboxStatsFilter {
                id,
                ..Default::default()
            }),
        }
        .encode_to_vec(),
        NoEventCall::UpdateRuntimeConfig => v1::UpdateRuntimeConfigRequest {
            runtime_config: Some(v1::RuntimeConfig {
                network_config: Some(v1::NetworkConfig::default()),
            }),
        }
        .encode_to_vec(),
        NoEventCall::Status | NoEventCall::RuntimeConfig | NoEventCall::ImageFsInfo => Vec::new(),
    }
}

/// The id that the request of such a call is about; empty if that has none.
pub(super) fn decode(call: NoEventCall, bytes: &[u8]) -> Result<String, DecodeError> {
    Ok(match call {
        NoEventCall::UpdateContainerResources => {
            v1::UpdateContainerResourcesRequest::decode(bytes)?.container_id
        }
        NoEventCall::ReopenContainerLog => {
            v1::ReopenContainerLogRequest::decode(bytes)?.container_id
        }
        NoEventCall::ContainerStats => v1::ContainerStatsRequest::decode(bytes)?.container_id,
        NoEventCall::ListContainerStats => {
            let request = v1::ListContainerStatsRequest::decode(bytes)?;
            request.filter.unwrap_or_default().id
        }
        NoEventCall::Exec => v1::ExecRequest::decode(bytes)?.container_id,
        NoEventCall::Attach => v1::AttachRequest::decode(bytes)?.container_id,
        NoEventCall::PortForward => v1::PortForwardRequest::decode(bytes)?.pod_sandbox_id,
        NoEventCall::PodSandboxStats => v1::PodSandboxStatsRequest::decode(bytes)?.pod_sandbox_id,
        NoEventCall::ListPodSandboxStats => {
            let request = v1::ListPodSandboxStatsRequest::decode(bytes)?;
            request.filter.unwrap_or_default().id
        }
        NoEventCall::Status
        | NoEventCall::RuntimeConfig
        | NoEventCall::UpdateRuntimeConfig
        | NoEventCall::ImageFsInfo => {
            <()>::decode(bytes)?;
            String::new()
        }
    })
}
