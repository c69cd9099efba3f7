//! The growing history of a run: one recorder appends entries, any number of readers read them at
//! their own pace.
//!
//! Recording takes a short lock and never waits for a reader, so that it cannot delay an event
//! stream. Entries that every reader has read are dropped; a reader that falls behind by more than
//! the limits gets an error.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio::time::Instant;

use crate::files::Output;
use crate::history::codec::FrameWriter;
use crate::history::{Body, CallId, Entry, Seq, SubscriptionId};
use crate::{host, limits};

/// Appends entries. Cheap to clone; all clones record into the same history.
#[derive(Clone, Debug)]
pub struct Recorder {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    window: Mutex<Window>,
    length: watch::Sender<u64>,
    calls: AtomicU64,
    subscriptions: AtomicU32,
}

/// The entries that some reader has not read yet.
#[derive(Debug, Default)]
struct Window {
    first: u64,
    entries: VecDeque<Arc<Entry>>,
    bytes: usize,
    readers: BTreeMap<u64, Place>,
    next_reader: u64,
    limits: Limits,
}

/// The maximum lag of the slowest reader.
#[derive(Clone, Copy, Debug)]
struct Limits {
    entries: usize,
    bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            entries: limits::HISTORY_ENTRIES,
            bytes: limits::HISTORY_BYTES,
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Place {
    At(u64),
    Lost,
}

/// Reads the entries recorded since its creation.
#[derive(Debug)]
pub struct Reader {
    shared: Arc<Shared>,
    id: u64,
    length: watch::Receiver<u64>,
}

/// Notifies of new entries.
#[derive(Debug)]
pub struct Changes {
    length: watch::Receiver<u64>,
}

/// A reader fell behind by more than the history's limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "more than {} entries or {} MiB of history were recorded before they could be read",
    limits::HISTORY_ENTRIES,
    limits::HISTORY_BYTES >> 20
)]
pub struct Overrun;

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

impl Recorder {
    pub fn new() -> Self {
        Self::bounded(limits::HISTORY_ENTRIES, limits::HISTORY_BYTES)
    }

