//! A connection that can be aborted, as the death of its process would.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
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
use crate::host::SubscriberProcess;
use crate::limits;

/// Aborts a connection when cancelled: nothing more is sent or received on it, not even a closing
/// frame.
pub(super) type AbortToken = CancellationToken;

/// Opens an observer's connection, which `abort` ends; also returns the process that holds it, if
/// it needs its own process and the runtime is another process.
///
/// If an observer is to stall in this process, its flow-control window is small, so that the sender
/// soon has to wait. One that is stopped with its process stops the sender at the socket.
pub(super) async fn connect_abortable(
    endpoint: &Endpoint,
    observer: &Observer,
    abort: &AbortToken,
) -> Result<(Channel, Option<SubscriberProcess>), ConnectError> {
    endpoint.check()?;
    let (dial, process) = match endpoint.socket() {
        Some(socket) if observer.own_process => {
            let started = SubscriberProcess::start(socket, limits::CONNECT_DEADLINE).await;
            let (process, stream) = started.map_err(|fault| ConnectError::Refused {
                endpoint: endpoint.clone(),
                detail: format!("a process for a subscriber: {fault}"),
            })?;
            (Dial::Held(Mutex::new(Some(stream))), Some(process))
        }
        _ => (Dial::Direct(endpoint.clone()), None),
    };
    let has_small_window = observer.stalls && process.is_none();
    // gRPC requires the name of a host; it is unused.
    let host = observer.authority.as_deref().unwrap_or("localhost");
    let transport = Channel::from_shared(format!("http://{host}"))
        .map_err(|fault| malformed(endpoint, &fault))?
        .connect_timeout(limits::CONNECT_DEADLINE)
        .initial_stream_window_size(has_small_window.then_some(limits::STALLED_WINDOW_BYTES));
    let connector = Connector {
        dial: Arc::new(dial),
        abort: abort.clone(),
    };
    let connected = transport.connect_with_connector(connector).await;
    let connection = connected.map_err(|fault| refused(endpoint, &fault))?;
    Ok((connection, process))
}

/// The observer's host cannot be part of a request.
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

struct Connector {
    dial: Arc<Dial>,
    abort: AbortToken,
}

/// The way to reach the runtime.
enum Dial {
    Direct(Endpoint),
    /// Through a process that is connected: once.
    Held(Mutex<Option<UnixStream>>),
}

impl Dial {
    async fn dial(&self) -> io::Result<Box<dyn Stream>> {
        Ok(match self {
            Self::Direct(Endpoint::Socket(path)) => Box::new(UnixStream::connect(path).await?),
            Self::Direct(Endpoint::InProcess(server)) => Box::new(server.dial()?),
            Self::Held(stream) => {
                let held = stream.lock().unwrap_or_else(PoisonError::into_inner).take();
                Box::new(held.ok_or(io::ErrorKind::NotConnected)?)
            }
        })
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<AbortableConnection>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let (dial, abort) = (self.dial.clone(), self.abort.clone());
        Box::pin(async move {
            let stream = dial.dial().await?;
            let aborted = Box::pin(abort.clone().cancelled_owned());
            Ok(TokioIo::new(AbortableConnection {
                stream,
                abort,
                aborted,
            }))
        })
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

struct AbortableConnection {
    stream: Box<dyn Stream>,
    abort: AbortToken,
    aborted: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl AsyncRead for AbortableConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // Reading nothing means the end of the stream: the transport drops the connection.
        if self.aborted.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl AsyncWrite for AbortableConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.abort.is_cancelled() {
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
