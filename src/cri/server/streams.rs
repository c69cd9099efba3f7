//! The methods of `RuntimeService` that the generated server does not have: lists as streams.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use k8s_cri::v1;
use k8s_cri::v1::runtime_service_server::RuntimeServiceServer;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::{Grpc, NamedService, ServerStreamingService};
use tonic::{Response, Status};
use tonic_prost::ProstCodec;

use super::{Backend, Served};
use crate::cri::convert::{incoming, outgoing};
use crate::cri::lists::{STREAM_CONTAINERS, STREAM_SANDBOXES};
use crate::history::{Reply, Request};

/// How many items one message of a stream has at most: few, so that there are several messages.
const BATCH: usize = 2;

/// The generated service, and the streams beside it.
pub(super) struct WithStreams<B: Backend> {
    pub(super) generated: RuntimeServiceServer<Served<B>>,
    pub(super) backend: Arc<B>,
}

impl<B: Backend> Clone for WithStreams<B> {
    fn clone(&self) -> Self {
        Self {
            generated: self.generated.clone(),
            backend: self.backend.clone(),
        }
    }
}

impl<B: Backend> NamedService for WithStreams<B> {
    const NAME: &'static str = RuntimeServiceServer::<Served<B>>::NAME;
}

impl<B: Backend> Service<http::Request<Body>> for WithStreams<B> {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, ask: http::Request<Body>) -> Self::Future {
        let backend = self.backend.clone();
        match ask.uri().path() {
            STREAM_SANDBOXES => {
                let list = List {
                    backend,
                    request: |ask: &v1::ListPodSandboxRequest| incoming::stream_sandboxes(ask),
                    messages: |reply| {
                        let whole = outgoing::sandboxes(reply)?.items;
                        let batches = whole.chunks(BATCH).map(<[_]>::to_vec);
                        Some(
                            batches
                                .map(|items| v1::ListPodSandboxResponse { items })
                                .collect(),
                        )
                    },
                };
                Box::pin(async { Ok(Grpc::new(codec()).server_streaming(list, ask).await) })
            }
            STREAM_CONTAINERS => {
                let list = List {
                    backend,
                    request: |ask: &v1::ListContainersRequest| incoming::stream_containers(ask),
                    messages: |reply| {
                        let whole = outgoing::containers(reply)?.containers;
                        let batches = whole.chunks(BATCH).map(<[_]>::to_vec);
                        let message = |containers| v1::ListContainersResponse { containers };
                        Some(batches.map(message).collect())
                    },
                };
                Box::pin(async { Ok(Grpc::new(codec()).server_streaming(list, ask).await) })
            }
            _ => self.generated.call(ask),
        }
    }
}

/// What a server writes and reads, the other way round than a client.
fn codec<A, T>() -> ProstCodec<T, A> {
    ProstCodec::default()
}

/// A list whose answer is cut into messages.
struct List<B, A, T> {
    backend: Arc<B>,
    request: fn(&A) -> Request,
    messages: fn(Reply) -> Option<Vec<T>>,
}

impl<B, A, T> ServerStreamingService<A> for List<B, A, T>
where
    B: Backend,
    A: Send + 'static,
    T: Send + 'static,
{
    type Response = T;
    type ResponseStream = tokio_stream::Iter<std::vec::IntoIter<Result<T, Status>>>;
    type Future = BoxFuture<Response<Self::ResponseStream>, Status>;

    fn call(&mut self, ask: tonic::Request<A>) -> Self::Future {
        let (backend, messages) = (self.backend.clone(), self.messages);
        let request = (self.request)(ask.get_ref());
        Box::pin(async move {
            let reply = backend.call(request).await;
            let reply = reply.map_err(|fault| outgoing::status(&fault))?;
            let messages = messages(reply);
            let messages = messages.ok_or_else(|| outgoing::status(&outgoing::misfit()))?;
            let messages: Vec<_> = messages.into_iter().map(Ok).collect();
            Ok(Response::new(tokio_stream::iter(messages)))
        })
    }
}
