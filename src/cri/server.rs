//! A CRI server for whatever answers requests and has events: both services of `runtime.v1`, as far
//! as the suite and its cases need them. The other methods do not exist.

mod more;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use k8s_cri::v1;
use k8s_cri::v1::image_service_server::{ImageService, ImageServiceServer};
use k8s_cri::v1::runtime_service_server::{RuntimeService, RuntimeServiceServer};
use tokio_stream::{Stream, StreamExt};
use tonic::{Response, Status};

use super::authority::AnyAuthority;
use super::convert::{incoming, outgoing};
use super::listener::{Incoming, Listener};
use crate::history::{Aside, CallFault, ContainerId, Event, Reply, Request, SandboxId};
use crate::limits;
use more::WithMore;

/// What stands behind a server, in our own types: a runtime, or what passes for one.
pub trait Backend: Send + Sync + 'static {
    /// An event stream. It may end with a fault.
    type Events: Stream<Item = Result<Event, CallFault>> + Send + 'static;

    /// Does a unary call. Dropped, the caller has gone.
    fn call(&self, request: Request) -> impl Future<Output = Result<Reply, CallFault>> + Send;

    /// Opens an event stream, which ends at the deadline if there is one. Dropped, the subscriber
    /// has gone.
    fn subscribe(
        &self,
        deadline: Option<Duration>,
    ) -> impl Future<Output = Result<Self::Events, CallFault>> + Send;
}

