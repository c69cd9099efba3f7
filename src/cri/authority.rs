//! Accepts any `:authority` from clients.
//!
//! Clients on gRPC's C core (Python, C++ and others) name a server at a socket by the socket's
//! escaped path, those in Java by the path; HTTP allows neither in `:authority`, and the `h2` crate
//! rejects such a call (<https://github.com/hyperium/h2/pull/487>). Runtimes in Go accept any name.
//! So characters that HTTP forbids in a name are replaced on arrival. The length stays the same:
//! the rest of the connection, including HPACK's tables, is unchanged.
//!
//! A Huffman-coded name is passed unchanged; no client is known to code one.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tonic::transport::server::Connected;

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

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    fn headers(flags: u8, block: &[u8]) -> Vec<u8> {
        let length = u8::try_from(block.len()).unwrap();
        let mut bytes = vec![0, 0, length, HEADERS, flags, 0, 0, 0, 1];
        bytes.extend_from_slice(block);
        bytes
    }

    /// Checks the bytes that a server reads, for all ways of splitting them.
    #[track_caller]
    fn check(frames: &[Vec<u8>], expect: &[Vec<u8>]) {
        let preface = [b'P'; PREFACE].to_vec();
        let sent = [std::slice::from_ref(&preface), frames].concat().concat();
        let expect = [std::slice::from_ref(&preface), expect].concat().concat();
        for part in [1, 2, 7, 10, 25, sent.len()] {
            let parts = sent.chunks(part).rev().map(<[u8]>::to_vec).collect();
            let mut mock = AnyAuthority::new(Parts(parts));
            let mut read = Vec::new();
            let runtime = tokio::runtime::Builder::new_current_thread().build();
            let done = runtime.unwrap().block_on(mock.read_to_end(&mut read));
            done.unwrap();
            assert_eq!(read, expect, "in parts of {part}");
        }
    }

    /// A connection that delivers one part per read.
    struct Parts(Vec<Vec<u8>>);

    impl AsyncRead for Parts {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            to: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            to.put_slice(&self.0.pop().unwrap_or_default());
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn a_path_becomes_a_name() {
        let before = headers(4, b"\x83\x41\x0ctmp%2Fa.sock\x86\x40\x01x\x02%%");
        let mut after = before.clone();
        let percent = after.iter().position(|byte| *byte == b'%').unwrap();
        after[percent] = b'-';
        check(&[before.clone(), before], &[after.clone(), after]);
    }

    #[test]
    fn padding_and_priority_are_passed_over() {
        let before = headers(PADDED | PRIORITY, b"\x01\0\0\0\0\0\x01\x02/s\0");
        let after = headers(PADDED | PRIORITY, b"\x01\0\0\0\0\0\x01\x02-s\0");
        check(&[before], &[after]);
    }

    #[test]
    fn all_else_stays_as_it_is() {
        let settings = vec![0, 0, 6, 4, 0, 0, 0, 0, 0, 0x41, 0x01, b'%', 0, 0, 0];
        let coded = headers(4, b"\x41\x82%%");
        let broken = headers(4, b"\x41\x7f%%");
        let cut = vec![0, 0, 9, HEADERS, 4];
        let all = [settings, coded, broken, cut];
        check(&all, &all);
    }

    #[test]
    fn a_name_that_is_spelled_out_is_found() {
        let before = headers(4, b"\x00\x0a:authority\x03a%b");
        let after = headers(4, b"\x00\x0a:authority\x03a-b");
        check(&[before], &[after]);
    }
}
