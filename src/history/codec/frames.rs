//! The frames of a history file: some entries each, compressed by zstd, with a checksum over them.
//!
//! A frame is read whole or not at all, so that no damaged entry counts as an observation. A run
//! that is killed loses the frame that it had not ended.

use std::io::{self, BufRead, ErrorKind, Read, Write};

use zstd::stream::read::Decoder;
use zstd::stream::write::Encoder;

use super::{DecodeFault, MESSAGE_LIMIT, encode};
use crate::history::Entry;
use crate::limits;

/// The size in bytes, before compression, at which a frame is ended: enough to compress well.
const FULL: usize = 1 << 20;

/// The largest frame in bytes, before compression: one that is almost full, and one more entry of
/// the largest size. The reader allocates no more than this.
const LONGEST: usize = FULL + MESSAGE_LIMIT;

/// The most bytes that are read of a history, before compression: twice the limit of a run.
const LARGEST: u64 = 2 * limits::HISTORY_FILE_BYTES;

/// The largest window of zstd that the reader accepts, as a power of two.
const WINDOW_LOG: u32 = 25;

/// Writes entries in frames.
#[derive(Debug)]
pub struct FrameWriter<W> {
    out: W,
    pending: Vec<u8>,
}

impl<W: Write> FrameWriter<W> {
    /// Appends frames to `out`.
    pub fn new(out: W) -> Self {
        let pending = Vec::new();
        Self { out, pending }
    }

    /// Adds an entry; returns its size in bytes before compression.
    pub fn push(&mut self, entry: &Entry) -> io::Result<usize> {
        let before = self.pending.len();
        encode(entry, &mut self.pending);
        let length = self.pending.len() - before;
        self.end_full_frame()?;
        Ok(length)
    }

    /// Adds an entry that [`encode`] has encoded.
    pub fn push_encoded(&mut self, entry: &[u8]) -> io::Result<()> {
        self.pending.extend_from_slice(entry);
        self.end_full_frame()
    }

    fn end_full_frame(&mut self) -> io::Result<()> {
        if self.pending.len() < FULL {
            return Ok(());
        }
        self.end_frame()
    }

    pub fn get_ref(&self) -> &W {
        &self.out
    }

    /// The same, to change it between two frames.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Whether there are entries that are in no frame yet.
    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Writes the pending entries, if there are any, as a frame.
    pub fn end_frame(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let mut frame = Encoder::new(Vec::new(), zstd::DEFAULT_COMPRESSION_LEVEL)?;
        frame.include_checksum(true)?;
        frame.set_pledged_src_size(Some(self.pending.len() as u64))?;
        frame.write_all(&self.pending)?;
        self.out.write_all(&frame.finish()?)?;
        self.pending.clear();
        Ok(())
    }

    /// Writes the pending entries; returns the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.end_frame()?;
        Ok(self.out)
    }
}

/// Reads frames, each as the bytes of its entries. The first error is the end.
#[derive(Debug)]
pub(super) struct Frames<R> {
    source: Option<Counted<R>>,
    offset: usize,
    total: u64,
}

/// A source that counts the bytes read.
#[derive(Debug)]
struct Counted<R> {
    source: R,
    taken: usize,
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(to)?;
        self.taken += read;
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.source.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.taken += amount;
        self.source.consume(amount);
    }
}

/// Why no further frame can be read.
#[derive(Debug)]
pub(super) enum FrameFault {
    /// The source cannot be read.
    Source(io::Error),
    /// The bytes read are no frame.
    Damaged(DecodeFault),
}

impl<R: BufRead> Frames<R> {
    /// Reads this source, which begins with a frame.
    pub(super) fn new(source: R) -> Self {
        let taken = 0;
        Self {
            source: Some(Counted { source, taken }),
            offset: 0,
            total: 0,
        }
    }

    /// Where in the source the frame begins that is read next.
    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    /// The next frame; none at the end of the source.
    pub(super) fn next(&mut self) -> Result<Option<Vec<u8>>, FrameFault> {
        let Some(mut source) = self.source.take() else {
            return Ok(None);
        };
        if is_at_end(&mut source).map_err(FrameFault::Source)? {
            return Ok(None);
        }
        let (offset, began) = (self.offset, source.taken);
        let read = |fault| frame_fault(offset, fault);
        let mut decoder = Decoder::with_buffer(source).map_err(read)?.single_frame();
        decoder.window_log_max(WINDOW_LOG).map_err(read)?;
        let mut frame = Vec::new();
        let mut bounded = decoder.by_ref().take(LONGEST as u64 + 1);
        bounded.read_to_end(&mut frame).map_err(read)?;
        self.total += frame.len() as u64;
        for (length, limit) in [(frame.len() as u64, LONGEST as u64), (self.total, LARGEST)] {
            if length > limit {
                let reason = format!("it holds more than {} MiB", limit >> 20);
                return Err(FrameFault::Damaged(DecodeFault::Frame { offset, reason }));
            }
        }
        let source = decoder.finish();
        self.offset += source.taken - began;
        self.source = Some(source);
        Ok(Some(frame))
    }
}

/// Tells an error of the source from a damaged frame.
fn frame_fault(offset: usize, fault: io::Error) -> FrameFault {
    match fault.kind() {
        ErrorKind::UnexpectedEof => FrameFault::Damaged(DecodeFault::Truncated { offset }),
        _ if fault.raw_os_error().is_some() => FrameFault::Source(fault),
        _ => {
            let reason = fault.to_string();
            FrameFault::Damaged(DecodeFault::Frame { offset, reason })
        }
    }
}

fn is_at_end(source: &mut impl BufRead) -> io::Result<bool> {
    loop {
        match source.fill_buf() {
            Ok(buffer) => return Ok(buffer.is_empty()),
            Err(fault) if fault.kind() == ErrorKind::Interrupted => {}
            Err(fault) => return Err(fault),
        }
    }
}
