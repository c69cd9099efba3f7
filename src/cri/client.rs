//! Unary calls.

use std::sync::Arc;
use std::time::Duration;

use k8s_cri::v1;
use k8s_cri::v1::image_service_client::ImageServiceClient;
use k8s_cri::v1::runtime_service_client::RuntimeServiceClient;
use tonic::Status;
use tonic::client::Grpc;
use tonic::transport::Channel;

use super::aside::Services;
use super::connect::{ConnectError, channel, diagnose};
use super::convert::{self, created, done};
use super::endpoint::Endpoint;
use super::faults::answer_fault;
use super::lists::{self, Lists};
use super::oci::{self, Beneath};
use super::signals;
use crate::history::{CallFault, Reply, Request, RuntimeVersion, StatusCode};
use crate::{host, limits};

/// A connection to a runtime and to its image service, for unary calls. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    runtime: RuntimeServiceClient<Channel>,
    images: ImageServiceClient<Channel>,
    connection: Channel,
    deadline: Duration,
    version: Arc<RuntimeVersion>,
}

impl Client {
    /// Connects to a runtime and asks for its version; `deadline` is that of every later call.
    ///
    /// # Errors
    /// If the runtime cannot be reached or is none, with what is there instead.
    pub async fn connect(
        runtime: &Endpoint,
        images: &Endpoint,
        deadline: Duration,
    ) -> Result<Self, ConnectError> {
        let runtime_channel = channel(runtime).await?;
        let images_channel = if images == runtime {
            runtime_channel.clone()
        } else {
            channel(images).await?
        };
        let mut client = Self {
            connection: runtime_channel.clone(),
            runtime: RuntimeServiceClient::new(runtime_channel)
                .max_decoding_message_size(limits::MESSAGE_BYTES),
            images: ImageServiceClient::new(images_channel)
                .max_decoding_message_size(limits::MESSAGE_BYTES),
            deadline,
            version: Arc::default(),
        };
        let first = first_within(deadline);
        match client.call_within(&Request::Version, first).await {
            Ok(Reply::Version(version)) => client.version = Arc::new(version),
            Ok(_) => unreachable!("`Version` is answered by a version"),
            Err(fault) => return Err(diagnose(runtime, fault)),
        }
        Ok(client)
    }

    /// Another client of the same runtime, whose calls to it have a connection of their own.
    ///
    /// # Errors
    /// If the endpoint, which must be that of [`connect`](Self::connect), takes no more of them.
    pub async fn beside(&self, runtime: &Endpoint) -> Result<Self, ConnectError> {
        let connection = channel(runtime).await?;
        let runtime = RuntimeServiceClient::new(connection.clone())
            .max_decoding_message_size(limits::MESSAGE_BYTES);
        Ok(Self {
            runtime,
            connection,
            ..self.clone()
        })
    }

    /// What the runtime calls itself.
    #[must_use]
    pub fn version(&self) -> &RuntimeVersion {
        &self.version
    }

    /// How long each call may take, unless it has a deadline of its own.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// What stands beneath the runtime where pods have this handler, empty for the default one, as
    /// far as its verbose `Status` and its `RuntimeConfig` show it.
    pub async fn beneath(&self, handler: &str) -> Beneath {
        let within = self.deadline.min(limits::CONNECT_DEADLINE);
        let mut runtime = self.runtime.clone();
        let status = runtime.status(timed(v1::StatusRequest { verbose: true }, Some(within)));
        let status = tokio::time::timeout(within, status).await;
        let info = status
            .ok()
            .and_then(Result::ok)
            .map(|answer| answer.into_inner().info);
        let mut beneath = Beneath::from_info(&info.unwrap_or_default(), handler);
        let mut runtime = self.runtime.clone();
        let config = runtime.runtime_config(timed(v1::RuntimeConfigRequest {}, Some(within)));
        let config = tokio::time::timeout(within, config).await;
        if let Some(linux) = config
            .ok()
            .and_then(Result::ok)
            .and_then(|it| it.into_inner().linux)
        {
            beneath.cgroup_driver = Some(oci::cgroup_driver(linux.cgroup_driver()));
        }
        beneath
    }

    /// The connection on which the runtime is called.
    pub(super) fn connection(&self) -> Channel {
        self.connection.clone()
    }

    /// Sends one call and waits for its return.
    ///
    /// The runtime learns how long we wait, as from a kubelet, except where it takes that for the
    /// grace period of containers.
    ///
    /// # Errors
    /// Whatever gRPC status the runtime returned, or `DEADLINE_EXCEEDED`. A stop's grace period and
    /// a command's time-out are added to the deadline.
    pub async fn call(&self, request: &Request) -> Result<Reply, CallFault> {
        let lasts = match request {
            Request::StopContainer { grace, .. } => *grace,
            Request::ExecSync { timeout, .. } => *timeout,
            _ => Duration::ZERO,
        };
        let wait = self.deadline + lasts;
        let on_the_wire = (!deadline_is_grace(request)).then_some(wait);
        self.send(request, wait, on_the_wire).await
    }

