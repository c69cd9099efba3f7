//! Listening for connections: on a socket, or within this process; with any `:authority`.
//!
//! Clients on gRPC's C core (Python, C++ and others) name a server at a socket by the socket's
//! escaped path, those in Java by the path; HTTP allows neither in `:authority`, and the `h2` crate
//! rejects such a call (<https://github.com/hyperium/h2/pull/487>). Runtimes in Go accept any name.
//! So characters that HTTP forbids in a name are replaced on arrival. The length stays the same:
//! the rest of the connection, including HPACK's tables, is unchanged.
//!
//! A Huffman-coded name is passed unchanged; no client is known to code one.

#[cfg(test)]
mod tests;

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tempfile::{Builder, TempDir};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_stream::Stream;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::server::Connected;

use super::endpoint::{Endpoint, InProcess};
use crate::files::Folder;

/// The length of a client's preface, which precedes its first frame.
const PREFACE: usize = 24;
/// The length, type, flags and stream of a frame.
const FRAME_HEADER: usize = 9;
/// The maximum length of a frame unless the server allows more.
const LONGEST_FRAME: usize = 1 << 14;
/// The type of the frame that begins a call.
const HEADERS: u8 = 1;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;
/// `:authority` in HPACK's static table.
const AUTHORITY: usize = 1;

/// A listener. When it is dropped, its socket file is removed.
#[derive(Debug)]
pub struct Listener {
    incoming: Option<Incoming>,
    _file: Option<SocketFile>,
}

#[derive(Debug)]
pub(super) enum Incoming {
    Socket(UnixListenerStream),
    InProcess(Connections),
}

/// The reason why a listener cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("a server already listens on {0}; choose another path, or stop that server first")]
    InUse(PathBuf),
    #[error("{0} exists and is no socket; choose another path, or remove it yourself")]
    Exists(PathBuf),
    /// An endpoint within this process, which always has a listener.
    #[error("{0} is no socket; name a path, such as unix:///tmp/cri.sock")]
    NoSocket(Endpoint),
    #[error("listen on {0}: {1}")]
    System(PathBuf, #[source] io::Error),
}

impl Listener {
    /// An endpoint within this process, and its listener.
    pub fn in_process(name: &str) -> (Endpoint, Self) {
        let (dial, calls) = unbounded_channel();
        let listener = Self {
            incoming: Some(Incoming::InProcess(Connections(calls))),
            _file: None,
        };
        (Endpoint::InProcess(InProcess::new(name, dial)), listener)
    }

    /// Listens on a socket that only this user may use. The socket of a dead server is replaced.
    pub async fn bind(endpoint: &Endpoint) -> Result<Self, ListenError> {
        let Endpoint::Socket(path) = endpoint else {
            return Err(ListenError::NoSocket(endpoint.clone()));
        };
        let system = |fault| ListenError::System(path.clone(), fault);
        let above = path.parent().filter(|above| !above.as_os_str().is_empty());
        let above = above.unwrap_or(Path::new("."));
        Folder::open_safe(above).map_err(system)?;
        make_room(path).await?;
        // Bound in a private folder and then moved, so that no other user can connect to it or
        // replace it at any time.
        let folder = private_folder_in(above).map_err(system)?;
        let private = folder.path().join("s");
        let listener = UnixListener::bind(&private).map_err(system)?;
        let moved = fs::set_permissions(&private, Permissions::from_mode(0o600))
            .and_then(|()| fs::hard_link(&private, path));
        match moved {
            Ok(()) => {}
            Err(fault) if fault.kind() == io::ErrorKind::AlreadyExists => {
                return Err(ListenError::InUse(path.clone()));
            }
            Err(fault) => return Err(system(fault)),
        }
        let made = fs::metadata(path).map_err(system)?;
        Ok(Self {
            incoming: Some(Incoming::Socket(UnixListenerStream::new(listener))),
            _file: Some(SocketFile {
                path: path.clone(),
                inode: made.ino(),
            }),
        })
    }

    pub(super) fn incoming(&mut self) -> Incoming {
        self.incoming.take().expect("a listener is served once")
    }
}

/// A socket's file, removed with its listener unless it has been replaced.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    inode: u64,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if fs::metadata(&self.path).is_ok_and(|found| found.ino() == self.inode) {
            // If it stays, the next server replaces it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Connections from within this process.
#[derive(Debug)]
pub(super) struct Connections(UnboundedReceiver<DuplexStream>);

impl Stream for Connections {
    type Item = io::Result<DuplexStream>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx).map(|connection| connection.map(Ok))
    }
}

/// A connection on which servers may have any name.
#[derive(Debug)]
pub(super) struct AnyAuthority<C> {
    connection: C,
    /// Bytes up to the next header of a frame.
    to_pass: usize,
    /// The received part of a frame header and, if it begins a call, of the whole frame.
    held: Vec<u8>,
    /// Bytes of `held` that are ready to be read, and the number already read.
    ready: usize,
    taken: usize,
    over: bool,
}

impl<C> AnyAuthority<C> {
    pub(super) fn new(connection: C) -> Self {
        Self {
            connection,
            to_pass: PREFACE,
            held: Vec::new(),
            ready: 0,
            taken: 0,
            over: false,
        }
    }

    /// Emits the ready bytes; returns whether there were any.
    fn give(&mut self, to: &mut ReadBuf<'_>) -> bool {
        let length = (self.ready - self.taken).min(to.remaining());
        to.put_slice(&self.held[self.taken..self.taken + length]);
        self.taken += length;
        if self.taken == self.ready {
            self.held.drain(..self.ready);
            (self.ready, self.taken) = (0, 0);
        }
        length > 0
    }

