//! Types that are messages of protobuf: each states its fields with their tags once, and
//! [`message!`] and [`oneof!`] derive how it is written and read. An unknown field is skipped; a
//! field with the default value is not written, as in `proto3`.

mod define;

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::str;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use prost::DecodeError;
use prost::encoding::{
    DecodeContext, WireType, check_wire_type, decode_key, decode_varint, encode_key, encode_varint,
    encoded_len_varint, skip_field,
};

pub(super) use self::define::{message, messages, numbers, oneof, written_as};
use super::{ContainerId, PodUid, RunId, SandboxId, Shared, Text};

/// Why a message cannot be read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Unreadable {
    /// A field is absent that its message cannot do without.
    #[error("it lacks `{0}`")]
    Lacks(&'static str),
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("its format is version {0}")]
    Version(u32),
}

/// The bytes of a message do not follow protobuf's rules.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Malformed {
    #[error(transparent)]
    Undecodable(#[from] DecodeError),
    #[error("a field is longer than its message")]
    Cut,
    #[error("a text is not UTF-8")]
    NoText,
}

impl From<DecodeError> for Unreadable {
    fn from(fault: DecodeError) -> Self {
        Self::Malformed(fault.into())
    }
}

type Result<T, E = Unreadable> = std::result::Result<T, E>;

/// A message, or a part of one.
pub trait Message: Sized {
    /// Whether its fields are those of the message around it.
    const IS_PART: bool;
    /// The fields read so far.
    type Slots: Default;

    /// Reads the current field if it is one of this message; returns whether it is.
    fn merge(slots: &mut Self::Slots, from: &mut Reader<'_>) -> Result<bool>;

    /// The message, which is the field of this name in another one.
    fn finish(slots: Self::Slots, name: &'static str) -> Result<Self>;

    fn write(&self, to: &mut Vec<u8>);

    fn read(bytes: &[u8]) -> Result<Self> {
        let mut slots = Self::Slots::default();
        merge_all::<Self>(&mut slots, bytes)?;
        Self::finish(slots, "message")
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        bytes
    }
}

/// The value of a field.
pub trait Field: Sized {
    /// The parts read so far.
    type Slot: Default;

    /// Reads the current field; returns whether it is one of this value, which has several if it
    /// is a part of a message.
    fn merge(slot: &mut Self::Slot, from: &mut Reader<'_>) -> Result<bool>;

    fn finish(slot: Self::Slot, name: &'static str) -> Result<Self>;

    fn is_default(&self) -> bool {
        false
    }

    fn write(&self, tag: u32, to: &mut Vec<u8>);

    fn write_set(&self, tag: u32, to: &mut Vec<u8>) {
        if !self.is_default() {
            self.write(tag, to);
        }
    }

    /// Reads an element, or several that are packed.
    fn merge_repeated(all: &mut Vec<Self>, from: &mut Reader<'_>) -> Result<()> {
        let mut slot = Self::Slot::default();
        Self::merge(&mut slot, from)?;
        all.push(Self::finish(slot, "element")?);
        Ok(())
    }
}

/// Reads the fields of a message.
pub struct Reader<'a> {
    /// The tag of the current field.
    pub tag: u32,
    wire: WireType,
    /// The current field without its key, and the rest of the message.
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    /// The bytes of the current field, which has its length before them.
    pub fn delimited(&mut self) -> Result<&'a [u8]> {
        check_wire_type(WireType::LengthDelimited, self.wire)?;
        let length = usize::try_from(decode_varint(&mut self.bytes)?).ok();
        let parts = length.and_then(|length| self.bytes.split_at_checked(length));
        let (field, rest) = parts.ok_or(Malformed::Cut)?;
        self.bytes = rest;
        Ok(field)
    }
}

fn merge_all<T: Message>(slots: &mut T::Slots, mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        let (tag, wire) = decode_key(&mut bytes)?;
        let mut from = Reader { tag, wire, bytes };
        if !T::merge(slots, &mut from)? {
            skip_field(wire, tag, &mut from.bytes, DecodeContext::default())?;
        }
        bytes = from.bytes;
    }
    Ok(())
}

/// Appends a field that has its length before it.
pub fn write_delimited(tag: u32, to: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    encode_key(tag, WireType::LengthDelimited, to);
    write_with_length(to, write);
}

pub fn write_with_length(to: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let begin = to.len();
    write(to);
    let length = (to.len() - begin) as u64;
    encode_varint(length, to);
    to[begin..].rotate_right(encoded_len_varint(length));
}

impl<T: Message> Field for T {
    type Slot = Option<T::Slots>;

    fn merge(slot: &mut Self::Slot, from: &mut Reader<'_>) -> Result<bool> {
        let slots = slot.get_or_insert_default();
        if T::IS_PART {
            return T::merge(slots, from);
        }
        merge_all::<T>(slots, from.delimited()?)?;
        Ok(true)
    }

    fn finish(slot: Self::Slot, name: &'static str) -> Result<Self> {
        let absent = T::IS_PART.then(T::Slots::default);
        T::finish(slot.or(absent).ok_or(Unreadable::Lacks(name))?, name)
    }

