//! The fields of `CreateContainerRequest`, in both directions.

use std::collections::HashMap;
use std::sync::Arc;

use k8s_cri::v1;

use super::{image_spec, labels, sandboxes, to_map};
use crate::history::protobuf::Unreadable;
use crate::history::{ContainerId, ContainerSpec, Flaw, Mount, SandboxId, SandboxSpec, Signal};

/// The file of a cgroup of version 2 that says whether an OOM kill takes all of it.
const OOM_GROUP: &str = "memory.oom.group";
/// The environment variable of a container that says at which operation the faulty OCI runtime
/// crashes.
const DEMAND: &str = "CRI_EVENT_CONFORMANCE_FAULT";
/// A file that is in every container.
const A_FILE: &str = "/proc/version";
/// A user that no image of the suite has.
const NO_USER: &str = "nobody-of-this-name";

/// The request without the stop signal.
pub(super) fn encode(spec: &ContainerSpec) -> v1::CreateContainerRequest {
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
                    ..sandboxes::limited_to(spec.memory_bytes)
                }),
                security_context: Some(v1::LinuxContainerSecurityContext {
                    namespace_options: Some(namespaces(spec)),
                    run_as_username: only(spec.flaw, Flaw::User, NO_USER),
                    ..Default::default()
                }),
            }),
            ..Default::default()
        }),
        sandbox_config: Some(sandboxes::encode(&spec.sandbox_spec)),
    }
}

/// Fields that the suite never sets are dropped.
pub(super) fn decode(
    request: v1::CreateContainerRequest,
    stop_signal: Signal,
) -> Result<ContainerSpec, Unreadable> {
    let config = request.config.ok_or(Unreadable::Lacks("config"))?;
    let metadata = config.metadata.ok_or(Unreadable::Lacks("metadata"))?;
    let sandbox_spec = match request.sandbox_config {
        Some(config) => sandboxes::decode(config)?,
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
        memory_bytes: sandboxes::limit_of(resources.memory_limit_in_bytes),
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
fn namespaces(spec: &ContainerSpec) -> v1::NamespaceOption {
    let pod = sandboxes::namespaces(&spec.sandbox_spec);
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
