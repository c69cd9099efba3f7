//! Encoding and decoding of histories, in the format of `proto/history.proto`: entries in frames
//! that are compressed and have checksums.
//!
//! Encoding cannot fail. Decoding returns the entries before the first fault, and a [`DecodeFault`]
//! that says where it is and what to do: the history of a run that was killed is cut off, and the
//! entries of its whole frames are valid. Pure: callers open the files.

mod bodies;
mod frames;
#[cfg(test)]
mod tests;

use std::io::{self, BufRead};

use prost::encoding::decode_varint;

use self::frames::{FrameFault, Frames};
use super::protobuf::{Malformed, Message, Unreadable, write_with_length};
use super::{Body, Entry};

pub(super) use self::bodies::{CallBegan, CallEnded, EventArrived, RunBegan};
pub use self::frames::FrameWriter;

/// The version of the format, the only one that is read.
pub const FORMAT_VERSION: u32 = 5;
/// The longest message that is read: 16 MiB, as long as a kubelet accepts from a runtime, and one
/// more for the fields around it. A damaged length cannot make the reader allocate more.
pub const MESSAGE_LIMIT: usize = 17 << 20;

/// Entries, and why they end before the bytes do.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The entries that could be read, in order.
    pub entries: Vec<Entry>,
    /// The reason for which the reader stopped; absent if it reached the end.
    pub fault: Option<DecodeFault>,
}

/// Why a history cannot be read beyond some byte.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DecodeFault {
    /// The bytes end within a message, as they do when the writer was killed.
    #[error(
        "decode the history at byte {offset}: it ends within a frame of entries, as that of a run \
         that was killed does; {}",
        if *.offset == 0 { "nothing is before it" } else { "what is before it is whole" }
    )]
    Truncated {
        /// Where the message begins.
        offset: usize,
    },
    /// A frame cannot be read, or its checksum is wrong.
    #[error(
        "decode the history at byte {offset}: the file is damaged from here on, or is no history \
         ({reason})"
    )]
    Frame {
        /// Where the frame begins.
        offset: usize,
        reason: String,
    },
    /// A message is longer than any that is ever written.
    #[error(
        "decode the history at byte {offset}: an entry of {length} bytes is longer than the limit \
         of {MESSAGE_LIMIT}; the file is damaged from here on, or is no history"
    )]
    Oversized {
        /// Where the message begins.
        offset: usize,
        /// How long it claims to be.
        length: u64,
    },
    #[error(
        "decode the history at byte {offset}: the file is damaged from here on, or is no history"
    )]
    Malformed {
        /// Where the message begins.
        offset: usize,
        #[source]
        source: Malformed,
    },
    /// A message lacks a required field.
    #[error(
        "decode the history at byte {offset}: an entry has no {what} that this version knows; a \
         later version of the suite may read it"
    )]
    Incomplete {
        /// Where the message begins.
        offset: usize,
        /// The field that is absent.
        what: &'static str,
    },
    /// There is no first entry, or it is not the beginning of a run.
    #[error("decode the history at byte 0: it does not begin as a history of this suite does")]
    Headless,
    /// The file is of another version of the format.
    #[error(
        "decode the history at byte {offset}: its format is version {version}, and this suite \
         reads version {FORMAT_VERSION}; use the suite that recorded it"
    )]
    Version {
        /// Where the message begins.
        offset: usize,
        version: u32,
    },
}

/// Reads a history file entry by entry. The first fault is the end.
#[derive(Debug)]
pub struct StreamDecoder<R> {
    frames: Frames<R>,
    /// The frame that is being read, where in the source it began, and how far it has been read.
    frame: Vec<u8>,
    began: usize,
    read: usize,
    entries: u64,
    over: bool,
}

/// Why a history cannot be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum ReadFault {
    #[error("read the history at byte {offset}: {fault}")]
    Source { offset: usize, fault: io::Error },
    #[error(
        "this is no history: it does not begin as a history of this suite does, which \
         `--history FILE` records"
    )]
    NoHistory,
    #[error("entry #{entry}: {fault}")]
    Damaged {
        /// Which entry it would have been, from 0.
        entry: u64,
        #[source]
        fault: DecodeFault,
    },
}

impl<R: BufRead> StreamDecoder<R> {
    /// Reads this source, which begins with the first frame of a history.
    pub fn new(source: R) -> Self {
        Self {
            frames: Frames::new(source),
            frame: Vec::new(),
            began: 0,
            read: 0,
            entries: 0,
            over: false,
        }
    }

    fn read(&mut self) -> Result<Option<Entry>, ReadFault> {
        let entry = self.entries;
        let damaged = |fault| ReadFault::Damaged { entry, fault };
        while self.read == self.frame.len() {
            if !self.next_frame()? {
                return Ok(None);
            }
        }
        let rest = &self.frame[self.read..];
        let (decoded, taken) = read_next(rest, self.began, entry == 0).map_err(damaged)?;
        self.read += taken;
        self.entries += 1;
        Ok(Some(decoded))
    }