    /// A recorder with these limits for the slowest reader.
    pub fn bounded(entries: usize, bytes: usize) -> Self {
        let window = Window {
            limits: Limits { entries, bytes },
            ..Window::default()
        };
        let shared = Shared {
            window: Mutex::new(window),
            length: watch::Sender::new(0),
            calls: AtomicU64::new(0),
            subscriptions: AtomicU32::new(0),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Appends an entry and notifies the readers.
    pub fn record(&self, body: Body) {
        let mut window = self.shared.window();
        let seq = window.end();
        // The clock is read under the lock: the order of entries is the order of their times.
        let entry = Arc::new(Entry {
            seq: Seq(seq),
            at: host::now(),
            body,
        });
        window.push(entry);
        drop(window);
        self.shared.length.send_replace(seq + 1);
    }

    /// A reader of the entries that are recorded from now on.
    pub fn reader(&self) -> Reader {
        let length = self.shared.length.subscribe();
        let mut window = self.shared.window();
        let id = window.next_reader;
        window.next_reader += 1;
        let place = Place::At(window.end());
        window.readers.insert(id, place);
        Reader {
            shared: self.shared.clone(),
            id,
            length,
        }
    }

    /// A notifier of the entries that are recorded from now on.
    pub fn changes(&self) -> Changes {
        Changes {
            length: self.shared.length.subscribe(),
        }
    }

    pub fn next_call(&self) -> CallId {
        CallId(self.shared.calls.fetch_add(1, Ordering::Relaxed))
    }

    pub fn next_subscription(&self) -> SubscriptionId {
        SubscriptionId(self.shared.subscriptions.fetch_add(1, Ordering::Relaxed))
    }
}

impl Shared {
    fn window(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Window {
    fn end(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    fn push(&mut self, entry: Arc<Entry>) {
        if self
            .readers
            .values()
            .any(|place| matches!(place, Place::At(_)))
        {
            self.bytes += entry.approximate_bytes();
            self.entries.push_back(entry);
        } else {
            self.first += 1;
        }
        while self.entries.len() > self.limits.entries || self.bytes > self.limits.bytes {
            self.pop();
            for place in self.readers.values_mut() {
                if matches!(place, Place::At(next) if *next < self.first) {
                    *place = Place::Lost;
                }
            }
        }
    }

    fn pop(&mut self) {
        if let Some(entry) = self.entries.pop_front() {
            self.bytes -= entry.approximate_bytes();
            self.first += 1;
        }
    }

    /// Discards entries read by all readers.
    fn trim(&mut self) {
        let places = self.readers.values().filter_map(|place| match place {
            Place::At(next) => Some(*next),
            Place::Lost => None,
        });
        let keep = places.min().unwrap_or(self.end());
        while self.first < keep {
            self.pop();
        }
    }
}

impl Reader {
    /// Removes the entries recorded since the last call. Fails if this reader fell behind so far
    /// that entries were dropped.
    pub fn drain(&mut self) -> Result<Vec<Arc<Entry>>, Overrun> {
        self.length.mark_unchanged();
        let mut window = self.shared.window();
        let end = window.end();
        let place = window.readers.insert(self.id, Place::At(end));
        let Some(Place::At(next)) = place else {
            window.readers.insert(self.id, Place::Lost);
            return Err(Overrun);
        };
        let skip = usize::try_from(next - window.first).unwrap_or(usize::MAX);
        let taken = window.entries.iter().skip(skip).cloned().collect();
        window.trim();
        Ok(taken)
    }

    /// Waits until an entry has been recorded since the last [`Reader::drain`].
    pub async fn changed(&mut self) {
        // An error would mean that the recorder is gone, which `shared` rules out.
        let _ = self.length.changed().await;
    }
}

impl Changes {
    /// Waits until an entry has been recorded since the last call.
    pub async fn next(&mut self) {
        // An error means that the recorder is gone: then nothing more will come.
        if self.length.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut window = self.shared.window();
        window.readers.remove(&self.id);
        window.trim();
    }
}

/// Writes a history to a file while it grows. See `proto/history.proto`.
#[derive(Debug)]
pub struct HistoryFile {
    task: tokio::task::JoinHandle<io::Result<()>>,
    finish: tokio::sync::oneshot::Sender<()>,
}

impl HistoryFile {
    /// Writes the entries recorded from now on to a file.
    pub fn begin(recorder: &Recorder, file: Output) -> Self {
        let (finish, finished) = tokio::sync::oneshot::channel();
        let task = write_entries(
            recorder.reader(),
            file,
            limits::HISTORY_FILE_BYTES,
            finished,
        );
        let task = tokio::spawn(task);
        Self { task, finish }
    }

    /// Writes the rest and closes the file. Fails if any write failed, or the writer fell behind
    /// the limits.
    pub async fn finish(self) -> io::Result<()> {
        let _ = self.finish.send(());
        self.task.await.map_err(io::Error::other)?
    }
}

async fn write_entries(
    mut reader: Reader,
    file: Output,
    limit: u64,
    mut finished: tokio::sync::oneshot::Receiver<()>,
) -> io::Result<()> {
    let mut out = FrameWriter::new(file);
    let (mut room, mut is_full) = (limit, false);
    let mut frame_ends = None;
    loop {
        let last = tokio::select! {
            () = reader.changed() => false,
            () = until(frame_ends) => false,
            _ = &mut finished => true,
        };
        let mut case_ended = false;
        for entry in reader.drain().map_err(io::Error::other)? {
            if is_full {
                break;
            }
            case_ended |= matches!(entry.body, Body::CaseEnded { .. });
            // Blocking, but short: these are a few kilobytes into the page cache.
            let length = out.push(&entry)?;
            room = room.saturating_sub(length as u64);
            is_full = room == 0;
        }
        if last {
            out.finish()?.to_disk()?;
            return if is_full { Err(full(limit)) } else { Ok(()) };
        }
        if case_ended || frame_ends.is_some_and(|ends| Instant::now() >= ends) {
            out.end_frame()?;
        }
        let from_now = || Instant::now() + limits::HISTORY_FRAME;
        frame_ends = out
            .is_pending()
            .then(|| frame_ends.unwrap_or_else(from_now));
    }
}

/// Waits until an instant, forever if it is `None`.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

fn full(limit: u64) -> io::Error {
    let limit = limit >> 20;
    io::Error::other(format!(
        "it has reached its limit of {limit} MiB before compression; later entries are missing"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{CaseRun, RunInfo, codec};

    fn mark() -> Body {
        Body::CaseEnded { case: CaseRun(0) }
    }

    #[test]
    fn a_reader_sees_what_came_after_it_once_and_in_order() {
        let recorder = Recorder::new();
        recorder.record(mark());
        let mut reader = recorder.reader();
        recorder.record(mark());
        recorder.record(mark());
        let seen: Vec<_> = reader
            .drain()
            .unwrap()
            .iter()
            .map(|entry| entry.seq.0)
            .collect();
        assert_eq!(seen, [1, 2]);
        assert!(reader.drain().unwrap().is_empty());
    }

    #[test]
    fn what_every_reader_has_taken_is_let_go() {
        let recorder = Recorder::new();
        let (mut fast, mut slow) = (recorder.reader(), recorder.reader());
        recorder.record(mark());
        fast.drain().unwrap();
        assert_eq!(recorder.shared.window().entries.len(), 1);
        slow.drain().unwrap();
        assert_eq!(recorder.shared.window().entries.len(), 0);
        recorder.record(mark());
        drop(slow);
        assert_eq!(fast.drain().unwrap().len(), 1);
        assert_eq!(recorder.shared.window().bytes, 0);
    }

    #[tokio::test]
    async fn a_history_ends_at_its_limit_and_says_so() {
        let recorder = Recorder::new();
        let (reader, finish) = (recorder.reader(), tokio::sync::oneshot::channel());
        recorder.record(Body::RunBegan(RunInfo::default().into()));
        for _ in 0..10_000 {
            recorder.record(mark());
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        finish.0.send(()).unwrap();
        let written = write_entries(reader, file.reopen().unwrap().into(), 1000, finish.1).await;
        let fault = written.unwrap_err().to_string();
        assert!(fault.contains("reached its limit"), "{fault}");
        let decoded = codec::decode_file(&std::fs::read(file.path()).unwrap());
        assert_eq!(decoded.fault, None);
        let mut bytes = Vec::new();
        for entry in &decoded.entries {
            codec::encode(entry, &mut bytes);
        }
        assert!((1000..1100).contains(&bytes.len()), "{}", bytes.len());
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_that_is_killed_loses_its_last_second_at_most() {
        let recorder = Recorder::new();
        let file = tempfile::NamedTempFile::new().unwrap();
        let writing = HistoryFile::begin(&recorder, file.reopen().unwrap().into());
        let written = || {
            let bytes = std::fs::read(file.path()).unwrap();
            codec::decode_file(&bytes).entries.len()
        };
        // A thread writes the entries.
        let awaited = |entries| {
            let began = host::now();
            while written() != entries && host::elapsed(began) < limits::STALLED_OUTPUT {
                std::thread::yield_now();
            }
            written()
        };
        let waited = || Body::CasesEnded;
        recorder.record(Body::RunBegan(RunInfo::default().into()));
        recorder.record(waited());
        // Time is simulated, and the wait is for the frame's end.
        until(Some(Instant::now() + limits::HISTORY_FRAME * 2)).await;
        assert_eq!(awaited(2), 2);
        recorder.record(waited());
        until(Some(Instant::now() + limits::HISTORY_FRAME / 2)).await;
        for _ in 0..1000 {
            std::thread::yield_now();
            assert_eq!(written(), 2, "the frame has not ended");
        }
        recorder.record(mark());
        until(Some(Instant::now() + limits::HISTORY_FRAME / 4)).await;
        assert_eq!(awaited(4), 4, "a case's end ends the frame, too");
        recorder.record(waited());
        writing.finish().await.unwrap();
        assert_eq!(written(), 5);
    }

    #[test]
    fn a_reader_that_falls_behind_the_limit_is_notified_and_the_others_are_not_harmed() {
        let recorder = Recorder::new();
        let (mut slow, mut fast) = (recorder.reader(), recorder.reader());
        for _ in 0..=limits::HISTORY_ENTRIES {
            recorder.record(mark());
            fast.drain().unwrap();
        }
        assert_eq!(slow.drain(), Err(Overrun));
        recorder.record(mark());
        assert_eq!(slow.drain(), Err(Overrun));
        assert_eq!(fast.drain().unwrap().len(), 1);
    }
}