    /// Sends one call with a deadline of its own, which the runtime learns, and waits for its
    /// return.
    ///
    /// # Errors
    /// As [`call`](Self::call) does.
    pub async fn call_within(
        &self,
        request: &Request,
        deadline: Duration,
    ) -> Result<Reply, CallFault> {
        self.send(request, deadline, Some(deadline)).await
    }

    /// Waits so long for the return of a call of which the runtime learns this deadline, or none.
    async fn send(
        &self,
        request: &Request,
        deadline: Duration,
        on_the_wire: Option<Duration>,
    ) -> Result<Reply, CallFault> {
        if lacks_log(request) {
            return Err(CallFault {
                code: StatusCode::INVALID_ARGUMENT,
                message: "not sent: a container without a log path lets a kubelet on the node \
                          delete files in its own working directory"
                    .to_owned(),
                deadline,
            });
        }
        let began = host::now();
        // Boxed, for the messages of all calls make it a large future.
        let answer = Box::pin(self.dispatch(request, on_the_wire));
        match tokio::time::timeout(deadline, answer).await {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(status)) if host::elapsed(began) < deadline => {
                Err(answer_fault(&status, deadline))
            }
            // Our clock, tonic's and the runtime's run out at once; the last two say CANCELLED.
            Ok(Err(_)) | Err(_) => Err(CallFault {
                code: StatusCode::DEADLINE_EXCEEDED,
                message: "no answer".to_owned(),
                deadline,
            }),
        }
    }

    async fn dispatch(
        &self,
        request: &Request,
        within: Option<Duration>,
    ) -> Result<Reply, tonic::Status> {
        let mut runtime = self.runtime.clone();
        let reply = match request {
            Request::Version => {
                let ask = v1::VersionRequest {
                    version: "v1".to_owned(),
                };
                convert::version(runtime.version(timed(ask, within)).await?.into_inner())
            }
            Request::RunSandbox(spec) => {
                let ask = convert::run_sandbox(spec);
                created(
                    runtime
                        .run_pod_sandbox(timed(ask, within))
                        .await?
                        .into_inner(),
                )
            }
            Request::StopSandbox(id) => {
                let ask = v1::StopPodSandboxRequest {
                    pod_sandbox_id: id.to_string(),
                };
                done(
                    runtime
                        .stop_pod_sandbox(timed(ask, within))
                        .await?
                        .into_inner(),
                )
            }
            Request::RemoveSandbox(id) => {
                let ask = v1::RemovePodSandboxRequest {
                    pod_sandbox_id: id.to_string(),
                };
                done(
                    runtime
                        .remove_pod_sandbox(timed(ask, within))
                        .await?
                        .into_inner(),
                )
            }
            Request::SandboxStatus(id) => {
                let ask = v1::PodSandboxStatusRequest {
                    pod_sandbox_id: id.to_string(),
                    verbose: false,
                };
                let answer = runtime
                    .pod_sandbox_status(timed(ask, within))
                    .await?
                    .into_inner();
                convert::sandbox_status_reply(answer)?
            }
            Request::ListSandboxes(labels) => {
                let ask = convert::list_sandboxes(labels);
                let mut runtime = runtime.max_decoding_message_size(limits::LIST_BYTES);
                let answer = runtime.list_pod_sandbox(timed(ask, within)).await?;
                lists::sandboxes(answer.into_inner(), labels)?
            }
            Request::CreateContainer(_)
            | Request::StartContainer(_)
            | Request::StopContainer { .. }
            | Request::RemoveContainer(_)
            | Request::ContainerStatus(_)
            | Request::ExecSync { .. }
            | Request::ListContainers { .. } => self.dispatch_container(request, within).await?,
            Request::FindSandboxes(_) | Request::FindContainers(_) | Request::RuntimeStatus => {
                let connection = self.connection();
                let lists = Lists {
                    runtime: runtime.max_decoding_message_size(limits::LIST_BYTES),
                    connection,
                };
                lists.ask(request, within).await?
            }
            Request::ImageStatus(_)
            | Request::PullImage(_)
            | Request::RemoveImage(_)
            | Request::ListImages => self.dispatch_image(request, within).await?,
            Request::Aside(aside, id) => {
                let images = self.images.clone();
                let services = Services { runtime, images };
                done(services.aside(*aside, id.clone(), within).await?)
            }
        };
        Ok(reply)
    }

    async fn dispatch_container(
        &self,
        request: &Request,
        within: Option<Duration>,
    ) -> Result<Reply, tonic::Status> {
        let mut runtime = self.runtime.clone();
        let reply = match request {
            Request::CreateContainer(spec) => {
                signals::create(self.connection(), spec, within).await?
            }
            Request::StartContainer(id) => {
                let ask = v1::StartContainerRequest {
                    container_id: id.to_string(),
                };
                done(
                    runtime
                        .start_container(timed(ask, within))
                        .await?
                        .into_inner(),
                )
            }
            Request::StopContainer { container, grace } => {
                let timeout = i64::try_from(grace.as_secs()).unwrap_or(i64::MAX);
                let ask = v1::StopContainerRequest {
                    container_id: container.to_string(),
                    timeout,
                };
                done(
                    runtime
                        .stop_container(timed(ask, within))
                        .await?
                        .into_inner(),
                )
            }
            Request::RemoveContainer(id) => {
                let ask = v1::RemoveContainerRequest {
                    container_id: id.to_string(),
                };
                done(
                    runtime
                        .remove_container(timed(ask, within))
                        .await?
                        .into_inner(),
                )
            }
            Request::ContainerStatus(id) => {
                let ask = v1::ContainerStatusRequest {
                    container_id: id.to_string(),
                    verbose: false,
                };
                signals::status(self.connection(), ask, within).await?
            }
            Request::ListContainers { sandbox, labels } => {
                let ask = convert::list_containers(sandbox.as_ref(), labels);
                let mut runtime = runtime.max_decoding_message_size(limits::LIST_BYTES);
                let answer = runtime.list_containers(timed(ask, within)).await?;
                lists::containers(answer.into_inner(), labels)?
            }
            Request::ExecSync {
                container,
                command,
                timeout,
            } => {
                let ask = v1::ExecSyncRequest {
                    container_id: container.to_string(),
                    cmd: command.clone(),
                    timeout: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
                };
                convert::exec(runtime.exec_sync(timed(ask, within)).await?.get_ref())
            }
            _ => unreachable!("`dispatch` sends only requests about containers here"),
        };
        Ok(reply)
    }

    async fn dispatch_image(
        &self,
        request: &Request,
        within: Option<Duration>,
    ) -> Result<Reply, tonic::Status> {
        let mut images = self.images.clone();
        let reply = match request {
            Request::ImageStatus(reference) => {
                let ask = v1::ImageStatusRequest {
                    image: Some(convert::image_spec(reference)),
                    verbose: false,
                };
                convert::image(images.image_status(timed(ask, within)).await?.into_inner())
            }
            Request::PullImage(reference) => {
                let ask = v1::PullImageRequest {
                    image: Some(convert::image_spec(reference)),
                    auth: None,
                    sandbox_config: None,
                };
                Reply::Pulled(
                    images
                        .pull_image(timed(ask, within))
                        .await?
                        .into_inner()
                        .image_ref,
                )
            }
            Request::RemoveImage(reference) => {
                let ask = v1::RemoveImageRequest {
                    image: Some(convert::image_spec(reference)),
                };
                done(images.remove_image(timed(ask, within)).await?.into_inner())
            }
            Request::ListImages => {
                let ask = v1::ListImagesRequest { filter: None };
                convert::images(images.list_images(timed(ask, within)).await?.into_inner())
            }
            _ => unreachable!("`dispatch` sends only requests about images here"),
        };
        Ok(reply)
    }
}

