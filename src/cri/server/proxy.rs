//! A proxy: it passes the calls of any gRPC service to a runtime, and the answers back, as they
//! are: path, headers, frames and trailers. Only calls that an [`Intercept`] changes are decoded.
//!
//! Each connection of a client has its own connection to the runtime, which is opened again when it
//! is lost. So a client that does not read costs others no more than without the proxy.

#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_stream::{Stream, StreamExt};
use tonic::body::Body;
use tonic::codegen::http::HeaderMap;
use tonic::codegen::http::uri::{Authority, PathAndQuery, Scheme};
use tonic::codegen::{BoxFuture, Service, StdError, http};
use tonic::metadata::MetadataMap;
use tonic::server::{Grpc, ServerStreamingService};
use tonic::{Response, Status, client};

use super::{Backend, Events, Messages, ServerError, status};
use crate::cri::client::BytesCodec;
use crate::cri::connect::{Connector, fault, innermost};
use crate::cri::endpoint::Endpoint;
use crate::cri::listener::{AnyAuthority, Incoming, Listener};
use crate::history::messages;
use crate::history::{CallFault, Reply, Request};
use crate::limits;

/// The decisions of a proxy about the calls that it passes. The events of a stream that it decodes
/// are those of the [`Backend`].
pub trait Intercept: Backend {
    /// The endpoints of the runtime and of its image service.
    fn endpoints(&self) -> [&Endpoint; 2];

    /// Whether the calls of a method are decoded.
    fn decodes(&self, method: &str) -> bool;

    /// Waits until a call of a method may pass. Returns the delay of its answer, or the fault that
    /// is its answer, so that the runtime does not get the call.
    fn admit(&self, method: &str) -> impl Future<Output = Result<Duration, CallFault>> + Send;

    /// The answer to a decoded call in place of the runtime's.
    fn alter(
        &self,
        request: &Request,
        answer: Result<Reply, CallFault>,
    ) -> impl Future<Output = Result<Reply, CallFault>> + Send;
}

/// Passes the calls of all clients to a runtime, until this is dropped.
pub async fn proxy<I: Intercept>(by: Arc<I>, listener: &mut Listener) -> Result<(), ServerError> {
    match listener.incoming() {
        Incoming::Socket(connections) => {
            let connections = connections.map(|connection| connection.map(AnyAuthority::new));
            accept(by, connections).await
        }
        Incoming::InProcess(connections) => accept(by, connections).await,
    }
}

async fn accept<I: Intercept, C: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
    by: Arc<I>,
    mut connections: impl Stream<Item = io::Result<C>> + Unpin,
) -> Result<(), ServerError> {
    let mut server = auto::Builder::new(TokioExecutor::new()).http2_only();
    server
        .http2()
        .auto_date_header(false)
        .initial_stream_window_size(limits::RELAY_WINDOW_BYTES)
        .max_send_buf_size(limits::RELAY_WINDOW_BYTES as usize)
        .max_concurrent_streams(limits::RELAYED_CALLS)
        .max_header_list_size(limits::RELAYED_HEADER_BYTES);
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            connection = connections.next() => {
                let Some(connection) = connection.transpose()? else {
                    return Ok(());
                };
                let (server, proxy) = (server.clone(), Proxy::new(by.clone()));
                clients.spawn(async move {
                    let service = TowerToHyperService::new(proxy);
                    // A broken connection concerns its client alone.
                    let _ = server.serve_connection(TokioIo::new(connection), service).await;
                });
            }
            Some(_) = clients.join_next() => {}
        }
    }
}

/// The service for one connection of a client.
struct Proxy<I> {
    by: Arc<I>,
    runtime: Upstream,
    images: Upstream,
}

impl<I> Clone for Proxy<I> {
    fn clone(&self) -> Self {
        Self {
            by: self.by.clone(),
            runtime: self.runtime.clone(),
            images: self.images.clone(),
        }
    }
}

impl<I: Intercept> Proxy<I> {
    fn new(by: Arc<I>) -> Self {
        let [runtime, images] = by.endpoints().map(Upstream::new);
        let images = if images.endpoint == runtime.endpoint {
            runtime.clone()
        } else {
            images
        };
        Self {
            by,
            runtime,
            images,
        }
    }

    async fn answer(self, ask: http::Request<Body>) -> http::Response<Body> {
        let path = ask.uri().path();
        let (service, method) = path.rsplit_once('/').unwrap_or_default();
        let is_of_images = service.strip_prefix('/') == Some(messages::IMAGE_SERVICE);
        let method = method.to_owned();
        let delay = match self.by.admit(&method).await {
            Ok(delay) => delay,
            Err(fault) => return status(&fault).into_http(),
        };
        let upstream = if is_of_images {
            self.images
        } else {
            self.runtime
        };
        let mut grpc = Grpc::new(BytesCodec).max_decoding_message_size(limits::MESSAGE_BYTES);
        let answer = match method.as_str() {
            method if !self.by.decodes(method) => upstream.forward(ask).await,
            "GetContainerEvents" => grpc.server_streaming(Events(self.by), ask).await,
            _ => {
                let decoded = Decoded {
                    by: self.by,
                    upstream,
                    path: PathAndQuery::try_from(path).unwrap_or(PathAndQuery::from_static("/")),
                    method,
                };
                grpc.server_streaming(decoded, ask).await
            }
        };
        if !delay.is_zero() {
            // The delay is the fault itself: nothing else ends this wait.
            tokio::time::sleep_until(Instant::now() + delay).await;
        }
        answer
    }
}

