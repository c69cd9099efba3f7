//! The CRI's messages that create sandboxes and containers, in both directions.
//!
//! The generated messages lack stop signals of containers (KEP-4960). The configuration of a
//! container is encoded as the generated message followed by the missing field. Decoders accept
//! that, since protobuf merges the parts of an embedded message.

use std::collections::HashMap;
use std::sync::Arc;

use k8s_cri::v1;
use prost::{DecodeError, Message};

use super::{image_spec, labels, to_map};
use crate::history::protobuf::Unreadable;
use crate::history::{
    ContainerId, ContainerSpec, Flaw, Mount, PodUid, SandboxId, SandboxSpec, Signal,
};

/// The file of a cgroup of version 2 that says whether an OOM kill takes all of it.
const OOM_GROUP: &str = "memory.oom.group";
/// The environment variable of a container that says at which operation the faulty OCI runtime
/// crashes.
const DEMAND: &str = "CRI_EVENT_CONFORMANCE_FAULT";
/// A file that is in every container.
const A_FILE: &str = "/proc/version";
/// A user that no image of the suite has.
const NO_USER: &str = "nobody-of-this-name";

/// `CreateContainerRequest` with its configuration in parts.
#[derive(Clone, PartialEq, Message)]
struct CreateContainer {
    #[prost(string, tag = "1")]
    pod_sandbox_id: String,
    #[prost(bytes = "vec", repeated, tag = "2")]
    config: Vec<Vec<u8>>,
    #[prost(message, optional, tag = "3")]
    sandbox_config: Option<v1::PodSandboxConfig>,
}

/// The fields that the generated `ContainerConfig` lacks.
#[derive(Clone, PartialEq, Message)]
struct ConfigExtra {
    #[prost(int32, tag = "18")]
    stop_signal: i32,
}