    /// Reads the next frame; returns whether there is one.
    fn next_frame(&mut self) -> Result<bool, ReadFault> {
        let (entry, offset) = (self.entries, self.frames.offset());
        let frame = self.frames.next().map_err(|fault| match fault {
            FrameFault::Source(fault) => ReadFault::Source { offset, fault },
            FrameFault::Damaged(fault) => ReadFault::Damaged { entry, fault },
        })?;
        let is_there = frame.is_some();
        (self.frame, self.began, self.read) = (frame.unwrap_or_default(), offset, 0);
        Ok(is_there)
    }
}

impl<R: BufRead> Iterator for StreamDecoder<R> {
    type Item = Result<Entry, ReadFault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let result = self.read().transpose();
        self.over = !matches!(result, Some(Ok(_)));
        Some(result?.map_err(|fault| match fault {
            ReadFault::Damaged {
                entry: 0,
                fault: DecodeFault::Headless | DecodeFault::Frame { .. },
            } => ReadFault::NoHistory,
            other => other,
        }))
    }
}

/// Appends one entry, with its length before it.
pub fn encode(entry: &Entry, to: &mut Vec<u8>) {
    write_with_length(to, |to| Message::write(entry, to));
}

/// Reads entries that are in no frame, as far as they can be read.
pub fn decode(bytes: &[u8]) -> Decoded {
    let (mut entries, mut offset) = (Vec::new(), 0);
    let mut fault = None;
    while fault.is_none() && offset < bytes.len() {
        match read_next(&bytes[offset..], offset, entries.is_empty()) {
            Ok((entry, taken)) => {
                entries.push(entry);
                offset += taken;
            }
            Err(found) => fault = Some(found),
        }
    }
    Decoded { entries, fault }
}

/// Reads the message that these bytes begin with; returns how many of them it takes with its
/// length. A fault says that it is at `offset`; one of the first entry means that the bytes are no
/// history, unless they are cut off or of another version.
fn read_next(bytes: &[u8], offset: usize, first: bool) -> Result<(Entry, usize), DecodeFault> {
    let next = read_entry(bytes, offset);
    let is_head = match &next {
        Ok((entry, _)) => matches!(entry.body, Body::RunBegan(_)),
        Err(fault) => matches!(
            fault,
            DecodeFault::Truncated { .. } | DecodeFault::Version { .. }
        ),
    };
    if first && !is_head {
        return Err(DecodeFault::Headless);
    }
    next
}

fn read_entry(bytes: &[u8], offset: usize) -> Result<(Entry, usize), DecodeFault> {
    let truncated = DecodeFault::Truncated { offset };
    let (prefix, length) = read_length(bytes)
        .map_err(|source| DecodeFault::Malformed { offset, source })?
        .ok_or_else(|| truncated.clone())?;
    let whole = usize::try_from(length)
        .ok()
        .filter(|length| *length <= MESSAGE_LIMIT)
        .ok_or(DecodeFault::Oversized { offset, length })?;
    let taken = prefix + whole;
    let message = bytes.get(prefix..taken).ok_or(truncated)?;
    let entry = Entry::read(message).map_err(|unreadable| match unreadable {
        Unreadable::Lacks(what) => DecodeFault::Incomplete { offset, what },
        Unreadable::Malformed(source) => DecodeFault::Malformed { offset, source },
        Unreadable::Version(version) => DecodeFault::Version { offset, version },
    })?;
    Ok((entry, taken))
}

/// Reads the length before a message; returns the size of this prefix and the length. None if the
/// bytes end within it.
fn read_length(bytes: &[u8]) -> Result<Option<(usize, u64)>, Malformed> {
    /// The longest length prefix that protobuf allows.
    const PREFIX: usize = 10;
    let prefix = &bytes[..bytes.len().min(PREFIX)];
    if prefix.len() < PREFIX && prefix.iter().all(|byte| *byte >= 0x80) {
        return Ok(None);
    }
    let mut rest = prefix;
    let length = decode_varint(&mut rest)?;
    Ok(Some((prefix.len() - rest.len(), length)))
}

/// Reads a whole history file from memory, as far as it can be read.
pub fn decode_file(bytes: &[u8]) -> Decoded {
    let mut decoded = Decoded {
        entries: Vec::new(),
        fault: None,
    };
    for entry in StreamDecoder::new(bytes) {
        match entry {
            Ok(entry) => decoded.entries.push(entry),
            Err(ReadFault::Damaged { fault, .. }) => decoded.fault = Some(fault),
            Err(ReadFault::NoHistory) => decoded.fault = Some(DecodeFault::Headless),
            Err(ReadFault::Source { fault, .. }) => unreachable!("memory can be read: {fault}"),
        }
    }
    decoded
}
