//! Reading a history of any length, one entry after the other, in little memory.

use std::io::{self, BufRead, ErrorKind, Read};

use super::direct::Direct;
use super::{DecodeFault, MESSAGE_LIMIT, of_the_first, read_entry};
use crate::history::Entry;
use crate::history::wire::{self, PREFIX};

/// Reads a history entry by entry from a source. The first fault is the end.
#[derive(Debug)]
pub struct StreamDecoder<R> {
    source: R,
    direct: Direct,
    /// A message that does not lie in the source's buffer as a whole.
    message: Vec<u8>,
    offset: usize,
    entries: u64,
    over: bool,
}

/// Why a history ends before its source does.
#[derive(Debug, thiserror::Error)]
pub enum ReadFault {
    /// The source cannot be read.
    #[error("read the history at byte {offset}: {fault}")]
    Source {
        /// Where.
        offset: usize,
        /// What the system said.
        fault: io::Error,
    },
    /// What was read is no entry.
    #[error("entry #{entry}: {fault}")]
    Damaged {
        /// Which entry it would have been, from 0.
        entry: u64,
        /// What is wrong with it.
        #[source]
        fault: DecodeFault,
    },
}

impl<R: BufRead> StreamDecoder<R> {
    /// Reads this source, which begins with the first entry of a history.
    #[must_use]
    pub fn new(source: R) -> Self {
        Self {
            source,
            direct: Direct::default(),
            message: Vec::new(),
            offset: 0,
            entries: 0,
            over: false,
        }
    }

    /// How many bytes have been read as entries.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    fn read(&mut self) -> Result<Option<Entry>, ReadFault> {
        let (entry, offset) = (self.entries, self.offset);
        let failed = |fault| ReadFault::Source { offset, fault };
        let damaged = |fault| ReadFault::Damaged { entry, fault };
        let buffered = fill(&mut self.source).map_err(failed)?;
        let (decoded, taken) = if let Some((message, taken)) = wire::framed(buffered, MESSAGE_LIMIT)
        {
            let decoded = read_entry(message, offset, entry == 0, &mut self.direct);
            self.source.consume(taken);
            (decoded, taken)
        } else if buffered.is_empty() {
            return Ok(None);
        } else {
            let taken = self.gather()?;
            let decoded = read_entry(&self.message, offset, entry == 0, &mut self.direct);
            (decoded, taken)
        };
        let decoded = decoded.map_err(damaged)?;
        self.offset += taken;
        self.entries += 1;
        Ok(Some(decoded))
    }

    /// Puts a message together that does not lie in the source's buffer as a whole. Returns how
    /// many bytes it takes with its length.
    fn gather(&mut self) -> Result<usize, ReadFault> {
        let (entry, offset) = (self.entries, self.offset);
        let failed = |fault| ReadFault::Source { offset, fault };
        let damaged = |fault| ReadFault::Damaged { entry, fault };
        let malformed = |source| damaged(DecodeFault::Malformed { offset, source });
        let truncated = || damaged(DecodeFault::Truncated { offset });
        let mut prefix = [0; PREFIX];
        let read = self.read_prefix(&mut prefix).map_err(failed)?;
        let (_, length) = wire::read_length(&prefix[..read])
            .map_err(malformed)?
            .ok_or_else(truncated)?;
        let whole = usize::try_from(length)
            .ok()
            .filter(|length| *length <= MESSAGE_LIMIT)
            .ok_or_else(|| damaged(DecodeFault::Oversized { offset, length }))?;
        self.message.clear();
        let mut part = self.source.by_ref().take(length);
        part.read_to_end(&mut self.message).map_err(failed)?;
        if self.message.len() < whole {
            return Err(truncated());
        }
        Ok(read + whole)
    }

    /// Reads the bytes of a length; fewer if the source ends, or the length does not.
    fn read_prefix(&mut self, prefix: &mut [u8; PREFIX]) -> io::Result<usize> {
        for (place, byte) in prefix.iter_mut().enumerate() {
            let Some(next) = fill(&mut self.source)?.first() else {
                return Ok(place);
            };
            *byte = *next;
            self.source.consume(1);
            if *byte < 0x80 {
                return Ok(place + 1);
            }
        }
        Ok(PREFIX)
    }
}

/// The source's buffer, with something in it unless the source is at its end.
fn fill(source: &mut impl BufRead) -> io::Result<&[u8]> {
    while let Err(fault) = source.fill_buf() {
        if fault.kind() != ErrorKind::Interrupted {
            return Err(fault);
        }
    }
    source.fill_buf()
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
            ReadFault::Damaged { entry: 0, fault } => ReadFault::Damaged {
                entry: 0,
                fault: of_the_first(fault),
            },
            other => other,
        }))
    }
}
