//! The format of a recorded history, as generated from `proto/history.proto`, and the framing of
//! its messages. Only this module knows how bytes are laid out; the parent module knows what
//! they mean.

use prost::Message;
use prost::encoding::{decode_varint, encoded_len_varint};

#[expect(
    clippy::pedantic,
    unreachable_pub,
    reason = "generated from the documented proto/history.proto"
)]
mod generated {
    include!(concat!(
        env!("OUT_DIR"),
        "/cri_event_conformance.history.v1.rs"
    ));
}

pub(super) use generated::*;

/// The longest length prefix that protobuf allows.
pub(super) const PREFIX: usize = 10;

/// The bytes of a message do not follow protobuf's rules.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(transparent)]
pub struct Malformed(#[from] prost::DecodeError);

/// Appends the message with its length before it.
pub(super) fn write(entry: &Entry, to: &mut Vec<u8>) {
    let length = entry.encoded_len();
    to.reserve(length + encoded_len_varint(length as u64));
    entry
        .encode_length_delimited(to)
        .expect("a vector grows as needed");
}

/// Reads the length before a message: how long the prefix is, and what it says. Nothing if the
/// bytes end within it.
pub(super) fn read_length(bytes: &[u8]) -> Result<Option<(usize, u64)>, Malformed> {
    let prefix = &bytes[..bytes.len().min(PREFIX)];
    if prefix.len() < PREFIX && prefix.iter().all(|byte| *byte >= 0x80) {
        return Ok(None);
    }
    let mut rest = prefix;
    let length = decode_varint(&mut rest)?;
    Ok(Some((prefix.len() - rest.len(), length)))
}

/// Reads a message without its length.
pub(super) fn read(bytes: &[u8]) -> Result<Entry, Malformed> {
    Ok(Entry::decode(bytes)?)
}
