//! The fields of a message as they stand in its bytes, where nothing is copied.
//!
//! What protobuf writes never needs more than this: anything else is left to prost.

#[cfg(test)]
mod tests;

use prost::encoding::decode_varint;

/// What a key says of its field: a number follows, or bytes with their length.
const NUMBER: u64 = 0;
const BYTES: u64 = 2;

/// What is left of a message.
#[derive(Clone, Copy, Debug)]
pub(in crate::history) struct Fields<'a> {
    rest: &'a [u8],
    /// What was left before the last field.
    before: &'a [u8],
}

/// One field: its number, and what it holds.
#[derive(Clone, Copy, Debug)]
pub(in crate::history) struct Field<'a> {
    pub(in crate::history) tag: u64,
    pub(in crate::history) value: Value<'a>,
}

/// What a field holds.
#[derive(Clone, Copy, Debug)]
pub(in crate::history) enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Fields<'a> {
    pub(in crate::history) fn of(message: &'a [u8]) -> Self {
        Self {
            rest: message,
            before: message,
        }
    }

    /// The next field; none at the end. Fails where prost is to be asked.
    #[expect(
        clippy::option_option,
        reason = "so that `?` hands a message on to prost"
    )]
    #[inline]
    pub(in crate::history) fn next(&mut self) -> Option<Option<Field<'a>>> {
        self.before = self.rest;
        let key = match self.rest {
            [] => return Some(None),
            [key, rest @ ..] if *key < 0x80 => {
                self.rest = rest;
                u64::from(*key)
            }
            _ => self.long_varint()?,
        };
        let number = self.varint()?;
        let value = match key & 7 {
            NUMBER => Value::Number(number),
            BYTES => Value::Bytes(self.take(number)?),
            _ => return None,
        };
        let tag = key >> 3;
        Some(Some(Field { tag, value }))
    }

    /// The field that was just read and those after it that have its key, which is one byte, all
    /// of them without that.
    pub(in crate::history) fn run_into(&mut self, run: &mut Vec<u8>) -> Option<()> {
        run.clear();
        self.rest = self.before;
        let key = self.rest.first()?;
        if *key >= 0x80 || u64::from(key & 7) != BYTES {
            return None;
        }
        while self.rest.first() == Some(key) {
            self.rest = &self.rest[1..];
            let start = self.rest;
            self.length_delimited()?;
            run.extend_from_slice(&start[..start.len() - self.rest.len()]);
        }
        Some(())
    }

    /// Bytes with their length before them.
    #[inline]
    pub(in crate::history) fn length_delimited(&mut self) -> Option<&'a [u8]> {
        let length = self.varint()?;
        self.take(length)
    }

    #[inline]
    fn take(&mut self, length: u64) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(usize::try_from(length).ok()?)?;
        self.rest = rest;
        Some(bytes)
    }

    /// How many bytes are left.
    pub(in crate::history) fn left(&self) -> usize {
        self.rest.len()
    }

    /// Nearly all numbers are short.
    #[expect(clippy::inline_always, reason = "nothing is done as often")]
    #[inline(always)]
    fn varint(&mut self) -> Option<u64> {
        match self.rest {
            [first, rest @ ..] if *first < 0x80 => {
                self.rest = rest;
                Some(u64::from(*first))
            }
            [first, second, rest @ ..] if *second < 0x80 => {
                self.rest = rest;
                Some(u64::from(*first & 0x7f) | u64::from(*second) << 7)
            }
            _ => self.long_varint(),
        }
    }

    /// A number of more than two bytes: a time, most of all. Eight of its bytes are read at once.
    fn long_varint(&mut self) -> Option<u64> {
        let Some((word, rest)) = self.rest.split_first_chunk::<8>() else {
            return decode_varint(&mut self.rest).ok();
        };
        let word = u64::from_le_bytes(*word);
        let ends = !word & 0x8080_8080_8080_8080;
        if ends != 0 {
            // Up to and with the byte that does not say that another one follows.
            let bits = ends.trailing_zeros() + 1;
            self.rest = &self.rest[bits as usize / 8..];
            return Some(sevens(word & (u64::MAX >> (64 - bits))));
        }
        match rest {
            [ninth, rest @ ..] if *ninth < 0x80 => {
                self.rest = rest;
                Some(sevens(word) | u64::from(*ninth) << 56)
            }
            _ => decode_varint(&mut self.rest).ok(),
        }
    }
}

/// The lower seven bits of each byte, put together.
fn sevens(word: u64) -> u64 {
    let word = word & 0x7f7f_7f7f_7f7f_7f7f;
    let word = (word & 0x007f_007f_007f_007f) | (word & 0x7f00_7f00_7f00_7f00) >> 1;
    let word = (word & 0x0000_3fff_0000_3fff) | (word & 0x3fff_0000_3fff_0000) >> 2;
    (word & 0x0fff_ffff) | (word & 0x0fff_ffff_0000_0000) >> 4
}

impl<'a> Value<'a> {
    pub(in crate::history) fn number(self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(number),
            Self::Bytes(_) => None,
        }
    }

    pub(in crate::history) fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Number(_) => None,
        }
    }

    pub(in crate::history) fn text(self) -> Option<String> {
        std::str::from_utf8(self.bytes()?).ok().map(str::to_owned)
    }

    /// Of an `int64`.
    pub(in crate::history) fn signed(self) -> Option<i64> {
        self.number().map(u64::cast_signed)
    }

    /// Of a `uint32`, of which protobuf takes the lower bits.
    #[expect(clippy::cast_possible_truncation, reason = "so protobuf has it")]
    pub(in crate::history) fn short(self) -> Option<u32> {
        self.number().map(|number| number as u32)
    }

    /// Of an `int32`.
    pub(in crate::history) fn short_signed(self) -> Option<i32> {
        self.short().map(u32::cast_signed)
    }

    /// Of a `sint32`.
    pub(in crate::history) fn zigzag(self) -> Option<i32> {
        let number = self.short()?;
        Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }
}
