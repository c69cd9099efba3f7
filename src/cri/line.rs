//! A connection of its own that can be cut, as by the death of the process that holds it.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::codegen::Service;
use tonic::transport::{Channel, Uri};

use super::connect::refused;
use super::{ConnectError, Endpoint};
use crate::history::{CallFault, Observer, StatusCode};
use crate::limits;

/// What cuts a connection: nothing more is sent or received on it, not even a farewell.
pub(super) type Cut = CancellationToken;

/// Opens an observer's connection, which `cut` will end. That of one that stalls has a small
/// window: it holds up a sender soon when nobody reads.
pub(super) async fn line(
    endpoint: &Endpoint,
    observer: &Observer,
    cut: &Cut,
) -> Result<Channel, ConnectError> {
    endpoint.check()?;
    // gRPC wants the name of a host; nothing is made of it.
    let host = observer.authority.as_deref().unwrap_or("localhost");
    let transport = Channel::from_shared(format!("http://{host}"))
        .map_err(|fault| malformed(endpoint, &fault))?
        .connect_timeout(limits::CONNECT_DEADLINE)
        .initial_stream_window_size(observer.stalls.then_some(limits::STALLED_WINDOW_BYTES));
    let dial = Dial {
        endpoint: endpoint.clone(),
        cut: cut.clone(),
    };
    let connected = transport.connect_with_connector(dial).await;
    connected.map_err(|fault| refused(endpoint, &fault))
}

/// No such host can be named in a request.
fn malformed(endpoint: &Endpoint, fault: &dyn std::fmt::Display) -> ConnectError {
    ConnectError::Failed {
        endpoint: endpoint.clone(),
        fault: CallFault {
            code: StatusCode::INVALID_ARGUMENT,
            message: fault.to_string(),
            deadline: limits::CONNECT_DEADLINE,
        },
    }
}

/// Makes connections, as gRPC's transport wants it.
struct Dial {
    endpoint: Endpoint,
    cut: Cut,
}

impl Service<Uri> for Dial {
    type Response = TokioIo<Line>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let (endpoint, cut) = (self.endpoint.clone(), self.cut.clone());
        Box::pin(async move {
            let stream: Box<dyn Stream> = match &endpoint {
                Endpoint::Socket(path) => Box::new(UnixStream::connect(path).await?),
                Endpoint::InProcess(server) => Box::new(server.dial()?),
            };
            let is_cut = Box::pin(cut.clone().cancelled_owned());
            Ok(TokioIo::new(Line {
                stream,
                cut,
                is_cut,
            }))
        })
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

struct Line {
    stream: Box<dyn Stream>,
    cut: Cut,
    is_cut: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // Nothing read is the end, upon which the transport lets the connection go.
        if self.is_cut.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl AsyncWrite for Line {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.cut.is_cancelled() {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
