//! The fields of `PodSandboxConfig`, in both directions.

use k8s_cri::v1;

use super::{labels, to_map};
use crate::history::protobuf::Unreadable;
use crate::history::{PodUid, SandboxSpec};

pub(super) fn encode(spec: &SandboxSpec) -> v1::PodSandboxConfig {
    v1::PodSandboxConfig {
        metadata: Some(v1::PodSandboxMetadata {
            name: spec.name.clone(),
            uid: spec.uid.to_string(),
            namespace: spec.namespace.clone(),
            attempt: spec.attempt,
        }),
        labels: to_map(&spec.labels),
        annotations: to_map(&spec.annotations),
        log_directory: spec.log_directory.clone(),
        linux: Some(v1::LinuxPodSandboxConfig {
            security_context: Some(v1::LinuxSandboxSecurityContext {
                namespace_options: Some(namespaces(spec)),
                ..Default::default()
            }),
            sysctls: to_map(&spec.sysctls),
            cgroup_parent: spec.cgroup_parent.clone(),
            resources: spec.memory_bytes.map(|_| limited_to(spec.memory_bytes)),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// Fields that the suite never sets are dropped; the runtime handler is not part of the message.
pub(super) fn decode(config: v1::PodSandboxConfig) -> Result<SandboxSpec, Unreadable> {
    let metadata = config.metadata.ok_or(Unreadable::Lacks("metadata"))?;
    let linux = config.linux.unwrap_or_default();
    let security = linux.security_context.unwrap_or_default();
    let namespaces = security.namespace_options.unwrap_or_default();
    let limit = linux.resources.unwrap_or_default().memory_limit_in_bytes;
    Ok(SandboxSpec {
        binding: String::new(),
        name: metadata.name,
        namespace: metadata.namespace,
        uid: PodUid::from(metadata.uid),
        attempt: metadata.attempt,
        labels: labels(config.labels),
        annotations: labels(config.annotations),
        runtime_handler: String::new(),
        sysctls: labels(linux.sysctls),
        own_network: namespaces.network != v1::NamespaceMode::Node as i32,
        shared_pid: namespaces.pid == v1::NamespaceMode::Pod as i32,
        cgroup_parent: linux.cgroup_parent,
        memory_bytes: limit_of(limit),
        log_directory: config.log_directory,
    })
}

/// The host's network by default, so that no CNI plugin is needed, and a PID namespace for each
/// container unless they share one.
pub(super) fn namespaces(spec: &SandboxSpec) -> v1::NamespaceOption {
    let network = if spec.own_network {
        v1::NamespaceMode::Pod
    } else {
        v1::NamespaceMode::Node
    };
    let pid = if spec.shared_pid {
        v1::NamespaceMode::Pod
    } else {
        v1::NamespaceMode::Container
    };
    v1::NamespaceOption {
        network: network as i32,
        pid: pid as i32,
        ..Default::default()
    }
}

/// A memory limit without swap, or no limit.
pub(super) fn limited_to(memory_bytes: Option<u64>) -> v1::LinuxContainerResources {
    let limit = memory_bytes.map_or(0, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
    v1::LinuxContainerResources {
        memory_limit_in_bytes: limit,
        memory_swap_limit_in_bytes: limit,
        ..Default::default()
    }
}

/// A limit that is set.
pub(super) fn limit_of(memory_limit_in_bytes: i64) -> Option<u64> {
    let bytes = u64::try_from(memory_limit_in_bytes).ok();
    bytes.filter(|bytes| *bytes > 0)
}
