//! The fields of a message as they stand in its bytes, where nothing is copied.
//!
//! What protobuf writes never needs more than this: anything else is left to prost.

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
        if self.rest.is_empty() {
            return Some(None);
        }
        self.before = self.rest;
        let key = self.varint()?;
        let value = match key & 7 {
            NUMBER => Value::Number(self.varint()?),
            BYTES => Value::Bytes(self.length_delimited()?),
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
        let length = usize::try_from(self.varint()?).ok()?;
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(bytes)
    }

    /// Whether nothing is left.
    pub(in crate::history) fn is_over(&self) -> bool {
        self.rest.is_empty()
    }

    #[inline]
    fn varint(&mut self) -> Option<u64> {
        let (first, rest) = self.rest.split_first()?;
        if *first < 0x80 {
            self.rest = rest;
            return Some(u64::from(*first));
        }
        decode_varint(&mut self.rest).ok()
    }
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