    fn write(&self, tag: u32, to: &mut Vec<u8>) {
        if T::IS_PART {
            return Message::write(self, to);
        }
        write_delimited(tag, to, |to| Message::write(self, to));
    }
}

impl<T: Field> Field for Option<T> {
    type Slot = Option<T::Slot>;

    fn merge(slot: &mut Self::Slot, from: &mut Reader<'_>) -> Result<bool> {
        let is_set = slot.is_some();
        let is_known = T::merge(slot.get_or_insert_default(), from)?;
        if !is_known && !is_set {
            *slot = None;
        }
        Ok(is_known)
    }

    fn finish(slot: Self::Slot, name: &'static str) -> Result<Self> {
        slot.map(|slot| T::finish(slot, name)).transpose()
    }

    fn is_default(&self) -> bool {
        self.is_none()
    }

    fn write(&self, tag: u32, to: &mut Vec<u8>) {
        if let Some(value) = self {
            value.write(tag, to);
        }
    }
}

impl<T: Field> Field for Vec<T> {
    type Slot = Self;

    fn merge(slot: &mut Self, from: &mut Reader<'_>) -> Result<bool> {
        T::merge_repeated(slot, from)?;
        Ok(true)
    }

    fn finish(slot: Self, _name: &'static str) -> Result<Self> {
        Ok(slot)
    }

    fn write(&self, tag: u32, to: &mut Vec<u8>) {
        for element in self {
            element.write(tag, to);
        }
    }
}

impl Field for BTreeMap<Text, Text> {
    type Slot = Self;

    fn merge(slot: &mut Self, from: &mut Reader<'_>) -> Result<bool> {
        let Pair { key, value } = Pair::read(from.delimited()?)?;
        slot.insert(key, value);
        Ok(true)
    }

    fn finish(slot: Self, _name: &'static str) -> Result<Self> {
        Ok(slot)
    }

    fn write(&self, tag: u32, to: &mut Vec<u8>) {
        for (key, value) in self {
            write_delimited(tag, to, |to| {
                key.write_set(1, to);
                value.write_set(2, to);
            });
        }
    }
}

message! {
    /// An entry of a map.
    struct Pair {
        key: Text = 1,
        value: Text = 2,
    }
}

macro_rules! shared {
    ($($shared:ident),*) => {
        $(impl<T: Field> Field for $shared<T> {
            type Slot = T::Slot;

            fn merge(slot: &mut Self::Slot, from: &mut Reader<'_>) -> Result<bool> {
                T::merge(slot, from)
            }

            fn finish(slot: Self::Slot, name: &'static str) -> Result<Self> {
                Ok(Self::from(T::finish(slot, name)?))
            }

            fn is_default(&self) -> bool {
                T::is_default(self)
            }

            fn write(&self, tag: u32, to: &mut Vec<u8>) {
                T::write(self, tag, to);
            }
        })*
    };
}

shared!(Arc, Shared);

macro_rules! scalars {
    ($($type:ty = $module:ident;)*) => {
        $(impl Field for $type {
            type Slot = Self;

            fn merge(slot: &mut Self, from: &mut Reader<'_>) -> Result<bool> {
                let context = DecodeContext::default();
                prost::encoding::$module::merge(from.wire, slot, &mut from.bytes, context)?;
                Ok(true)
            }

            fn finish(slot: Self, _name: &'static str) -> Result<Self> {
                Ok(slot)
            }

            fn is_default(&self) -> bool {
                *self == Self::default()
            }

            fn write(&self, tag: u32, to: &mut Vec<u8>) {
                prost::encoding::$module::encode(tag, self, to);
            }

            fn merge_repeated(all: &mut Vec<Self>, from: &mut Reader<'_>) -> Result<()> {
                let context = DecodeContext::default();
                let bytes = &mut from.bytes;
                prost::encoding::$module::merge_repeated(from.wire, all, bytes, context)?;
                Ok(())
            }
        })*
    };
}

scalars! {
    bool = bool;
    i32 = int32;
    i64 = int64;
    u32 = uint32;
    u64 = uint64;
    String = string;
    Bytes = bytes;
}

macro_rules! texts {
    ($($type:ty),*) => {
        $(impl Field for $type {
            type Slot = Option<Self>;

            fn merge(slot: &mut Option<Self>, from: &mut Reader<'_>) -> Result<bool> {
                let text = str::from_utf8(from.delimited()?).map_err(|_| Malformed::NoText)?;
                *slot = Some(text.into());
                Ok(true)
            }

            fn finish(slot: Option<Self>, _name: &'static str) -> Result<Self> {
                Ok(slot.unwrap_or_else(|| "".into()))
            }

            fn is_default(&self) -> bool {
                Borrow::<str>::borrow(self).is_empty()
            }

            fn write(&self, tag: u32, to: &mut Vec<u8>) {
                let text: &str = self.borrow();
                encode_key(tag, WireType::LengthDelimited, to);
                encode_varint(text.len() as u64, to);
                to.extend_from_slice(text.as_bytes());
            }
        })*
    };
}

texts!(Text, ContainerId, PodUid, RunId, SandboxId);

written_as! {
    // One of more than 584 years is written as that.
    Duration as u64 {
        |span| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX),
        |nanos| Ok(Duration::from_nanos(nanos))
    }
}