/// The server can go on no longer.
#[derive(Debug, thiserror::Error)]
#[error("serve the CRI: {0}")]
pub struct ServerError(#[from] tonic::transport::Error);

/// Serves a backend to all who connect, until this is dropped.
///
/// # Errors
/// If no more connections can be taken.
pub async fn serve<B: Backend>(
    backend: Arc<B>,
    listener: &mut Listener,
) -> Result<(), ServerError> {
    let runtime = RuntimeServiceServer::new(Served(backend.clone()))
        .max_decoding_message_size(limits::MESSAGE_BYTES);
    let with_more = WithMore {
        generated: runtime,
        backend: backend.clone(),
    };
    let images =
        ImageServiceServer::new(Served(backend)).max_decoding_message_size(limits::MESSAGE_BYTES);
    let router = tonic::transport::Server::builder()
        .add_service(with_more)
        .add_service(images);
    match listener.incoming() {
        Incoming::Socket(connections) => {
            let connections = connections.map(|connection| connection.map(AnyAuthority::new));
            router.serve_with_incoming(connections).await?;
        }
        Incoming::InProcess(connections) => {
            router.serve_with_incoming(connections).await?;
        }
    }
    Ok(())
}

/// A backend as the generated services want it.
struct Served<B>(Arc<B>);

type Reading<'b, T> = Pin<Box<dyn Future<Output = Result<Response<T>, Status>> + Send + 'b>>;
type Events = Pin<Box<dyn Stream<Item = Result<v1::ContainerEventResponse, Status>> + Send>>;

impl<B: Backend> Served<B> {
    /// Asks the backend what a message asks, and puts its reply into one.
    async fn answer<A, T>(
        &self,
        ask: tonic::Request<A>,
        request: impl Fn(&A) -> Result<Request, Status>,
        answer: impl Fn(&A, Reply) -> Option<T>,
    ) -> Result<Response<T>, Status> {
        let ask = ask.into_inner();
        let reply = self.0.call(request(&ask)?).await;
        let reply = reply.map_err(|fault| outgoing::status(&fault))?;
        let answer = answer(&ask, reply);
        let answer = answer.ok_or_else(|| outgoing::status(&outgoing::misfit()))?;
        Ok(Response::new(answer))
    }
}

/// Methods as `async_trait` has them: those that a backend answers, and those that do not exist.
macro_rules! methods {
    (
        answered: { $($name:ident($ask:ident) -> $answer:ident = $request:expr, $reply:expr;)* }
        missing: { $($missing:ident($missing_ask:ident) -> $missing_answer:ident;)* }
    ) => {
        $(fn $name<'a, 'b>(&'a self, ask: tonic::Request<v1::$ask>) -> Reading<'b, v1::$answer>
        where
            'a: 'b,
            Self: 'b,
        {
            Box::pin(self.answer(ask, $request, $reply))
        })*
        $(fn $missing<'a, 'b>(
            &'a self,
            _: tonic::Request<v1::$missing_ask>,
        ) -> Reading<'b, v1::$missing_answer>
        where
            'a: 'b,
            Self: 'b,
        {
            Box::pin(async { Err(Status::unimplemented(stringify!($missing))) })
        })*
    };
}

impl<B: Backend> RuntimeService for Served<B> {
    methods! {
        answered: {
        version(VersionRequest) -> VersionResponse =
            |_| Ok(Request::Version),
            |_, reply| outgoing::version(reply);
        run_pod_sandbox(RunPodSandboxRequest) -> RunPodSandboxResponse =
            incoming::run_sandbox,
            |_, reply| outgoing::sandbox(reply);
        stop_pod_sandbox(StopPodSandboxRequest) -> StopPodSandboxResponse =
            |ask| Ok(Request::StopSandbox(SandboxId::from(ask.pod_sandbox_id.clone()))),
            |_, reply| outgoing::done(&reply);
        remove_pod_sandbox(RemovePodSandboxRequest) -> RemovePodSandboxResponse =
            |ask| Ok(Request::RemoveSandbox(SandboxId::from(ask.pod_sandbox_id.clone()))),
            |_, reply| outgoing::done(&reply);
        pod_sandbox_status(PodSandboxStatusRequest) -> PodSandboxStatusResponse =
            |ask| Ok(Request::SandboxStatus(SandboxId::from(ask.pod_sandbox_id.clone()))),
            |_, reply| outgoing::sandbox_status_reply(reply);
        list_pod_sandbox(ListPodSandboxRequest) -> ListPodSandboxResponse =
            |ask| Ok(incoming::list_sandboxes(ask)),
            |_, reply| outgoing::sandboxes(reply);
        start_container(StartContainerRequest) -> StartContainerResponse =
            |ask| Ok(Request::StartContainer(ContainerId::from(ask.container_id.clone()))),
            |_, reply| outgoing::done(&reply);
        stop_container(StopContainerRequest) -> StopContainerResponse =
            |ask| Ok(incoming::stop_container(ask)),
            |_, reply| outgoing::done(&reply);
        remove_container(RemoveContainerRequest) -> RemoveContainerResponse =
            |ask| Ok(Request::RemoveContainer(ContainerId::from(ask.container_id.clone()))),
            |_, reply| outgoing::done(&reply);
        list_containers(ListContainersRequest) -> ListContainersResponse =
            |ask| Ok(incoming::list_containers(ask)),
            |_, reply| outgoing::containers(reply);
        exec_sync(ExecSyncRequest) -> ExecSyncResponse =
            |ask| Ok(incoming::exec_sync(ask)),
            |_, reply| outgoing::exec(&reply);
        update_container_resources(UpdateContainerResourcesRequest)
            -> UpdateContainerResourcesResponse =
            |ask| Ok(incoming::aside(Aside::UpdateContainerResources, &ask.container_id)),
            |_, reply| outgoing::done(&reply);
        reopen_container_log(ReopenContainerLogRequest) -> ReopenContainerLogResponse =
            |ask| Ok(incoming::aside(Aside::ReopenContainerLog, &ask.container_id)),
            |_, reply| outgoing::done(&reply);
        container_stats(ContainerStatsRequest) -> ContainerStatsResponse =
            |ask| Ok(incoming::aside(Aside::ContainerStats, &ask.container_id)),
            |_, reply| outgoing::done(&reply);
        exec(ExecRequest) -> ExecResponse =
            |ask| Ok(incoming::aside(Aside::Exec, &ask.container_id)),
            |_, reply| outgoing::done(&reply);
        attach(AttachRequest) -> AttachResponse =
            |ask| Ok(incoming::aside(Aside::Attach, &ask.container_id)),
            |_, reply| outgoing::done(&reply);
        list_container_stats(ListContainerStatsRequest) -> ListContainerStatsResponse =
            |ask| {
                let filter = ask.filter.clone().unwrap_or_default();
                Ok(incoming::aside(Aside::ListContainerStats, &filter.id))
            },
            |_, reply| outgoing::done(&reply);
        port_forward(PortForwardRequest) -> PortForwardResponse =
            |ask| Ok(incoming::aside(Aside::PortForward, &ask.pod_sandbox_id)),
            |_, reply| outgoing::done(&reply);
        pod_sandbox_stats(PodSandboxStatsRequest) -> PodSandboxStatsResponse =
            |ask| Ok(incoming::aside(Aside::PodSandboxStats, &ask.pod_sandbox_id)),
            |_, reply| outgoing::done(&reply);
        list_pod_sandbox_stats(ListPodSandboxStatsRequest) -> ListPodSandboxStatsResponse =
            |ask| {
                let filter = ask.filter.clone().unwrap_or_default();
                Ok(incoming::aside(Aside::ListPodSandboxStats, &filter.id))
            },
            |_, reply| outgoing::done(&reply);
        status(StatusRequest) -> StatusResponse =
            |_| Ok(Request::RuntimeStatus),
            |_, reply| outgoing::runtime_status(reply);
        runtime_config(RuntimeConfigRequest) -> RuntimeConfigResponse =
            |_| Ok(incoming::aside(Aside::RuntimeConfig, "")),
            |_, reply| outgoing::done(&reply);
        update_runtime_config(UpdateRuntimeConfigRequest) -> UpdateRuntimeConfigResponse =
            |_| Ok(incoming::aside(Aside::UpdateRuntimeConfig, "")),
            |_, reply| outgoing::done(&reply);
        }
        // Of these, `WithMore` answers those that are about a container.
        missing: {
        create_container(CreateContainerRequest) -> CreateContainerResponse;
        container_status(ContainerStatusRequest) -> ContainerStatusResponse;
        checkpoint_container(CheckpointContainerRequest) -> CheckpointContainerResponse;
        list_metric_descriptors(ListMetricDescriptorsRequest) -> ListMetricDescriptorsResponse;
        list_pod_sandbox_metrics(ListPodSandboxMetricsRequest) -> ListPodSandboxMetricsResponse;
        }
    }

    type GetContainerEventsStream = Events;

    fn get_container_events<'a, 'b>(
        &'a self,
        ask: tonic::Request<v1::GetEventsRequest>,
    ) -> Reading<'b, Events>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            let events = self.0.subscribe(deadline(&ask)).await;
            let events = events.map_err(|fault| outgoing::status(&fault))?;
            let messages = events.map(|event| match event {
                Ok(event) => Ok(outgoing::event(event)),
                Err(fault) => Err(outgoing::status(&fault)),
            });
            let messages: Events = Box::pin(messages);
            Ok(Response::new(messages))
        })
    }
}