/// A client for messages that the generated one does not know, once the connection takes calls.
pub(super) async fn ready(connection: Channel) -> Result<Grpc<Channel>, Status> {
    let mut client = Grpc::new(connection).max_decoding_message_size(limits::MESSAGE_BYTES);
    let ready = client.ready().await;
    ready.map_err(|fault| Status::unavailable(fault.to_string()))?;
    Ok(client)
}

/// Whether a runtime may take the deadline of this call for the grace period of the containers that
/// it ends. CRI-O does, less a second or two (`stopTimeoutFromContext` in `server/utils.go`), and
/// has 10 s without a deadline: with a deadline of 30 s, the removal of a container that ignores
/// SIGTERM would take nearly all of them.
fn deadline_is_grace(request: &Request) -> bool {
    matches!(
        request,
        Request::StopSandbox(_) | Request::RemoveSandbox(_) | Request::RemoveContainer(_)
    )
}

/// Whether it would make a container whose status shows no log path, or one of no directory.
fn lacks_log(request: &Request) -> bool {
    let Request::CreateContainer(spec) = request else {
        return false;
    };
    spec.log_path.is_empty() || spec.sandbox_spec.log_directory.is_empty()
}

/// How long the first call may take where any other may take so long.
fn first_within(deadline: Duration) -> Duration {
    deadline.min(limits::CONNECT_DEADLINE.max(deadline / limits::FIRST_PART))
}

/// A request that tells the runtime how long we shall wait, if it is to know.
pub(super) fn timed<T>(message: T, within: Option<Duration>) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    if let Some(within) = within {
        request.set_timeout(within);
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_call_has_more_time_where_all_others_have() {
        let first = |seconds| first_within(Duration::from_secs(seconds)).as_secs();
        assert_eq!([2, 5, 30, 150, 300].map(first), [2, 5, 5, 25, 50]);
    }
}
