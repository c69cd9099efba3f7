//! Encoding and decoding of histories, in the format of `proto/history.proto`: entries in frames
//! that are compressed and have checksums.
//!
//! Encoding cannot fail. Decoding returns the entries before the first fault, and a [`DecodeFault`]
//! that says where it is and what to do: the history of a run that was killed is cut off, and the
//! entries of its whole frames are valid. Pure: callers open the files.

mod bodies;
mod frames;
mod stream;
#[cfg(test)]
mod tests;

use prost::encoding::decode_varint;

pub(super) use self::bodies::{CallBegan, CallEnded, EventArrived, RunBegan};
pub use self::frames::FrameWriter;
pub use self::stream::{ReadFault, StreamDecoder, decode_file};
use super::protobuf::{Malformed, Message, Unreadable, write_with_length};
use super::{Body, Entry};

/// The version of the format, the only one that is read.
pub const FORMAT_VERSION: u32 = 5;

/// The longest message that is read: 16 MiB, as long as a kubelet accepts from a runtime, and one
/// more for what surrounds it. A damaged length cannot make the reader allocate more.
pub const MESSAGE_LIMIT: usize = 17 << 20;

/// Entries, and why they end before the bytes do.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The entries that could be read, in order.
    pub entries: Vec<Entry>,
    /// What stopped the reader; absent if it came to the end.
    pub fault: Option<DecodeFault>,
}

/// Why a history cannot be read beyond some byte.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DecodeFault {
    /// The bytes end within a message, as they do when the writer was killed.
    #[error(
        "decode the history at byte {offset}: it ends within a frame of entries, as that of a run \
         that was killed does; those before it are whole and can be used"
    )]
    Truncated {
        /// Where the message begins.
        offset: usize,
    },
    /// A frame cannot be read, or its checksum is not that of what it holds.
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
    /// A message lacks what its entry cannot do without.
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

/// Appends one entry, with its length before it.
pub fn encode(entry: &Entry, to: &mut Vec<u8>) {
    write_with_length(to, |to| Message::write(entry, to));
}

/// Reads a whole history, as far as it can be read. No bytes are no entries, and no fault.
pub fn decode(bytes: &[u8]) -> Decoded {
    let mut decoder = Decoder::new(bytes);
    let mut entries = Vec::new();
    let fault = loop {
        match decoder.next() {
            Some(Ok(entry)) => entries.push(entry),
            Some(Err(fault)) => break Some(fault),
            None => break None,
        }
    };
    Decoded { entries, fault }
}

/// Reads a history entry by entry. The first fault is the end.
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    bytes: &'a [u8],
    offset: usize,
    first: bool,
}

impl<'a> Decoder<'a> {
    /// Reads these bytes, which begin with the first entry of a history.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            offset: 0,
            first: true,
        }
    }

    /// How many bytes have been read as entries.
    pub fn offset(&self) -> usize {
        self.offset
    }

    fn read(&mut self) -> Result<Entry, DecodeFault> {
        let rest = &self.bytes[self.offset..];
        let (entry, taken) = read_next(rest, self.offset, self.first)?;
        self.offset += taken;
        self.first = false;
        Ok(entry)
    }
}

/// Reads the message that these bytes begin with; returns how many of them it takes with its
/// length. A fault says that it is at `offset`.
fn read_next(bytes: &[u8], offset: usize, first: bool) -> Result<(Entry, usize), DecodeFault> {
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
    if first && !matches!(entry.body, Body::RunBegan(_)) {
        return Err(DecodeFault::Headless);
    }
    Ok((entry, taken))
}

/// Reads the length before a message: how long the prefix is, and what it says. Nothing if the
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

/// A fault of the first entry means that the bytes are no history.
fn of_the_first(fault: DecodeFault) -> DecodeFault {
    match fault {
        DecodeFault::Version { .. } => fault,
        _ => DecodeFault::Headless,
    }
}

impl Iterator for Decoder<'_> {
    type Item = Result<Entry, DecodeFault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.offset == self.bytes.len() {
            return None;
        }
        let result = self.read();
        Some(result.map_err(|fault| {
            self.bytes = &self.bytes[..self.offset];
            if self.first {
                of_the_first(fault)
            } else {
                fault
            }
        }))
    }
}
