//! The methods of `RuntimeService` that the generated server does not have, lists as streams; and
//! those whose messages it knows in part only: a container's creation and status, with its signal.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use k8s_cri::v1;
use k8s_cri::v1::runtime_service_server::RuntimeServiceServer;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::{Grpc, NamedService, ServerStreamingService, UnaryService};
use tonic::{Response, Status};
use tonic_prost::ProstCodec;

use super::{Backend, Served};
use crate::cri::convert::{incoming, outgoing};
use crate::cri::lists::{STREAM_CONTAINERS, STREAM_SANDBOXES};
use crate::cri::signals::{CONTAINER_STATUS, CREATE_CONTAINER, CreateContainer, StatusAnswer};
use crate::history::{ContainerId, Reply, Request};
use crate::limits;

/// How many items one message of a stream has at most: few, so that there are several messages.
const BATCH: usize = 2;

/// The generated service, and what it lacks.
pub(super) struct WithMore<B: Backend> {
    pub(super) generated: RuntimeServiceServer<Served<B>>,
    pub(super) backend: Arc<B>,
}

impl<B: Backend> Clone for WithMore<B> {
    fn clone(&self) -> Self {
        Self {
            generated: self.generated.clone(),
            backend: self.backend.clone(),
        }
    }
}

impl<B: Backend> NamedService for WithMore<B> {
    const NAME: &'static str = RuntimeServiceServer::<Served<B>>::NAME;
}

impl<B: Backend> Service<http::Request<Body>> for WithMore<B> {
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
                Box::pin(async { Ok(server().server_streaming(list, ask).await) })
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
                Box::pin(async { Ok(server().server_streaming(list, ask).await) })
            }
            CREATE_CONTAINER => {
                let method = Method {
                    backend,
                    request: |ask: &CreateContainer| {
                        let (ask, signal) = ask.parts()?;
                        incoming::create_container(&ask, signal)
                    },
                    answer: outgoing::container,
                };
                Box::pin(async { Ok(server().unary(method, ask).await) })
            }
            CONTAINER_STATUS => {
                let method = Method {
                    backend,
                    request: |ask: &v1::ContainerStatusRequest| {
                        let id = ContainerId::from(ask.container_id.clone());
                        Ok(Request::ContainerStatus(id))
                    },
                    answer: |reply| {
                        let (status, signal) = outgoing::container_report(reply)?;
                        Some(StatusAnswer::of(&status, signal))
                    },
                };
                Box::pin(async { Ok(server().unary(method, ask).await) })
            }
            _ => self.generated.call(ask),
        }
    }
}

/// What reads and writes the messages of one call.
fn server<A, T>() -> Grpc<ProstCodec<T, A>>
where
    A: prost::Message + Default + Send + 'static,
    T: prost::Message + Default + Send + 'static,
{
    Grpc::new(ProstCodec::default()).max_decoding_message_size(limits::MESSAGE_BYTES)
}

/// A call that has one answer.
struct Method<B, A, T> {
    backend: Arc<B>,
    request: fn(&A) -> Result<Request, Status>,
    answer: fn(Reply) -> Option<T>,
}

impl<B, A, T> UnaryService<A> for Method<B, A, T>
where
    B: Backend,
    A: Send + 'static,
    T: Send + 'static,
{
    type Response = T;
    type Future = BoxFuture<Response<T>, Status>;

    fn call(&mut self, ask: tonic::Request<A>) -> Self::Future {
        let (backend, answer) = (self.backend.clone(), self.answer);
        let request = (self.request)(ask.get_ref());
        Box::pin(async move {
            let reply = backend.call(request?).await;
            let reply = reply.map_err(|fault| outgoing::status(&fault))?;
            let answer = answer(reply);
            let answer = answer.ok_or_else(|| outgoing::status(&outgoing::misfit()))?;
            Ok(Response::new(answer))
        })
    }
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
