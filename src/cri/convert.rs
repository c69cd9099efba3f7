//! Between the CRI's messages and our own types. Nothing is judged here: what a runtime leaves out
//! stays left out, what it garbles stays garbled.

mod details;
pub(super) mod incoming;
pub(super) mod outgoing;

use std::collections::HashMap;
use std::sync::Arc;

use k8s_cri::v1;

use crate::history::{
    ContainerFilter, ContainerId, ContainerListing, ContainerMetadata, ContainerReport,
    ContainerSpec, ContainerState, ContainerStatus, Event, EventKind, Flaw, ImageListing, Labels,
    PodUid, Reply, RuntimeNanos, RuntimeStatus, RuntimeVersion, SandboxFilter, SandboxId,
    SandboxListing, SandboxMetadata, SandboxReport, SandboxSpec, SandboxState, SandboxStatus,
    Shared,
};

/// An answer that names what was made.
pub(super) trait Created {
    fn reply(self) -> Reply;
}

impl Created for v1::RunPodSandboxResponse {
    fn reply(self) -> Reply {
        Reply::Sandbox(SandboxId::from(self.pod_sandbox_id))
    }
}

impl Created for v1::CreateContainerResponse {
    fn reply(self) -> Reply {
        Reply::Container(ContainerId::from(self.container_id))
    }
}

pub(super) fn created(answer: impl Created) -> Reply {
    answer.reply()
}

/// An answer that says nothing but "done".
pub(super) fn done<T>(_answer: T) -> Reply {
    Reply::Done
}

pub(super) fn event(message: v1::ContainerEventResponse) -> Event {
    Event {
        container: ContainerId::from(message.container_id),
        kind: match message.container_event_type {
            0 => EventKind::Created,
            1 => EventKind::Started,
            2 => EventKind::Stopped,
            3 => EventKind::Deleted,
            number => EventKind::Unknown(number),
        },
        created_at: RuntimeNanos(message.created_at),
        sandbox: message
            .pod_sandbox_status
            .map(|status| sandbox_status(status).into()),
        containers: shared_statuses(message.containers_statuses),
    }
}

pub(super) fn version(answer: v1::VersionResponse) -> Reply {
    Reply::Version(RuntimeVersion {
        runtime_name: answer.runtime_name,
        runtime_version: answer.runtime_version,
        api_version: answer.runtime_api_version,
    })
}

pub(super) fn sandbox_status_reply(
    answer: v1::PodSandboxStatusResponse,
) -> Result<Reply, tonic::Status> {
    let status = answer.status.ok_or_else(|| empty("PodSandboxStatus"))?;
    Ok(Reply::SandboxStatus(SandboxReport {
        status: sandbox_status(status).into(),
        containers: shared_statuses(answer.containers_statuses),
        timestamp: RuntimeNanos(answer.timestamp),
    }))
}

pub(super) fn container_report(
    status: Option<v1::ContainerStatus>,
) -> Result<ContainerReport, tonic::Status> {
    let status = status.ok_or_else(|| empty("ContainerStatus"))?;
    Ok(container_status(status).into())
}

fn empty(method: &str) -> tonic::Status {
    tonic::Status::data_loss(format!(
        "the runtime answered {method} with OK and without a status"
    ))
}

fn sandbox_status(status: v1::PodSandboxStatus) -> SandboxStatus {
    let network = status.network.unwrap_or_default();
    let addresses = std::iter::once(network.ip)
        .chain(network.additional_ips.into_iter().map(|address| address.ip));
    SandboxStatus {
        id: SandboxId::from(status.id),
        metadata: status.metadata.map(sandbox_metadata),
        state: sandbox_state(status.state),
        created_at: RuntimeNanos(status.created_at),
        ips: addresses.filter(|address| !address.is_empty()).collect(),
        labels: labels(status.labels),
        annotations: labels(status.annotations),
        runtime_handler: status.runtime_handler,
    }
}

fn shared_statuses(statuses: Vec<v1::ContainerStatus>) -> Vec<Shared<ContainerStatus>> {
    let statuses = statuses.into_iter();
    statuses
        .map(|status| container_status(status).into())
        .collect()
}