    /// Processes received bytes.
    fn look_at(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let passed = self.to_pass.min(bytes.len());
            self.to_pass -= passed;
            self.held.extend_from_slice(&bytes[..passed]);
            self.ready += passed;
            bytes = &bytes[passed..];
            let wanted = self.wanted();
            let taken = wanted
                .saturating_sub(self.held.len() - self.ready)
                .min(bytes.len());
            self.held.extend_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
            self.frame();
        }
    }

    /// The number of bytes needed to handle the next frame.
    fn wanted(&self) -> usize {
        let next = &self.held[self.ready..];
        match frame(next) {
            Some((length, HEADERS)) if length <= LONGEST_FRAME => FRAME_HEADER + length,
            _ => FRAME_HEADER,
        }
    }

    /// Handles the next frame once enough of it has arrived.
    fn frame(&mut self) {
        let Some((length, kind)) = frame(&self.held[self.ready..]) else {
            return;
        };
        if self.held.len() - self.ready < self.wanted() {
            return;
        }
        if self.wanted() == FRAME_HEADER {
            self.to_pass = length;
        } else if kind == HEADERS {
            rename(&mut self.held[self.ready..]);
        }
        self.ready = self.held.len();
    }
}

impl<C: AsyncRead + Unpin> AsyncRead for AnyAuthority<C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if to.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        while !self.give(to) && !self.over {
            let mut buffer = [0; LONGEST_FRAME];
            let mut came = ReadBuf::new(&mut buffer);
            ready!(Pin::new(&mut self.connection).poll_read(context, &mut came))?;
            if came.filled().is_empty() {
                // An incomplete frame is passed unchanged.
                self.over = true;
                self.ready = self.held.len();
            } else {
                self.look_at(came.filled());
            }
        }
        if self.over {
            self.give(to);
        }
        Poll::Ready(Ok(()))
    }
}

impl<C: AsyncWrite + Unpin> AsyncWrite for AnyAuthority<C> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_shutdown(context)
    }
}

impl<C: Connected> Connected for AnyAuthority<C> {
    type ConnectInfo = C::ConnectInfo;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.connection.connect_info()
    }
}

/// A temporary folder, accessible to its owner only.
fn private_folder_in(folder: &Path) -> io::Result<TempDir> {
    Builder::new()
        .prefix(".")
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(folder)
}

/// Removes the socket of a dead server.
async fn make_room(path: &Path) -> Result<(), ListenError> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(fault) => return Err(ListenError::System(path.to_owned(), fault)),
    };
    if !found.file_type().is_socket() {
        return Err(ListenError::Exists(path.to_owned()));
    }
    match UnixStream::connect(path).await {
        Err(fault) if fault.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(|fault| ListenError::System(path.to_owned(), fault))
        }
        Ok(_) => Err(ListenError::InUse(path.to_owned())),
        Err(fault) => Err(ListenError::System(path.to_owned(), fault)),
    }
}

/// The length and the type of a frame; `None` until its header is complete.
fn frame(bytes: &[u8]) -> Option<(usize, u8)> {
    let header = bytes.first_chunk::<FRAME_HEADER>()?;
    let length =
        usize::from(header[0]) << 16 | usize::from(header[1]) << 8 | usize::from(header[2]);
    Some((length, header[3]))
}

/// Replaces the characters that HTTP forbids in the server's name, in a frame that begins a call.
fn rename(frame: &mut [u8]) -> Option<()> {
    let flags = frame[4];
    let block = &mut frame[FRAME_HEADER..];
    let mut at = usize::from(flags & PADDED != 0);
    at += if flags & PRIORITY != 0 { 5 } else { 0 };
    loop {
        let first = *block.get(at)?;
        let (index, has_value) = match first {
            0x80.. => (integer(block, &mut at, 7)?, false),
            0x40.. => (integer(block, &mut at, 6)?, true),
            // The size of the table.
            0x20.. => (integer(block, &mut at, 5)?, false),
            _ => (integer(block, &mut at, 4)?, true),
        };
        if !has_value {
            continue;
        }
        if index == 0 {
            let (_, name) = string(block, &mut at)?;
            if name == b":authority" {
                plain(string(block, &mut at)?);
                continue;
            }
        }
        let value = string(block, &mut at)?;
        if index == AUTHORITY {
            plain(value);
        }
    }
}

fn plain((is_coded, name): (bool, &mut [u8])) {
    if is_coded {
        return;
    }
    for byte in name {
        if !byte.is_ascii_alphanumeric() && !matches!(byte, b'.' | b'-' | b':' | b'[' | b']') {
            *byte = b'-';
        }
    }
}

/// A string, and whether it is Huffman-coded.
fn string<'a>(block: &'a mut [u8], at: &mut usize) -> Option<(bool, &'a mut [u8])> {
    let is_coded = block.get(*at)? & 0x80 != 0;
    let length = integer(block, at, 7)?;
    let begins = *at;
    *at = begins.checked_add(length)?;
    Some((is_coded, block.get_mut(begins..*at)?))
}

/// An integer with a prefix of the given number of bits (RFC 7541, section 5.1).
fn integer(block: &[u8], at: &mut usize, bits: u32) -> Option<usize> {
    let most = (1_usize << bits) - 1;
    let mut value = usize::from(*block.get(*at)?) & most;
    *at += 1;
    if value < most {
        return Some(value);
    }
    for shift in (0..28).step_by(7) {
        let byte = usize::from(*block.get(*at)?);
        *at += 1;
        value += (byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}
