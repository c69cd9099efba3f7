//! Connects to an endpoint, by a connection that can be aborted as the death of its process would,
//! and explains failures of connections and calls, as gRPC and the layers below report them.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::Status;
use tonic::codegen::Service;
use tonic::transport::{Channel, Uri};

use super::endpoint::{Endpoint, SocketError};
use crate::history::messages::ReplyError;
use crate::history::{CallFault, Observer, StatusCode};
use crate::host::SubscriberProcess;
use crate::limits;

/// The reason why a connection to an endpoint failed.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Its file is not a socket, or access is denied.
    #[error(transparent)]
    Socket(#[from] SocketError),
    #[error("no server listens on {endpoint}: {detail}; is the runtime running?")]
    Refused { endpoint: Endpoint, detail: String },
    /// The server accepts connections and does not reply.
    #[error(
        "{endpoint} takes connections but did not answer `Version` within {deadline:?}; \
         is the runtime stuck, or is this another program's socket?"
    )]
    Silent {
        endpoint: Endpoint,
        deadline: Duration,
    },
    /// A gRPC server that does not serve the CRI.
    #[error(
        "{endpoint} does not offer the CRI (runtime.v1.RuntimeService): {fault}; \
         if it is containerd, is its `cri` plugin disabled?"
    )]
    NotCri {
        endpoint: Endpoint,
        fault: CallFault,
    },
    /// The runtime replied with an error, or the server does not speak gRPC.
    #[error(
        "{endpoint} did not answer `Version` as a CRI runtime does: {fault}; \
         has the runtime just been started, or is this another program's socket?"
    )]
    Failed {
        endpoint: Endpoint,
        fault: CallFault,
    },
}

/// Aborts a connection when cancelled: nothing more is sent or received on it, not even a closing
/// frame.
pub(super) type AbortToken = CancellationToken;

/// Makes connections for a client of HTTP/2.
#[derive(Clone)]
pub(super) struct Connector {
    dial: Arc<Dial>,
    abort: AbortToken,
}

