//! A CRI server for any [`Backend`]: both services of `runtime.v1`, as far as the suite needs them.
//! All other methods are UNIMPLEMENTED.

mod proxy;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio_stream::{Stream, StreamExt};
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::{Grpc, NamedService, ServerStreamingService, UnaryService};
use tonic::{Code, Response, Status};

use super::client::BytesCodec;
use super::listener::{AnyAuthority, Incoming, Listener};
pub use proxy::{Intercept, proxy};

use crate::history::messages::{self, RequestError};
use crate::history::{CallFault, Event, Reply, Request, Unreadable};
use crate::limits;

/// The backend of a server: replies to requests, and events.
pub trait Backend: Send + Sync + 'static {
    /// An event stream. It may end with a fault.
    type Events: Stream<Item = Result<Event, CallFault>> + Send + 'static;

    /// Replies to a unary call. The future is dropped if the caller disconnects.
    fn call(&self, request: Request) -> impl Future<Output = Result<Reply, CallFault>> + Send;

    /// Opens an event stream, which ends at the deadline if there is one. The stream is dropped if
    /// the subscriber disconnects.
    fn subscribe(
        &self,
        deadline: Option<Duration>,
    ) -> impl Future<Output = Result<Self::Events, CallFault>> + Send;
}

/// The server cannot accept connections any more.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error("serve the CRI: {0}")]
    Transport(#[from] tonic::transport::Error),
    #[error("accept a connection: {0}")]
    Accept(#[from] std::io::Error),
}

/// Serves a backend to all clients, until this is dropped.
pub async fn serve<B: Backend>(
    backend: Arc<B>,
    listener: &mut Listener,
) -> Result<(), ServerError> {
    let runtime = Served::<B, false>(backend.clone());
    let images = Served::<B, true>(backend);
    let router = tonic::transport::Server::builder()
        .add_service(runtime)
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

/// A backend as the runtime service, or as the image service.
struct Served<B, const IMAGES: bool>(Arc<B>);

impl<B, const IMAGES: bool> Clone for Served<B, IMAGES> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<B, const IMAGES: bool> NamedService for Served<B, IMAGES> {
    const NAME: &'static str = if IMAGES {
        messages::IMAGE_SERVICE
    } else {
        messages::RUNTIME_SERVICE
    };
}

impl<B: Backend, const IMAGES: bool> Service<http::Request<Body>> for Served<B, IMAGES> {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, ask: http::Request<Body>) -> Self::Future {
        let backend = self.0.clone();
        let path = ask.uri().path();
        let method = path.rsplit('/').next().unwrap_or_default().to_owned();
        let mut grpc = Grpc::new(BytesCodec).max_decoding_message_size(limits::MESSAGE_BYTES);
        Box::pin(async move {
            Ok(match method.as_str() {
                "GetContainerEvents" => grpc.server_streaming(Events(backend), ask).await,
                "StreamPodSandboxes" | "StreamContainers" => {
                    grpc.server_streaming(List { backend, method }, ask).await
                }
                _ => grpc.unary(Method { backend, method }, ask).await,
            })
        })
    }
}

/// The backend's reply to a request message.
async fn answer<B: Backend>(backend: &B, method: &str, message: &[u8]) -> Result<Reply, Status> {
    let request = messages::decode_request(method, message).map_err(|fault| match fault {
        RequestError::Unreadable(Unreadable::Lacks(_)) => {
            Status::invalid_argument(fault.to_string())
        }
        RequestError::Unreadable(_) => Status::internal(fault.to_string()),
        RequestError::UnknownMethod => Status::unimplemented(method.to_owned()),
    })?;
    let fits = |reply: &Reply| reply.response() == request.response();
    let reply = backend.call(request.clone()).await;
    let reply = reply.map_err(|fault| status(&fault))?;
    let misfit = || Status::internal("the answer does not fit the call");
    Some(reply).filter(fits).ok_or_else(misfit)
}

fn status(fault: &CallFault) -> Status {
    Status::new(Code::from(fault.code.0), fault.message.clone())
}

/// A call that has one reply.
struct Method<B> {
    backend: Arc<B>,
    method: String,
}

impl<B: Backend> UnaryService<Bytes> for Method<B> {
    type Response = Bytes;
    type Future = BoxFuture<Response<Bytes>, Status>;

    fn call(&mut self, ask: tonic::Request<Bytes>) -> Self::Future {
        let (backend, method) = (self.backend.clone(), self.method.clone());
        Box::pin(async move {
            let reply = answer(&*backend, &method, ask.get_ref()).await?;
            Ok(Response::new(reply.to_bytes().into()))
        })
    }
}

type Messages = Pin<Box<dyn Stream<Item = Result<Bytes, Status>> + Send>>;

/// A list whose reply is a stream of messages.
struct List<B> {
    backend: Arc<B>,
    method: String,
}

impl<B: Backend> ServerStreamingService<Bytes> for List<B> {
    type Response = Bytes;
    type ResponseStream = Messages;
    type Future = BoxFuture<Response<Messages>, Status>;

    fn call(&mut self, ask: tonic::Request<Bytes>) -> Self::Future {
        let (backend, method) = (self.backend.clone(), self.method.clone());
        Box::pin(async move {
            let reply = answer(&*backend, &method, ask.get_ref()).await?;
            let batches = messages::batches(reply).unwrap_or_default().into_iter();
            let messages = batches.map(|batch| Ok(batch.to_bytes().into()));
            let messages: Messages = Box::pin(tokio_stream::iter(messages));
            Ok(Response::new(messages))
        })
    }
}

struct Events<B>(Arc<B>);

impl<B: Backend> ServerStreamingService<Bytes> for Events<B> {
    type Response = Bytes;
    type ResponseStream = Messages;
    type Future = BoxFuture<Response<Messages>, Status>;

    fn call(&mut self, ask: tonic::Request<Bytes>) -> Self::Future {
        let backend = self.0.clone();
        Box::pin(async move {
            let events = backend.subscribe(deadline(&ask)).await;
            let events = events.map_err(|fault| status(&fault))?;
            let messages = events.map(|event| match event {
                Ok(event) => Ok(messages::encode_event(&event).into()),
                Err(fault) => Err(status(&fault)),
            });
            let messages: Messages = Box::pin(messages);
            Ok(Response::new(messages))
        })
    }
}

/// The caller's deadline from gRPC's header `grpc-timeout`: digits and a unit.
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