impl<I: Intercept, B> Service<http::Request<B>> for Proxy<I>
where
    B: http_body::Body<Data = Bytes, Error: Into<StdError>> + Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, ask: http::Request<B>) -> Self::Future {
        let answer = self.clone().answer(ask.map(Body::new));
        Box::pin(async move { Ok(answer.await) })
    }
}

/// The runtime, or its image service, for one client.
#[derive(Clone)]
struct Upstream {
    endpoint: Endpoint,
    client: legacy::Client<Connector, Body>,
}

impl Upstream {
    fn new(endpoint: &Endpoint) -> Self {
        let client = legacy::Client::builder(TokioExecutor::new())
            .http2_only(true)
            .pool_idle_timeout(None::<Duration>)
            .http2_initial_stream_window_size(limits::RELAY_WINDOW_BYTES)
            .http2_max_header_list_size(limits::RELAYED_HEADER_BYTES)
            .build(Connector::new(endpoint));
        Self {
            endpoint: endpoint.clone(),
            client,
        }
    }

    /// Passes a call. If the runtime cannot be reached, or is lost, the status is UNAVAILABLE.
    async fn forward(self, mut ask: http::Request<Body>) -> http::Response<Body> {
        if ask.uri().authority().is_none() {
            let mut parts = ask.uri().clone().into_parts();
            parts.scheme = Some(Scheme::HTTP);
            parts.authority = Some(Authority::from_static("localhost"));
            *ask.uri_mut() = parts.try_into().unwrap_or_default();
        }
        match self.client.request(ask).await {
            Ok(answer) => answer.map(|body| {
                Body::new(Answered {
                    body: Body::new(body),
                    endpoint: self.endpoint,
                })
            }),
            Err(fault) => unavailable(&self.endpoint, &fault).into_http(),
        }
    }

    /// Makes a decoded call: the headers and all messages of its answer.
    async fn call(
        self,
        path: PathAndQuery,
        ask: tonic::Request<Bytes>,
    ) -> Result<(MetadataMap, Vec<Bytes>), Status> {
        let client = client::Grpc::new(self);
        let mut client = client.max_decoding_message_size(limits::MESSAGE_BYTES);
        let answer = client.server_streaming(ask, path, BytesCodec).await?;
        let (headers, mut stream, _) = answer.into_parts();
        let (mut messages, mut bytes) = (Vec::new(), 0);
        while let Some(message) = stream.message().await? {
            bytes += message.len();
            if bytes > limits::MESSAGE_BYTES {
                return Err(Status::out_of_range("the list is too long to be changed"));
            }
            messages.push(message);
        }
        Ok((headers, messages))
    }
}

impl Service<http::Request<Body>> for Upstream {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, ask: http::Request<Body>) -> Self::Future {
        let answer = self.clone().forward(ask);
        Box::pin(async move { Ok(answer.await) })
    }
}

fn unavailable(endpoint: &Endpoint, fault: &(dyn std::error::Error + 'static)) -> Status {
    Status::unavailable(match endpoint.check() {
        Err(fault) => fault.to_string(),
        Ok(()) => format!(
            "no answer of the runtime at {endpoint}: {}",
            innermost(fault)
        ),
    })
}

/// The body of an answer, which ends with a status even if the runtime is lost.
struct Answered {
    body: Body,
    endpoint: Endpoint,
}

impl http_body::Body for Answered {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        Poll::Ready(match frame.transpose() {
            Ok(frame) => frame.map(Ok),
            Err(fault) => {
                self.body = Body::empty();
                let mut trailers = HeaderMap::new();
                // Its message is escaped, so that it can be written.
                let _ = unavailable(&self.endpoint, &fault).add_header(&mut trailers);
                Some(Ok(Frame::trailers(trailers)))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

/// A call whose answer, of one message or several, may be changed. If it is not, or cannot be read,
/// its messages are those of the runtime.
struct Decoded<I> {
    by: Arc<I>,
    upstream: Upstream,
    path: PathAndQuery,
    method: String,
}

impl<I: Intercept> ServerStreamingService<Bytes> for Decoded<I> {
    type Response = Bytes;
    type ResponseStream = Messages;
    type Future = BoxFuture<Response<Messages>, Status>;

    fn call(&mut self, ask: tonic::Request<Bytes>) -> Self::Future {
        let (by, upstream, path) = (self.by.clone(), self.upstream.clone(), self.path.clone());
        let request = messages::decode_request(&self.method, ask.get_ref());
        Box::pin(async move {
            let answer = upstream.call(path, ask).await;
            let answer = match request {
                Ok(request) => altered(&*by, &request, answer).await,
                Err(_) => answer,
            };
            let (headers, messages) = answer?;
            let messages: Messages = Box::pin(tokio_stream::iter(messages.into_iter().map(Ok)));
            Ok(Response::from_parts(
                headers,
                messages,
                http::Extensions::new(),
            ))
        })
    }
}

type Answer = Result<(MetadataMap, Vec<Bytes>), Status>;

async fn altered<I: Intercept>(by: &I, request: &Request, answer: Answer) -> Answer {
    let read = match &answer {
        Ok((_, parts)) => match messages::decode_reply(request.response(), &parts.concat()) {
            Ok(reply) => Ok(reply),
            Err(_) => return answer,
        },
        Err(status) => Err(fault(status, Duration::ZERO)),
    };
    let altered = by.alter(request, read.clone()).await;
    if altered == read {
        return answer;
    }
    let reply = altered.map_err(|fault| status(&fault))?;
    let headers = answer.map_or_else(|_| MetadataMap::new(), |(headers, _)| headers);
    let replies = if request.is_streamed() {
        messages::batches(reply).unwrap_or_default()
    } else {
        vec![reply]
    };
    let messages = replies.iter().map(|reply| reply.to_bytes().into());
    Ok((headers, messages.collect()))
}