impl Connector {
    /// A connector to this endpoint.
    pub(super) fn new(endpoint: &Endpoint) -> Self {
        Self {
            dial: Arc::new(Dial::Direct(endpoint.clone())),
            abort: AbortToken::new(),
        }
    }
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
            let stream = tokio::time::timeout(limits::CONNECT_DEADLINE, dial.dial()).await??;
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

pub(super) struct AbortableConnection {
    stream: Box<dyn Stream>,
    abort: AbortToken,
    aborted: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Connection for AbortableConnection {
    fn connected(&self) -> Connected {
        Connected::new()
    }
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

type Cause = dyn std::error::Error + 'static;

/// Opens a separate connection to an endpoint.
pub(super) async fn channel(endpoint: &Endpoint) -> Result<Channel, ConnectError> {
    endpoint.check()?;
    let refused = |fault: tonic::transport::Error| refused(endpoint, &fault);
    let address = match endpoint {
        Endpoint::Socket(_) => endpoint.to_string(),
        // gRPC requires a host name, which is not used.
        Endpoint::InProcess(_) => "http://in-process".to_owned(),
    };
    let transport = tonic::transport::Endpoint::from_shared(address)
        .map_err(refused)?
        .connect_timeout(limits::CONNECT_DEADLINE);
    let connected = match endpoint {
        Endpoint::Socket(_) => transport.connect().await,
        Endpoint::InProcess(server) => transport.connect_with_connector(server.clone()).await,
    };
    connected.map_err(refused)
}

/// No process listens, or the server closes the connection.
pub(super) fn refused(endpoint: &Endpoint, fault: &tonic::transport::Error) -> ConnectError {
    let endpoint = endpoint.clone();
    let cause = deepest(fault);
    let kind = cause.downcast_ref().map(std::io::Error::kind);
    if kind == Some(std::io::ErrorKind::ConnectionRefused) {
        let detail = cause.to_string();
        return ConnectError::Refused { endpoint, detail };
    }
    let fault = CallFault {
        code: StatusCode::UNAVAILABLE,
        message: cause.to_string(),
        deadline: limits::CONNECT_DEADLINE,
    };
    ConnectError::Failed { endpoint, fault }
}

/// Explains the failure of the first call.
pub(super) fn diagnose(endpoint: &Endpoint, fault: CallFault) -> ConnectError {
    let endpoint = endpoint.clone();
    match fault.code {
        StatusCode::DEADLINE_EXCEEDED => ConnectError::Silent {
            endpoint,
            deadline: fault.deadline,
        },
        StatusCode::UNIMPLEMENTED => ConnectError::NotCri { endpoint, fault },
        _ => ConnectError::Failed { endpoint, fault },
    }
}

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

pub(super) fn fault(status: &Status, deadline: Duration) -> CallFault {
    // A broken transport hides its cause behind "transport error": report the cause.
    let cause = std::error::Error::source(status).map(innermost);
    let hidden = cause.filter(|cause| cause != status.message());
    let message = match hidden {
        Some(cause) => format!("{}: {cause}", status.message()),
        None => status.message().to_owned(),
    };
    CallFault {
        code: code(status),
        message,
        deadline,
    }
}

/// The runtime's status code, or `UNAVAILABLE` if it did not reply, for which tonic has many codes:
/// `UNKNOWN`, `INTERNAL` and `CANCELLED` among them.
fn code(status: &Status) -> StatusCode {
    // Only a local error has a source.
    match std::error::Error::source(status) {
        None => StatusCode(status.code() as i32),
        Some(_) => StatusCode::UNAVAILABLE,
    }
}

/// Why a unary call without a usable reply failed: `DATA_LOSS` if there was one that gRPC could not
/// decode.
pub(super) fn status_fault(status: &Status, deadline: Duration) -> CallFault {
    let fault = fault(status, deadline);
    if !is_unreadable(status) {
        return fault;
    }
    CallFault {
        code: StatusCode::DATA_LOSS,
        ..fault
    }
}

/// Why a reply cannot be used: `DATA_LOSS` if it cannot be read.
pub(super) fn reply_fault(fault: &ReplyError, deadline: Duration) -> CallFault {
    let code = match fault {
        ReplyError::Unreadable(_) | ReplyError::NoStatus(_) | ReplyError::UnknownResponse => {
            StatusCode::DATA_LOSS
        }
        ReplyError::TooLong { .. } | ReplyError::Unasked(_) => StatusCode::RESOURCE_EXHAUSTED,
    };
    CallFault {
        code,
        message: fault.to_string(),
        deadline,
    }
}

/// Whether it says that a message cannot be decoded, or exceeds our limit: tonic creates such a
/// status itself, and one from a runtime has headers.
fn is_unreadable(status: &Status) -> bool {
    let says_so = matches!(
        status.code(),
        tonic::Code::Internal | tonic::Code::OutOfRange
    );
    let is_own = std::error::Error::source(status).is_none();
    says_so && is_own && status.metadata().is_empty()
}

/// The innermost cause: `No such file or directory` rather than `transport error`.
pub(super) fn innermost(fault: &Cause) -> String {
    deepest(fault).to_string()
}

fn deepest(fault: &Cause) -> &Cause {
    let mut deepest = fault;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Unreadable;

    #[track_caller]
    fn check_status(status: &Status, code: StatusCode) {
        assert_eq!(status_fault(status, Duration::from_secs(1)).code, code);
    }

    #[track_caller]
    fn check_reply(fault: &ReplyError, code: StatusCode) {
        assert_eq!(reply_fault(fault, Duration::from_secs(1)).code, code);
    }

    #[test]
    fn a_cause_is_stated_once() {
        let refused = || std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let status = tonic::Status::from_error(refused().into());
        let message = fault(&status, Duration::ZERO).message;
        assert_eq!(
            message.matches(&refused().to_string()).count(),
            1,
            "{message}"
        );
    }

    #[test]
    fn an_unanswered_call_is_distinguished_from_a_refused_one() {
        let broken = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        check_status(&Status::from_error(broken.into()), StatusCode::UNAVAILABLE);
        let unimplemented = Status::unimplemented("no such method");
        check_status(&unimplemented, StatusCode::UNIMPLEMENTED);
        check_status(&Status::cancelled("by the runtime"), StatusCode::CANCELLED);
        let unreadable = <() as prost::Message>::decode(&[0xff][..]).unwrap_err();
        check_reply(
            &ReplyError::from(Unreadable::from(unreadable)),
            StatusCode::DATA_LOSS,
        );
        check_reply(
            &ReplyError::NoStatus("Status".to_owned()),
            StatusCode::DATA_LOSS,
        );
        check_reply(&ReplyError::Unasked(2), StatusCode::RESOURCE_EXHAUSTED);
        check_status(&Status::out_of_range("too large"), StatusCode::DATA_LOSS);
        let mut internal = Status::internal("of the runtime's own");
        internal
            .metadata_mut()
            .insert("content-type", "application/grpc".parse().unwrap());
        check_status(&internal, StatusCode(13));
    }
}
