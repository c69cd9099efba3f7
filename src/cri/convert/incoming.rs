//! Requests as a server gets them, in our own types. What the suite never asks for is left out.

use std::sync::Arc;
use std::time::Duration;

use k8s_cri::v1;
use tonic::Status;

use super::details::demanded;
use super::{OOM_GROUP, container_state, labels, sandbox_state};
use crate::history::{
    Aside, ContainerFilter, ContainerId, ContainerSpec, Flaw, PodUid, Request, SandboxFilter,
    SandboxId, SandboxSpec, Signal,
};

pub(crate) fn run_sandbox(ask: &v1::RunPodSandboxRequest) -> Result<Request, Status> {
    let config = ask.config.as_ref().ok_or_else(|| lacks("config"))?;
    let mut spec = sandbox_spec(config)?;
    spec.runtime_handler.clone_from(&ask.runtime_handler);
    Ok(Request::RunSandbox(Arc::new(spec)))
}

fn sandbox_spec(config: &v1::PodSandboxConfig) -> Result<SandboxSpec, Status> {
    let metadata = config.metadata.clone().ok_or_else(|| lacks("metadata"))?;
    let linux = config.linux.clone().unwrap_or_default();
    let security = linux.security_context.unwrap_or_default();
    let namespaces = security.namespace_options.unwrap_or_default();
    let limit = linux.resources.unwrap_or_default().memory_limit_in_bytes;
    Ok(SandboxSpec {
        binding: String::new(),
        name: metadata.name,
        namespace: metadata.namespace,
        uid: PodUid::from(metadata.uid),
        attempt: metadata.attempt,
        labels: labels(config.labels.clone()),
        annotations: labels(config.annotations.clone()),
        runtime_handler: String::new(),
        sysctls: labels(linux.sysctls),
        own_network: namespaces.network != v1::NamespaceMode::Node as i32,
        shared_pid: namespaces.pid == v1::NamespaceMode::Pod as i32,
        cgroup_parent: linux.cgroup_parent,
        memory_bytes: bytes(limit),
        log_directory: config.log_directory.clone(),
    })
}

pub(crate) fn create_container(
    ask: &v1::CreateContainerRequest,
    stop_signal: Signal,
) -> Result<Request, Status> {
    let config = ask.config.clone().ok_or_else(|| lacks("config"))?;
    let metadata = config.metadata.ok_or_else(|| lacks("metadata"))?;
    let sandbox_spec = match &ask.sandbox_config {
        Some(config) => sandbox_spec(config)?,
        None => SandboxSpec::default(),
    };
    let linux = config.linux.unwrap_or_default();
    let security = linux.security_context.unwrap_or_default();
    let namespaces = security.namespace_options.unwrap_or_default();
    let joins = namespaces.pid == v1::NamespaceMode::Target as i32;
    let user = security.run_as_username;
    let flaws = [
        (Some(Flaw::User), !user.is_empty()),
        (Some(Flaw::Directory), !config.working_dir.is_empty()),
        (demanded(&config.envs), true),
    ];
    let resources = linux.resources.unwrap_or_default();
    let limit = resources.memory_limit_in_bytes;
    let oom_group = resources.unified.get(OOM_GROUP);
    let mut command = config.command;
    command.extend(config.args);
    let mut spec = ContainerSpec {
        sandbox: SandboxId::from(ask.pod_sandbox_id.clone()),
        sandbox_spec: Arc::new(sandbox_spec),
        binding: metadata.name,
        attempt: metadata.attempt,
        image: config.image.unwrap_or_default().image,
        command,
        name: None,
        tty: config.tty,
        declared_exit: None,
        memory_bytes: bytes(limit),
        labels: labels(config.labels),
        annotations: labels(config.annotations),
        flaw: flaws
            .into_iter()
            .find(|(_, has)| *has)
            .and_then(|(flaw, _)| flaw),
        stop_signal,
        pid_target: joins.then(|| ContainerId::from(namespaces.target_id)),
        oom_group: oom_group.is_some_and(|group| group == "1"),
        mounted: false,
        log_path: config.log_path,
    };
    spec.set_mounts(config.mounts.iter().map(|mount| &*mount.container_path));
    Ok(Request::CreateContainer(Arc::new(spec)))
}

/// A limit that is set.
fn bytes(limit: i64) -> Option<u64> {
    u64::try_from(limit).ok().filter(|limit| *limit > 0)
}

pub(crate) fn stop_container(ask: &v1::StopContainerRequest) -> Request {
    Request::StopContainer {
        container: ContainerId::from(ask.container_id.clone()),
        grace: Duration::from_secs(u64::try_from(ask.timeout).unwrap_or(0)),
    }
}

pub(crate) fn exec_sync(ask: &v1::ExecSyncRequest) -> Request {
    Request::ExecSync {
        container: ContainerId::from(ask.container_id.clone()),
        command: ask.cmd.clone(),
        timeout: Duration::from_secs(u64::try_from(ask.timeout).unwrap_or(0)),
    }
}

/// A call that changes no state.
pub(crate) fn aside(aside: Aside, id: &str) -> Request {
    Request::Aside(aside, id.to_owned())
}

pub(crate) fn list_sandboxes(ask: &v1::ListPodSandboxRequest) -> Request {
    let filter = sandbox_filter(ask, false);
    if filter.id.is_none() && filter.state.is_none() {
        Request::ListSandboxes(filter.labels)
    } else {
        Request::FindSandboxes(filter)
    }
}

pub(crate) fn stream_sandboxes(ask: &v1::ListPodSandboxRequest) -> Request {
    Request::FindSandboxes(sandbox_filter(ask, true))
}

fn sandbox_filter(ask: &v1::ListPodSandboxRequest, streamed: bool) -> SandboxFilter {
    let filter = ask.filter.clone().unwrap_or_default();
    SandboxFilter {
        id: Some(filter.id)
            .filter(|id| !id.is_empty())
            .map(SandboxId::from),
        state: filter.state.map(|value| sandbox_state(value.state)),
        labels: labels(filter.label_selector),
        streamed,
    }
}

pub(crate) fn list_containers(ask: &v1::ListContainersRequest) -> Request {
    let filter = container_filter(ask, false);
    if filter.id.is_none() && filter.state.is_none() {
        let ContainerFilter {
            sandbox, labels, ..
        } = filter;
        Request::ListContainers { sandbox, labels }
    } else {
        Request::FindContainers(filter)
    }
}

pub(crate) fn stream_containers(ask: &v1::ListContainersRequest) -> Request {
    Request::FindContainers(container_filter(ask, true))
}

fn container_filter(ask: &v1::ListContainersRequest, streamed: bool) -> ContainerFilter {
    let filter = ask.filter.clone().unwrap_or_default();
    let sandbox = Some(filter.pod_sandbox_id).filter(|id| !id.is_empty());
    ContainerFilter {
        id: Some(filter.id)
            .filter(|id| !id.is_empty())
            .map(ContainerId::from),
        state: filter.state.map(|value| container_state(value.state)),
        sandbox: sandbox.map(SandboxId::from),
        labels: labels(filter.label_selector),
        streamed,
    }
}

/// The image that a request names.
pub(crate) fn image(spec: Option<&v1::ImageSpec>) -> Result<String, Status> {
    let spec = spec.ok_or_else(|| lacks("image"))?;
    Ok(spec.image.clone())
}

fn lacks(field: &str) -> Status {
    Status::invalid_argument(format!("the request lacks `{field}`"))
}
