//! Calls that read or adjust something and change no state, and so must cause no event.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One of these calls, by its name in the CRI.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(expecting = "a call that changes no state, such as `ContainerStats`")]
pub enum NoEventCall {
    /// Of a container: sets resources that it has anyway.
    UpdateContainerResources,
    /// Of a container.
    ReopenContainerLog,
    /// Of a container.
    ContainerStats,
    /// Of a container.
    ListContainerStats,
    /// Of a container: asks for an address, to which nobody connects.
    Exec,
    /// Of a container: as `Exec`.
    Attach,
    /// Of a sandbox: as `Exec`.
    PortForward,
    /// Of a sandbox.
    PodSandboxStats,
    /// Of a sandbox.
    ListPodSandboxStats,
    /// Of the runtime.
    Status,
    /// Of the runtime.
    RuntimeConfig,
    /// Of the runtime: with an empty network configuration.
    UpdateRuntimeConfig,
    /// Of the image service.
    ImageFsInfo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoEventCallTarget {
    Container,
    Sandbox,
    Nothing,
}

impl NoEventCall {
    pub const ALL: &[Self] = &[
        Self::UpdateContainerResources,
        Self::ReopenContainerLog,
        Self::ContainerStats,
        Self::ListContainerStats,
        Self::Exec,
        Self::Attach,
        Self::PortForward,
        Self::PodSandboxStats,
        Self::ListPodSandboxStats,
        Self::Status,
        Self::RuntimeConfig,
        Self::UpdateRuntimeConfig,
        Self::ImageFsInfo,
    ];

    /// The call's name in the CRI.
    pub fn method(self) -> &'static str {
        match self {
            Self::UpdateContainerResources => "UpdateContainerResources",
            Self::ReopenContainerLog => "ReopenContainerLog",
            Self::ContainerStats => "ContainerStats",
            Self::ListContainerStats => "ListContainerStats",
            Self::Exec => "Exec",
            Self::Attach => "Attach",
            Self::PortForward => "PortForward",
            Self::PodSandboxStats => "PodSandboxStats",
            Self::ListPodSandboxStats => "ListPodSandboxStats",
            Self::Status => "Status",
            Self::RuntimeConfig => "RuntimeConfig",
            Self::UpdateRuntimeConfig => "UpdateRuntimeConfig",
            Self::ImageFsInfo => "ImageFsInfo",
        }
    }

    pub fn named(method: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|call| call.method() == method)
    }

    /// What the call is about.
    pub fn target(self) -> NoEventCallTarget {
        match self {
            Self::UpdateContainerResources
            | Self::ReopenContainerLog
            | Self::ContainerStats
            | Self::ListContainerStats
            | Self::Exec
            | Self::Attach => NoEventCallTarget::Container,
            Self::PortForward | Self::PodSandboxStats | Self::ListPodSandboxStats => {
                NoEventCallTarget::Sandbox
            }
            Self::Status | Self::RuntimeConfig | Self::UpdateRuntimeConfig | Self::ImageFsInfo => {
                NoEventCallTarget::Nothing
            }
        }
    }
}