pub(super) fn encode_sandbox(spec: &SandboxSpec) -> v1::PodSandboxConfig {
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
pub(super) fn decode_sandbox(config: v1::PodSandboxConfig) -> Result<SandboxSpec, Unreadable> {
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

fn namespaces(spec: &SandboxSpec) -> v1::NamespaceOption {
    let modes = spec.namespaces();
    v1::NamespaceOption {
        network: modes.network.into(),
        pid: modes.pid.into(),
        ipc: modes.ipc.into(),
        ..Default::default()
    }
}

/// A memory limit without swap, or no limit.
fn limited_to(memory_bytes: Option<u64>) -> v1::LinuxContainerResources {
    let limit = memory_bytes.map_or(0, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
    v1::LinuxContainerResources {
        memory_limit_in_bytes: limit,
        memory_swap_limit_in_bytes: limit,
        ..Default::default()
    }
}

/// A limit that is set.
fn limit_of(memory_limit_in_bytes: i64) -> Option<u64> {
    let bytes = u64::try_from(memory_limit_in_bytes).ok();
    bytes.filter(|bytes| *bytes > 0)
}

/// The request without the stop signal.
pub(super) fn encode_container(spec: &ContainerSpec) -> v1::CreateContainerRequest {
    v1::CreateContainerRequest {
        pod_sandbox_id: spec.sandbox.to_string(),
        config: Some(v1::ContainerConfig {
            metadata: Some(v1::ContainerMetadata {
                name: spec.name().to_owned(),
                attempt: spec.attempt,
            }),
            image: Some(image_spec(&spec.image)),
            command: spec.command.clone(),
            tty: spec.tty,
            working_dir: only(spec.flaw, Flaw::Directory, A_FILE),
            envs: demand(spec.flaw),
            mounts: spec.mounts().iter().map(mount).collect(),
            labels: to_map(&spec.labels),
            log_path: spec.log_path.clone(),
            annotations: to_map(&spec.annotations),
            linux: Some(v1::LinuxContainerConfig {
                resources: Some(v1::LinuxContainerResources {
                    unified: unified(spec),
                    ..limited_to(spec.memory_bytes)
                }),
                security_context: Some(v1::LinuxContainerSecurityContext {
                    namespace_options: Some(container_namespaces(spec)),
                    run_as_username: only(spec.flaw, Flaw::User, NO_USER),
                    ..Default::default()
                }),
            }),
            ..Default::default()
        }),
        sandbox_config: Some(encode_sandbox(&spec.sandbox_spec)),
    }
}

/// Fields that the suite never sets are dropped.
pub(super) fn decode_container(
    request: v1::CreateContainerRequest,
    stop_signal: Signal,
) -> Result<ContainerSpec, Unreadable> {
    let config = request.config.ok_or(Unreadable::Lacks("config"))?;
    let metadata = config.metadata.ok_or(Unreadable::Lacks("metadata"))?;
    let sandbox_spec = match request.sandbox_config {
        Some(config) => decode_sandbox(config)?,
        None => SandboxSpec::default(),
    };
    let linux = config.linux.unwrap_or_default();
    let security = linux.security_context.unwrap_or_default();
    let namespaces = security.namespace_options.unwrap_or_default();
    let joins = namespaces.pid == v1::NamespaceMode::Target as i32;
    let resources = linux.resources.unwrap_or_default();
    let oom_group = resources.unified.get(OOM_GROUP);
    let image = config.image.unwrap_or_default().image;
    let flaws = [
        (
            Some(Flaw::Checkpoint),
            image.ends_with(ContainerSpec::DAMAGED),
        ),
        (Some(Flaw::User), !security.run_as_username.is_empty()),
        (Some(Flaw::Directory), !config.working_dir.is_empty()),
        (demanded(&config.envs), true),
    ];
    let mut flaws = flaws.into_iter().filter(|(_, has)| *has);
    let mut command = config.command;
    command.extend(config.args);
    let mut spec = ContainerSpec {
        sandbox: SandboxId::from(request.pod_sandbox_id),
        sandbox_spec: Arc::new(sandbox_spec),
        binding: metadata.name,
        attempt: metadata.attempt,
        image,
        command,
        name: None,
        tty: config.tty,
        declared_exit: None,
        memory_bytes: limit_of(resources.memory_limit_in_bytes),
        labels: labels(config.labels),
        annotations: labels(config.annotations),
        flaw: flaws.next().and_then(|(flaw, _)| flaw),
        stop_signal,
        pid_target: joins.then(|| ContainerId::from(namespaces.target_id)),
        oom_group: oom_group.is_some_and(|group| group == "1"),
        mounted: false,
        log_path: config.log_path,
    };
    spec.set_mounts(config.mounts.iter().map(|mount| &*mount.container_path));
    Ok(spec)
}

/// The pod's namespaces, except for the PID namespace if the container joins that of another one.
fn container_namespaces(spec: &ContainerSpec) -> v1::NamespaceOption {
    let pod = namespaces(&spec.sandbox_spec);
    match &spec.pid_target {
        None => pod,
        Some(target) => v1::NamespaceOption {
            pid: v1::NamespaceMode::Target as i32,
            target_id: target.to_string(),
            ..pod
        },
    }
}

/// Settings of the container's cgroup besides its limits. On cgroup v1 some OCI runtimes refuse
/// them, and others ignore them.
fn unified(spec: &ContainerSpec) -> HashMap<String, String> {
    let group = (OOM_GROUP.to_owned(), "1".to_owned());
    spec.oom_group.then_some(group).into_iter().collect()
}

/// The text if the container has the flaw.
fn only(has: Option<Flaw>, flaw: Flaw, text: &str) -> String {
    let text = (has == Some(flaw)).then(|| text.to_owned());
    text.unwrap_or_default()
}

/// The environment that makes the faulty OCI runtime crash for this flaw.
fn demand(flaw: Option<Flaw>) -> Vec<v1::KeyValue> {
    let verb = flaw.and_then(Flaw::crashes_at);
    let variable = verb.map(|verb| v1::KeyValue {
        key: DEMAND.to_owned(),
        value: verb.to_owned(),
    });
    variable.into_iter().collect()
}

fn demanded(environment: &[v1::KeyValue]) -> Option<Flaw> {
    let variable = environment.iter().find(|variable| variable.key == DEMAND)?;
    let mut crashes = Flaw::CRASHES.into_iter();
    let (flaw, _) = crashes.find(|(_, verb)| *verb == variable.value)?;
    Some(flaw)
}

fn mount(mount: &Mount) -> v1::Mount {
    v1::Mount {
        container_path: mount.container_path.to_string(),
        host_path: mount.host_path.to_string(),
        readonly: mount.readonly,
        ..Default::default()
    }
}

/// A request for a container with this stop signal.
pub(super) fn encode_create(
    request: v1::CreateContainerRequest,
    Signal(stop_signal): Signal,
) -> Vec<u8> {
    let mut config = request.config.unwrap_or_default().encode_to_vec();
    config.extend(ConfigExtra { stop_signal }.encode_to_vec());
    let request = CreateContainer {
        pod_sandbox_id: request.pod_sandbox_id,
        config: vec![config],
        sandbox_config: request.sandbox_config,
    };
    request.encode_to_vec()
}

/// The request, and the stop signal in it.
pub(super) fn decode_create(
    bytes: &[u8],
) -> Result<(v1::CreateContainerRequest, Signal), DecodeError> {
    let parts = CreateContainer::decode(bytes)?;
    let extra = ConfigExtra::decode(&*parts.config.concat())?;
    let request = v1::CreateContainerRequest::decode(bytes)?;
    Ok((request, Signal(extra.stop_signal)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_knows_no_stop_signals_reads_the_rest() {
        let config = v1::ContainerConfig {
            working_dir: "/here".to_owned(),
            tty: true,
            ..Default::default()
        };
        let request = v1::CreateContainerRequest {
            pod_sandbox_id: "pod".to_owned(),
            config: Some(config),
            ..Default::default()
        };
        let sent = encode_create(request.clone(), Signal::USER_1);
        let read = v1::CreateContainerRequest::decode(&sent[..]);
        assert_eq!(read, Ok(request.clone()));
        assert_eq!(decode_create(&sent), Ok((request, Signal::USER_1)));
    }

    #[test]
    fn a_signal_is_where_the_cri_has_it() {
        let sent = encode_create(v1::CreateContainerRequest::default(), Signal::USER_1);
        assert_eq!(sent, [0x12, 3, 0x90, 1, 29]);
    }

    #[test]
    fn parts_of_a_configuration_are_put_together() {
        let config = v1::ContainerConfig {
            tty: true,
            ..Default::default()
        };
        let stop_signal = Signal::USER_2.0;
        let parts = CreateContainer {
            config: vec![
                ConfigExtra { stop_signal }.encode_to_vec(),
                config.encode_to_vec(),
            ],
            ..CreateContainer::default()
        };
        let (request, signal) = decode_create(&parts.encode_to_vec()).unwrap();
        assert_eq!((request.config, signal), (Some(config), Signal::USER_2));
    }
}
