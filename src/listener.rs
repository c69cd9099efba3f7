//! Connections of HTTP servers: only plain HTTP, and a bounded number for a bounded time.
//!
//! For each server there are at most `limits::CONNECTIONS` at once, and none lasts longer than
//! `limits::CONNECTION_LIFETIME`, however much of a request has been sent. hyper bounds the head
//! of a request: some 400 KiB, and 100 fields.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::limits::{CONNECTION_LIFETIME, CONNECTIONS};

/// A running HTTP server, which ends with all its connections when this is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    _connections: DropGuard,
    _accepting: JoinSet<io::Result<()>>,
}

impl Server {
    /// Serves at an address; port 0 selects a free port.
    pub(crate) async fn serve(address: SocketAddr, router: Router) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let stop = CancellationToken::new();
        let listener = PlainListener::new(listener, stop.clone());
        let mut server = JoinSet::new();
        server.spawn(axum::serve(listener, router).into_future());
        Ok(Self {
            address,
            _connections: stop.drop_guard(),
            _accepting: server,
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

/// The pause after an accept error.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// The first byte of a TLS handshake.
const TLS_HANDSHAKE: u8 = 0x16;

/// The answer to a TLS handshake. containerd 2 tries HTTPS first and falls back to plain HTTP only
/// after an HTTP response; it treats a closed connection as a failure.
const PLAIN_HTTP_ONLY: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// Accepts connections and yields those that speak plain HTTP.
///
/// Each connection's first byte is awaited in a separate task, so that a silent client delays no
/// other. The tasks are part of this value and end with it.
struct PlainListener {
    acceptor: Acceptor,
    arriving: JoinSet<Option<(Connection, SocketAddr)>>,
}

impl PlainListener {
    /// Connections end when `stop` is cancelled.
    fn new(listener: TcpListener, stop: CancellationToken) -> Self {
        Self {
            acceptor: Acceptor::new(listener, stop),
            arriving: JoinSet::new(),
        }
    }
}

impl Listener for PlainListener {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            tokio::select! {
                Some(arrived) = self.arriving.join_next() => {
                    if let Ok(Some(connection)) = arrived {
                        return connection;
                    }
                }
                (connection, peer) = self.acceptor.accept() => {
                    self.arriving.spawn(async move { Some((connection.plain().await?, peer)) });
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.acceptor.listener.local_addr()
    }
}

/// Accepts connections while there are free slots.
struct Acceptor {
    listener: TcpListener,
    slots: Arc<Semaphore>,
    stop: CancellationToken,
}

impl Acceptor {
    fn new(listener: TcpListener, stop: CancellationToken) -> Self {
        Self {
            listener,
            slots: Arc::new(Semaphore::new(CONNECTIONS)),
            stop,
        }
    }

    async fn accept(&self) -> (Connection, SocketAddr) {
        let slot = Arc::clone(&self.slots)
            .acquire_owned()
            .await
            .expect("the semaphore is never closed");
        loop {
            match self.listener.accept().await {
                Ok((stream, peer)) => return (Connection::new(stream, slot, &self.stop), peer),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    // Most likely the process is out of file descriptors for a while. Without the
                    // pause this would be a busy loop.
                    let _ = timeout(ACCEPT_PAUSE, self.stop.cancelled()).await;
                }
            }
        }
    }
}

/// A client's connection. It occupies a slot, and fails after its lifetime or with the registry.
struct Connection {
    stream: TcpStream,
    end: Pin<Box<dyn Future<Output = ()> + Send>>,
    _slot: OwnedSemaphorePermit,
}

impl Connection {
    fn new(stream: TcpStream, slot: OwnedSemaphorePermit, stop: &CancellationToken) -> Self {
        let stopped = stop.clone().cancelled_owned();
        let end = Box::pin(async move {
            let _ = timeout(CONNECTION_LIFETIME, stopped).await;
        });
        Self {
            stream,
            end,
            _slot: slot,
        }
    }

    /// Peeks at the first byte, and rejects a TLS handshake.
    async fn plain(mut self) -> Option<Self> {
        let mut first = [0];
        let peeked = tokio::select! {
            peeked = self.stream.peek(&mut first) => peeked.ok()?,
            () = &mut self.end => return None,
        };
        if peeked == 0 {
            return None;
        }
        if first == [TLS_HANDSHAKE] {
            self.refuse_tls().await.ok()?;
            return None;
        }
        Some(self)
    }

    /// Answers, then reads the client's data: closing a socket with unread bytes would reset the
    /// connection, and the client might lose the answer.
    async fn refuse_tls(&mut self) -> io::Result<()> {
        self.write_all(PLAIN_HTTP_ONLY).await?;
        self.shutdown().await?;
        tokio::io::copy(self, &mut tokio::io::sink()).await?;
        Ok(())
    }

    fn poll_end(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.end.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll_end(context)?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_end(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