fn container_status(mut status: v1::ContainerStatus) -> ContainerStatus {
    let details = details::take(&mut status);
    ContainerStatus {
        id: ContainerId::from(status.id),
        metadata: status.metadata.map(container_metadata),
        state: container_state(status.state),
        created_at: RuntimeNanos(status.created_at),
        started_at: RuntimeNanos(status.started_at),
        finished_at: RuntimeNanos(status.finished_at),
        exit_code: status.exit_code,
        image: status.image.map(|image| image.image.into()),
        image_ref: status.image_ref.into(),
        reason: status.reason.into(),
        message: status.message,
        labels: labels(status.labels),
        annotations: labels(status.annotations),
        details: Some(details.into()),
    }
}

pub(super) fn sandboxes(answer: v1::ListPodSandboxResponse) -> Reply {
    let listing = |item: v1::PodSandbox| SandboxListing {
        id: SandboxId::from(item.id),
        metadata: item.metadata.map(sandbox_metadata),
        state: sandbox_state(item.state),
        created_at: RuntimeNanos(item.created_at),
        labels: labels(item.labels),
    };
    Reply::Sandboxes(answer.items.into_iter().map(listing).collect())
}

pub(super) fn containers(answer: v1::ListContainersResponse) -> Reply {
    let listing = |item: v1::Container| ContainerListing {
        id: ContainerId::from(item.id),
        sandbox: SandboxId::from(item.pod_sandbox_id),
        metadata: item.metadata.map(container_metadata),
        state: container_state(item.state),
        created_at: RuntimeNanos(item.created_at),
        labels: labels(item.labels),
        image: item.image.map(|image| image.image.into()),
    };
    Reply::Containers(answer.containers.into_iter().map(listing).collect())
}

pub(super) fn image(answer: v1::ImageStatusResponse) -> Reply {
    Reply::Image(answer.image.map(image_listing))
}

pub(super) fn exec(answer: &v1::ExecSyncResponse) -> Reply {
    Reply::Exec(answer.exit_code)
}

pub(super) fn images(answer: v1::ListImagesResponse) -> Reply {
    Reply::Images(answer.images.into_iter().map(image_listing).collect())
}

fn image_listing(image: v1::Image) -> ImageListing {
    ImageListing {
        id: image.id,
        tags: image.repo_tags,
    }
}

fn sandbox_metadata(metadata: v1::PodSandboxMetadata) -> SandboxMetadata {
    SandboxMetadata {
        name: metadata.name.into(),
        uid: PodUid::from(metadata.uid),
        namespace: metadata.namespace.into(),
        attempt: metadata.attempt,
    }
}

fn container_metadata(metadata: v1::ContainerMetadata) -> ContainerMetadata {
    ContainerMetadata {
        name: metadata.name.into(),
        attempt: metadata.attempt,
    }
}

fn sandbox_state(number: i32) -> SandboxState {
    match number {
        0 => SandboxState::Ready,
        1 => SandboxState::NotReady,
        number => SandboxState::Unknown(number),
    }
}

fn container_state(number: i32) -> ContainerState {
    match number {
        0 => ContainerState::Created,
        1 => ContainerState::Running,
        2 => ContainerState::Exited,
        number => ContainerState::Unknown(number),
    }
}

fn labels(map: HashMap<String, String>) -> Labels {
    map.into_iter().collect()
}

fn to_map(labels: &Labels) -> HashMap<String, String> {
    labels
        .iter()
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .collect()
}

pub(super) fn list_sandboxes(labels: &Labels) -> v1::ListPodSandboxRequest {
    let filter = v1::PodSandboxFilter {
        label_selector: to_map(labels),
        ..Default::default()
    };
    v1::ListPodSandboxRequest {
        filter: Some(filter),
    }
}

pub(super) fn list_containers(
    sandbox: Option<&SandboxId>,
    labels: &Labels,
) -> v1::ListContainersRequest {
    let filter = v1::ContainerFilter {
        pod_sandbox_id: sandbox.map(ToString::to_string).unwrap_or_default(),
        label_selector: to_map(labels),
        ..Default::default()
    };
    v1::ListContainersRequest {
        filter: Some(filter),
    }
}

pub(super) fn find_sandboxes(filter: &SandboxFilter) -> v1::ListPodSandboxRequest {
    let state = filter.state.map(|state| v1::PodSandboxStateValue {
        state: outgoing::sandbox_state(state),
    });
    let filter = v1::PodSandboxFilter {
        id: filter
            .id
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        state,
        label_selector: to_map(&filter.labels),
    };
    v1::ListPodSandboxRequest {
        filter: Some(filter),
    }
}

