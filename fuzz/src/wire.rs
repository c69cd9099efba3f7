//! gRPC without the CRI: messages are arbitrary bytes.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::{Buf, BufMut, Bytes};
use cri_event_conformance::testing::cri::InProcess;
use tokio::net::UnixListener;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_stream::Stream;
use tokio_stream::wrappers::{UnboundedReceiverStream, UnixListenerStream};
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::{Service, http};
use tonic::transport::{Endpoint, Server};
use tonic::{Request, Response, Status};

/// A message, or a status.
pub type Said = Result<Vec<u8>, Status>;

/// A server's replies, in the order of the requests. Cheap to clone.
#[derive(Clone, Default)]
pub struct Lines(Arc<Mutex<Queues>>);

#[derive(Default)]
struct Queues {
    answers: VecDeque<Said>,
    streams: VecDeque<UnboundedReceiver<Said>>,
}

impl Lines {
    /// Sets the answer of the next call without one.
    pub fn answer(&self, said: Said) {
        self.queues().answers.push_back(said);
    }

    /// Sets the next event stream.
    pub fn stream(&self, events: UnboundedReceiver<Said>) {
        self.queues().streams.push_back(events);
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self, path: &str) -> Result<Response<Saying>, Status> {
        let missing = || Status::unimplemented("nothing more is said");
        let mut queues = self.queues();
        let saying: Saying = if path.ends_with("/GetContainerEvents") {
            let events = queues.streams.pop_front().ok_or_else(missing)?;
            Box::pin(UnboundedReceiverStream::new(events))
        } else {
            let answer = queues.answers.pop_front().ok_or_else(missing)?;
            Box::pin(tokio_stream::once(Ok(answer?)))
        };
        Ok(Response::new(saying))
    }
}

/// Serves them to all clients, until this is dropped.
pub async fn serve(lines: Lines, listener: UnixListener) {
    let connections = UnixListenerStream::new(listener);
    let served = Server::builder().serve_with_incoming(lines, connections);
    served.await.expect("connections can be taken");
}

/// Sends a message unchanged to a method of a CRI server, and accepts any answer.
pub async fn ask(server: InProcess, path: &'static str, message: Vec<u8>) {
    let endpoint = Endpoint::from_static("http://in-process");
    let channel = endpoint.connect_with_connector(server).await;
    let mut client = tonic::client::Grpc::new(channel.expect("the server is there"));
    client.ready().await.expect("it takes calls");
    let path = http::uri::PathAndQuery::from_static(path);
    let _ = client.unary(Request::new(message), path, AsItIs).await;
}

type Saying = Pin<Box<dyn Stream<Item = Said> + Send>>;

impl Service<http::Request<Body>> for Lines {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, ask: http::Request<Body>) -> Self::Future {
        let line = Line(Some(self.next(ask.uri().path())));
        Box::pin(async {
            let mut server = tonic::server::Grpc::new(AsItIs);
            Ok(server.server_streaming(line, ask).await)
        })
    }
}

/// The answer to one call.
struct Line(Option<Result<Response<Saying>, Status>>);

impl Service<Request<Bytes>> for Line {
    type Response = Response<Saying>;
    type Error = Status;
    type Future = Ready<Result<Self::Response, Status>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Bytes>) -> Self::Future {
        ready(self.0.take().expect("a call is answered once"))
    }
}

/// Messages that are not decoded.
#[derive(Clone, Copy)]
struct AsItIs;

impl Codec for AsItIs {
    type Encode = Vec<u8>;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for AsItIs {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, message: Vec<u8>, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.put_slice(&message);
        Ok(())
    }
}

impl Decoder for AsItIs {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}
