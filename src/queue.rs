//! Writes to an output on a separate thread: an output that is not read, such as a pager, a stopped
//! terminal or a hanging file system, delays its own bytes and nothing else.
//!
//! One invariant: neither adding bytes nor waiting for them exceeds its bound.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::limits;

/// The maximum number of bytes per write, and so the smallest detectable progress.
const PIECE: usize = 4096;

/// The interval at which a waiting thread checks for an interrupt.
const LOOK: Duration = Duration::from_millis(50);

/// Whether there was an interrupt.
static HURRY: AtomicBool = AtomicBool::new(false);

/// Bytes on their way to an output. When it is dropped, the thread writes the rest and ends.
#[derive(Debug)]
pub struct Queue(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<u8>,
    /// The number of bytes written since the start.
    written: u64,
    /// Whether a wait for the output has timed out, without progress since then.
    is_stalled: bool,
    is_closed: bool,
    fault: Option<io::Error>,
}

impl Queue {
    pub fn begin(out: impl Write + Send + 'static) -> Self {
        let shared = Arc::<Shared>::default();
        let own = shared.clone();
        let thread = std::thread::Builder::new().name("output".to_owned());
        if let Err(fault) = thread.spawn(move || own.write(out)) {
            shared.state().fault = Some(fault);
        }
        Self(shared)
    }

    /// Adds bytes: any number to an empty queue, such as the text of a command that prints once.
    pub fn push(&self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.0.state();
        state.check()?;
        let all = state.waiting.len() + bytes.len();
        if !state.waiting.is_empty() && all > limits::OUTPUT_BYTES {
            let limit = limits::OUTPUT_BYTES >> 20;
            let text = format!("it is not read: {limit} MiB wait for that");
            return Err(io::Error::new(io::ErrorKind::TimedOut, text));
        }
        state.waiting.extend(bytes);
        self.0.changed.notify_all();
        Ok(())
    }

    /// Waits briefly until all is written, unless the output is stalled.
    pub fn settle(&self) -> io::Result<()> {
        let mut state = self.0.state();
        state.check()?;
        if !state.waiting.is_empty() && !state.is_stalled {
            let unwritten = |state: &mut State| !state.waiting.is_empty() && state.fault.is_none();
            let waited =
                self.0
                    .changed
                    .wait_timeout_while(state, limits::OUTPUT_SETTLING, unwritten);
            let (now, waited) = waited.unwrap_or_else(PoisonError::into_inner);
            state = now;
            state.is_stalled = waited.timed_out();
        }
        state.check()
    }

    /// Waits until all is written, for at most `patience` without progress, and only briefly after
    /// an interrupt.
    pub fn drain(&self, patience: Duration) -> io::Result<()> {
        let mut state = self.0.state();
        let (mut idle, mut written) = (Duration::ZERO, state.written);
        while state.fault.is_none() && !state.waiting.is_empty() {
            let patience = if HURRY.load(Ordering::Relaxed) {
                limits::HURRIED_OUTPUT.min(patience)
            } else {
                patience
            };
            if idle >= patience {
                let (bytes, seconds) = (state.waiting.len(), idle.as_secs());
                let text = format!("nothing was read for {seconds} s; {bytes} bytes are lost");
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            let waited = self.0.changed.wait_timeout(state, LOOK);
            let (now, waited) = waited.unwrap_or_else(PoisonError::into_inner);
            state = now;
            if state.written != written {
                (idle, written) = (Duration::ZERO, state.written);
            } else if waited.timed_out() {
                idle += LOOK;
            }
        }
        state.check()
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.0.state().is_closed = true;
        self.0.changed.notify_all();
    }
}

impl State {
    fn check(&self) -> io::Result<()> {
        match &self.fault {
            None => Ok(()),
            Some(fault) => Err(fault.raw_os_error().map_or_else(
                || io::Error::new(fault.kind(), fault.to_string()),
                io::Error::from_raw_os_error,
            )),
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes pending bytes until the queue is dropped or a write fails.
    fn write(&self, mut out: impl Write) {
        loop {
            let idle = |state: &mut State| state.waiting.is_empty() && !state.is_closed;
            let state = self.changed.wait_while(self.state(), idle);
            let state = state.unwrap_or_else(PoisonError::into_inner);
            let piece: Vec<u8> = state.waiting.iter().take(PIECE).copied().collect();
            drop(state);
            if piece.is_empty() {
                return;
            }
            let written = write(&mut out, &piece);
            let mut state = self.state();
            match written {
                Ok(length) => {
                    state.waiting.drain(..length);
                    state.written += length as u64;
                    state.is_stalled = false;
                }
                Err(fault) => {
                    state.waiting = VecDeque::new();
                    state.fault = Some(fault);
                }
            }
            let is_over = state.fault.is_some();
            drop(state);
            self.changed.notify_all();
            if is_over {
                return;
            }
        }
    }
}

/// Writes some of the bytes; returns their number.
fn write(out: &mut impl Write, bytes: &[u8]) -> io::Result<usize> {
    let length = loop {
        match out.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Err(fault) if fault.kind() == io::ErrorKind::Interrupted => {}
            written => break written?,
        }
    };
    out.flush()?;
    Ok(length)
}

/// Shortens all waits for outputs from now on, because the user has interrupted.
pub fn hurry() {
    HURRY.store(true, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

    use super::*;

    /// An output that accepts a permitted number of bytes.
    struct Reader {
        permits: Receiver<io::Result<usize>>,
        read: SyncSender<u8>,
    }

    impl Write for Reader {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let permitted = self.permits.recv().unwrap_or(Ok(usize::MAX))?;
            let taken = bytes.len().min(permitted);
            for byte in &bytes[..taken] {
                self.read.send(*byte).unwrap();
            }
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn stalled() -> (Queue, SyncSender<io::Result<usize>>, Receiver<u8>) {
        let (permit, permits) = sync_channel(10);
        let (read, bytes) = sync_channel(1000);
        (Queue::begin(Reader { permits, read }), permit, bytes)
    }

    #[test]
    fn a_stalled_output_keeps_its_bytes_in_order_and_stops_no_one() {
        let (queue, permit, bytes) = stalled();
        for text in ["one ", "two ", "three"] {
            queue.push(text.as_bytes()).unwrap();
            queue.settle().unwrap();
        }
        let fault = queue.drain(LOOK).unwrap_err();
        assert_eq!(fault.kind(), io::ErrorKind::TimedOut);
        assert_eq!(
            fault.to_string(),
            "nothing was read for 0 s; 13 bytes are lost"
        );
        permit.send(Ok(2)).unwrap();
        drop(permit);
        queue.drain(Duration::MAX).unwrap();
        drop(queue);
        assert_eq!(bytes.into_iter().collect::<Vec<_>>(), b"one two three");
    }

    #[test]
    fn what_waits_is_bounded() {
        let (queue, _permit, _bytes) = stalled();
        queue.push(&vec![b'x'; limits::OUTPUT_BYTES + 1]).unwrap();
        let fault = queue.push(b"x").unwrap_err();
        assert_eq!(fault.to_string(), "it is not read: 64 MiB wait for that");
    }

    #[test]
    fn a_failed_write_fails_all_that_follow() {
        let (queue, permit, _bytes) = stalled();
        queue.push(b"text").unwrap();
        permit.send(Err(io::Error::from_raw_os_error(28))).unwrap();
        for _ in 0..2 {
            let fault = queue.drain(Duration::MAX).unwrap_err();
            assert_eq!(fault.kind(), io::ErrorKind::StorageFull);
        }
        assert!(queue.push(b"more").is_err() && queue.settle().is_err());
    }
}