pub(super) fn find_containers(filter: &ContainerFilter) -> v1::ListContainersRequest {
    let state = filter.state.map(|state| v1::ContainerStateValue {
        state: outgoing::container_state(state),
    });
    let sandbox = filter.sandbox.as_ref();
    let filter = v1::ContainerFilter {
        id: filter
            .id
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        state,
        pod_sandbox_id: sandbox.map(ToString::to_string).unwrap_or_default(),
        label_selector: to_map(&filter.labels),
    };
    v1::ListContainersRequest {
        filter: Some(filter),
    }
}

pub(super) fn runtime_status(answer: v1::StatusResponse) -> Reply {
    let conditions = answer.status.unwrap_or_default().conditions.into_iter();
    let holding = conditions.filter(|condition| condition.status);
    let handlers = answer.runtime_handlers.into_iter();
    Reply::RuntimeStatus(RuntimeStatus {
        conditions: holding.map(|condition| condition.r#type).collect(),
        handlers: handlers.map(|handler| handler.name).collect(),
    })
}

/// An image by its reference. CRI-O wants the user's own words beside it.
pub(super) fn image_spec(reference: &str) -> v1::ImageSpec {
    v1::ImageSpec {
        image: reference.to_owned(),
        user_specified_image: reference.to_owned(),
        ..Default::default()
    }
}

pub(super) fn run_sandbox(spec: &Arc<SandboxSpec>) -> v1::RunPodSandboxRequest {
    v1::RunPodSandboxRequest {
        config: Some(sandbox_config(spec)),
        runtime_handler: spec.runtime_handler.clone(),
    }
}

fn sandbox_config(spec: &SandboxSpec) -> v1::PodSandboxConfig {
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

/// So much memory and no swap, so that the limit is one; or no limit.
fn limited_to(memory_bytes: Option<u64>) -> v1::LinuxContainerResources {
    let limit = memory_bytes.map_or(0, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
    v1::LinuxContainerResources {
        memory_limit_in_bytes: limit,
        memory_swap_limit_in_bytes: limit,
        ..Default::default()
    }
}

/// The host's network unless another is asked for, so that no CNI is needed; and, unless they are
/// to share one, a PID namespace for each container.
fn namespaces(of: &SandboxSpec) -> v1::NamespaceOption {
    let network = if of.own_network {
        v1::NamespaceMode::Pod
    } else {
        v1::NamespaceMode::Node
    };
    let pid = if of.shared_pid {
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

/// Those of its pod, but for the PID namespace of another container, if it joins that.
fn container_namespaces(of: &ContainerSpec) -> v1::NamespaceOption {
    let pod = namespaces(&of.sandbox_spec);
    match &of.pid_target {
        None => pod,
        Some(target) => v1::NamespaceOption {
            pid: v1::NamespaceMode::Target as i32,
            target_id: target.to_string(),
            ..pod
        },
    }
}

pub(super) fn create_container(spec: &ContainerSpec) -> v1::CreateContainerRequest {
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
            envs: details::demand(spec.flaw),
            mounts: spec.mounts().iter().map(details::to_mount).collect(),
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
        sandbox_config: Some(sandbox_config(&spec.sandbox_spec)),
    }
}

/// The file of a cgroup of version 2 that says whether an OOM kill takes all of it.
pub(super) const OOM_GROUP: &str = "memory.oom.group";

/// What is to be set in the container's cgroup beside its limits. Where it is of version 1, some
/// OCI runtimes refuse that, and others do not heed it.
fn unified(spec: &ContainerSpec) -> HashMap<String, String> {
    let group = (OOM_GROUP.to_owned(), "1".to_owned());
    spec.oom_group.then_some(group).into_iter().collect()
}

/// A file that is in every container.
const A_FILE: &str = "/proc/version";
/// A user that no image of the suite has.
const NO_USER: &str = "nobody-of-this-name";

/// The text if the container has the flaw.
fn only(has: Option<Flaw>, flaw: Flaw, text: &str) -> String {
    let text = (has == Some(flaw)).then(|| text.to_owned());
    text.unwrap_or_default()
}
