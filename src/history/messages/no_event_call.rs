//! Calls that read or adjust something and change no state, and so must cause no event.

use k8s_cri::v1;
use prost::{DecodeError, Message};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! no_event_calls {
    ($($(#[doc = $doc:literal])+ $name:ident $target:ident;)+) => {
        /// One of these calls, by its name in the CRI.
        #[cfg_attr(test, derive(arbitrary::Arbitrary))]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[derive(Serialize, Deserialize, JsonSchema)]
        #[serde(expecting = "a call that changes no state, such as `ContainerStats`")]
        pub enum NoEventCall {
            $($(#[doc = $doc])+ $name,)+
        }

        impl NoEventCall {
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// The call's name in the CRI.
            pub fn method(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)+
                }
            }

            /// The kind of object whose id the call has.
            pub fn target(self) -> NoEventCallTarget {
                match self {
                    $(Self::$name => NoEventCallTarget::$target,)+
                }
            }
        }
    };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoEventCallTarget {
    Container,
    Sandbox,
    Nothing,
}

no_event_calls! {
    /// Of a container.
    ReopenContainerLog Container;
    /// Of a container.
    ContainerStats Container;
    /// Of a container.
    ListContainerStats Container;
    /// Of a container: requests an address, and does not connect to it.
    Exec Container;
    /// Of a container: as `Exec`.
    Attach Container;
    /// Of a sandbox: as `Exec`.
    PortForward Sandbox;
    /// Of a sandbox.
    PodSandboxStats Sandbox;
    /// Of a sandbox.
    ListPodSandboxStats Sandbox;
    /// Of the runtime.
    Status Nothing;
    /// Of the runtime.
    RuntimeConfig Nothing;
    /// Of the runtime: with an empty network configuration.
    UpdateRuntimeConfig Nothing;
    /// Of the image service.
    ImageFsInfo Nothing;
}

impl NoEventCall {
    pub fn named(method: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|call| call.method() == method)
    }

    fn is_list(self) -> bool {
        matches!(self, Self::ListContainerStats | Self::ListPodSandboxStats)
    }
}

/// The request of such a call about the sandbox or container with this id, which is field 1 of
/// each message, or of its filter.
pub(super) fn encode(call: NoEventCall, id: String) -> Vec<u8> {
    match call {
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
        NoEventCall::UpdateRuntimeConfig => v1::UpdateRuntimeConfigRequest {
            runtime_config: Some(v1::RuntimeConfig {
                network_config: Some(v1::NetworkConfig::default()),
            }),
        }
        .encode_to_vec(),
        _ if call.target() == NoEventCallTarget::Nothing => Vec::new(),
        _ if call.is_list() => v1::ListContainerStatsRequest {
            filter: Some(v1::ContainerStatsFilter {
                id,
                ..Default::default()
            }),
        }
        .encode_to_vec(),
        _ => v1::ContainerStatsRequest { container_id: id }.encode_to_vec(),
    }
}

/// The id in the request of such a call; empty if it has none.
pub(super) fn decode(call: NoEventCall, bytes: &[u8]) -> Result<String, DecodeError> {
    if call.target() == NoEventCallTarget::Nothing {
        <()>::decode(bytes)?;
        return Ok(String::new());
    }
    if call.is_list() {
        let request = v1::ListContainerStatsRequest::decode(bytes)?;
        return Ok(request.filter.unwrap_or_default().id);
    }
    Ok(v1::ContainerStatsRequest::decode(bytes)?.container_id)
}
