//! Reading a history file entry by entry, in bounded memory.

use std::io::{self, BufRead};

use super::frames::{FrameFault, Frames};
use super::{DecodeFault, Decoded, read_next};
use crate::history::Entry;

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

    /// Goes on to the next frame, if there is one.
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