impl<B: Backend> ImageService for Served<B> {
    methods! {
        answered: {
        list_images(ListImagesRequest) -> ListImagesResponse =
            |_| Ok(Request::ListImages),
            |_, reply| outgoing::images(reply);
        image_status(ImageStatusRequest) -> ImageStatusResponse =
            |ask| Ok(Request::ImageStatus(incoming::image(ask.image.as_ref())?)),
            |_, reply| outgoing::image_status(reply);
        pull_image(PullImageRequest) -> PullImageResponse =
            |ask| Ok(Request::PullImage(incoming::image(ask.image.as_ref())?)),
            |_, reply| outgoing::pulled(reply);
        remove_image(RemoveImageRequest) -> RemoveImageResponse =
            |ask| Ok(Request::RemoveImage(incoming::image(ask.image.as_ref())?)),
            |_, reply| outgoing::done(&reply);
        image_fs_info(ImageFsInfoRequest) -> ImageFsInfoResponse =
            |_| Ok(incoming::aside(Aside::ImageFsInfo, "")),
            |_, reply| outgoing::done(&reply);
        }
        missing: {}
    }
}

/// How long the caller waits, as gRPC's header `grpc-timeout` tells it: digits and a unit.
fn deadline<T>(ask: &tonic::Request<T>) -> Option<Duration> {
    const UNITS_NS: [(char, u64); 6] = [
        ('H', 3_600_000_000_000),
        ('M', 60_000_000_000),
        ('S', 1_000_000_000),
        ('m', 1_000_000),
        ('u', 1_000),
        ('n', 1),
    ];
    let header = ask.metadata().get("grpc-timeout")?.to_str().ok()?;
    UNITS_NS.iter().find_map(|(unit, ns)| {
        let number: u64 = header.strip_suffix(*unit)?.parse().ok()?;
        Some(Duration::from_nanos(number.saturating_mul(*ns)))
    })
}
