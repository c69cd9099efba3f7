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

use super::client::refused;
use super::{ConnectError, Endpoint};
use crate::limits;

/// What cuts a connection: nothing more is sent or received on it, not even a farewell.
pub(super) type Cut = CancellationToken;

/// Opens a connection that `cut` will end. One with a small window holds up a sender soon when
/// nobody reads.
pub(super) async fn line(
    endpoint: &Endpoint,
    small_window: bool,
    cut: &Cut,
) -> Result<Channel, ConnectError> {
    endpoint.check()?;
    // gRPC wants the name of a host; nothing is made of it.
    let transport = Channel::from_static("http://localhost")
        .connect_timeout(limits::CONNECT_DEADLINE)
        .initial_stream_window_size(small_window.then_some(limits::STALLED_WINDOW_BYTES));
    let dial = Dial {
        endpoint: endpoint.clone(),
        cut: cut.clone(),
    };
    let connected = transport.connect_with_connector(dial).await;
    connected.map_err(|fault| refused(endpoint, &fault))
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
