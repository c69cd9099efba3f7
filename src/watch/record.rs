//! The history of a watch: the retained entries, their verdicts, and the file, which is rotated at
//! a given size.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::files::Output;
use crate::history::codec::FrameWriter;
use crate::history::{Body, CallId, Entry, HostInstant, Reply, Request, RunEnd, Seq};
use crate::limits;
use crate::verdicts::{Scope, Verdicts};

/// Numbers and judges the entries of a watch, and writes them to a file.
///
/// A relist that equals the previous one, while no pod is followed, replaces it, so that an idle
/// node uses neither memory nor disk.
pub(super) struct Record {
    next: u64,
    verdicts: Verdicts,
    file: Option<HistoryFile>,
    /// The entries of the relist under way.
    relist: Vec<Entry>,
    /// A relist without changes, withheld.
    held: Vec<Entry>,
    /// The answers of the last relist.
    last: Option<[Reply; 2]>,
}

/// Writes entries. After an error, writing stops, and [`finish`](Self::finish) returns the error.
pub(super) struct HistoryFile {
    path: PathBuf,
    /// The size in bytes at which a new file is begun; `None` without rotation.
    rotate: Option<u64>,
    out: FrameWriter<Output>,
    /// The space left, in bytes before compression.
    room: u64,
    next: u64,
    /// The head of every file: the run, its plan, and the open stream.
    head: Vec<Arc<Entry>>,
    stream: Vec<Arc<Entry>>,
    /// The time of the last entry.
    last: HostInstant,
    fault: Option<io::Error>,
}

/// The suffix of the last full file.
const FULL: &str = ".1";

impl Record {
    /// An empty record, written to `file`.
    pub(super) fn new(scope: Scope, file: Option<HistoryFile>) -> Self {
        Self {
            next: 0,
            verdicts: Verdicts::new(scope),
            file,
            relist: Vec::new(),
            held: Vec::new(),
            last: None,
        }
    }

    pub(super) fn verdicts(&mut self) -> &mut Verdicts {
        &mut self.verdicts
    }

    pub(super) fn push(&mut self, entry: Entry) {
        if is_first_of_relist(&entry.body) {
            self.keep_relist();
            self.relist.push(entry);
        } else if self.is_of_relist(&entry.body) {
            self.relist.push(entry);
            self.relisted();
        } else {
            self.keep_held();
            self.keep_relist();
            self.keep(entry);
        }
    }

    /// Adds the last entries; returns the file's error, if any.
    pub(super) fn finish(&mut self, last: Vec<Entry>) -> Option<String> {
        self.keep_held();
        self.keep_relist();
        for entry in last {
            self.keep(entry);
        }
        self.file.take().and_then(HistoryFile::finish)
    }

    /// Writes the pending entries to the file.
    pub(super) fn flush(&mut self) {
        if let Some(file) = &mut self.file {
            file.flush();
        }
    }

    /// Whether an entry belongs to the relist under way.
    fn is_of_relist(&self, body: &Body) -> bool {
        let mut began = self.relist.iter();
        match body {
            Body::CallBegan {
                case: None,
                request: Request::ListContainers { .. },
                ..
            } => !self.relist.is_empty(),
            Body::CallEnded { call, .. } => began.any(|entry| begins(entry, *call)),
            _ => false,
        }
    }

    /// Withholds a whole relist that shows no change.
    fn relisted(&mut self) {
        let answers = self.relist.iter().filter_map(|entry| match &entry.body {
            Body::CallEnded { result, .. } => result.as_ref().ok(),
            _ => None,
        });
        let [sandboxes, containers] = &answers.collect::<Vec<_>>()[..] else {
            return;
        };
        let known = self.last.as_ref();
        let is_new = known.is_none_or(|[before, of]| before != *sandboxes || of != *containers);
        if is_new {
            self.last = Some([Reply::clone(sandboxes), Reply::clone(containers)]);
        }
        if is_new || self.verdicts.is_following_pods() {
            self.keep_held();
            self.keep_relist();
        } else {
            self.held = std::mem::take(&mut self.relist);
        }
    }

    fn keep_held(&mut self) {
        for entry in std::mem::take(&mut self.held) {
            self.keep(entry);
        }
    }

    fn keep_relist(&mut self) {
        for entry in std::mem::take(&mut self.relist) {
            self.keep(entry);
        }
    }

    fn keep(&mut self, entry: Entry) {
        let entry = Arc::new(Entry {
            seq: Seq(self.next),
            ..entry
        });
        self.next += 1;
        if let Some(file) = &mut self.file {
            file.push(&entry);
        }
        self.verdicts.push(&entry);
    }
}

/// Whether it begins a relist of all pods.
fn is_first_of_relist(body: &Body) -> bool {
    matches!(
        body,
        Body::CallBegan {
            case: None,
            request: Request::ListSandboxes { labels, .. },
            ..
        } if labels.is_empty()
    )
}

fn begins(entry: &Entry, wanted: CallId) -> bool {
    matches!(entry.body, Body::CallBegan { call, .. } if call == wanted)
}

impl HistoryFile {
    pub(super) fn new(path: PathBuf, file: Output, rotate: Option<u64>) -> Self {
        Self {
            path,
            rotate,
            out: FrameWriter::new(file),
            room: limits::HISTORY_FILE_BYTES,
            next: 0,
            head: Vec::new(),
            stream: Vec::new(),
            last: HostInstant::default(),
            fault: None,
        }
    }

    pub(super) fn push(&mut self, entry: &Arc<Entry>) {
        match &entry.body {
            Body::RunBegan(_) | Body::RunPlanned(_) => self.head.push(entry.clone()),
            Body::SubscriptionOpened { .. } => self.stream = vec![entry.clone()],
            Body::SubscriptionAnswered { .. } | Body::SubscriptionProven { .. } => {
                self.stream.push(entry.clone());
            }
            Body::SubscriptionEnded { .. } => self.stream.clear(),
            _ => {}
        }
        self.attempt(|file| file.write(entry));
    }

    /// Writes the pending entries, and begins a new file if this one is full.
    pub(super) fn flush(&mut self) {
        self.attempt(|file| {
            file.out.end_frame()?;
            let is_full = file
                .rotate
                .is_some_and(|size| file.out.get_ref().written() >= size);
            if is_full { file.begin_anew() } else { Ok(()) }
        });
    }

    /// Writes the rest; returns the reason if the file is incomplete.
    pub(super) fn finish(mut self) -> Option<String> {
        self.attempt(|file| file.out.end_frame());
        let synced = match self.fault {
            Some(fault) => Err(fault),
            None => self.out.get_ref().to_disk(),
        };
        let path = self.path;
        let fault = synced.err()?;
        Some(format!("write the history to {}: {fault}", path.display()))
    }

    fn attempt(&mut self, write: impl FnOnce(&mut Self) -> io::Result<()>) {
        if self.fault.is_none() {
            self.fault = write(self).err();
        }
    }

    fn write(&mut self, entry: &Entry) -> io::Result<()> {
        let length = if entry.seq == Seq(self.next) {
            self.out.push(entry)?
        } else {
            let seq = Seq(self.next);
            self.out.push(&Entry {
                seq,
                ..entry.clone()
            })?
        };
        let length = length as u64;
        self.next += 1;
        self.last = entry.at;
        match self.room.checked_sub(length) {
            Some(room) => self.room = room,
            None if self.rotate.is_some() => self.begin_anew()?,
            None => {
                let limit = limits::HISTORY_FILE_BYTES >> 20;
                return Err(io::Error::other(format!(
                    "it has reached its limit of {limit} MiB before compression; later \
                     entries are missing. --rotate 64MiB continues in a new file"
                )));
            }
        }
        Ok(())
    }

    /// Renames the full file, and continues in a new one that can be judged on its own.
    fn begin_anew(&mut self) -> io::Result<()> {
        for body in [Body::CasesEnded, Body::RunEnded(RunEnd::default())] {
            let (seq, at) = (Seq(self.next), self.last);
            self.out.push(&Entry { seq, at, body })?;
            self.next += 1;
        }
        self.out.end_frame()?;
        self.out.get_mut().begin_anew(FULL)?;
        (self.room, self.next) = (limits::HISTORY_FILE_BYTES, 0);
        let head: Vec<_> = self.head.iter().chain(&self.stream).cloned().collect();
        for entry in head {
            self.write(&entry)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::files::Draft;
    use crate::history::{RunInfo, SubscriptionId, codec};

    fn entry(seq: u64, body: Body) -> Arc<Entry> {
        let (seq, at) = (Seq(seq), HostInstant::default());
        Arc::new(Entry { seq, at, body })
    }

    /// Incompressible texts, so that a file soon reaches its size.
    fn large(seq: u64) -> Arc<Entry> {
        let texts = (0..200).map(|_| uuid::Uuid::new_v4().to_string());
        let end = RunEnd {
            removed: true,
            faults: texts.collect(),
            ..RunEnd::default()
        };
        entry(seq, Body::RunEnded(end))
    }

    #[test]
    fn a_full_file_is_kept_and_each_can_be_read_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("h.binpb");
        let file = Draft::open("history", &path).unwrap().begin().unwrap();
        let mut history = HistoryFile::new(path.clone(), file, Some(64 << 10));
        let subscription = SubscriptionId(0);
        let head = [
            Body::RunBegan(RunInfo::default().into()),
            Body::SubscriptionOpened {
                subscription,
                observer: None,
            },
        ];
        for (seq, body) in (0..).zip(head) {
            history.push(&entry(seq, body));
        }
        for seq in 2..100 {
            history.push(&large(seq));
            history.flush();
        }
        assert_eq!(history.finish(), None);
        let mut names: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|it| it.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["h.binpb", "h.binpb.1"]);
        for name in names {
            let bytes = fs::read(folder.path().join(name)).unwrap();
            assert!(bytes.len() < 96 << 10, "{}", bytes.len());
            let decoded = codec::decode_file(&bytes);
            assert_eq!(decoded.fault, None);
            let numbers: Vec<u64> = decoded.entries.iter().map(|entry| entry.seq.0).collect();
            assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
            assert!(matches!(
                decoded.entries[1].body,
                Body::SubscriptionOpened { .. }
            ));
        }
    }

    #[test]
    fn a_file_that_was_moved_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("h.binpb");
        let file = Draft::open("history", &path).unwrap().begin().unwrap();
        let mut history = HistoryFile::new(path.clone(), file, Some(64 << 10));
        history.push(&entry(0, Body::RunBegan(RunInfo::default().into())));
        fs::rename(&path, folder.path().join("moved")).unwrap();
        fs::write(&path, "of somebody else").unwrap();
        for seq in 1..100 {
            history.push(&large(seq));
            history.flush();
        }
        let fault = history.finish().unwrap();
        assert!(fault.contains("no longer names this file"), "{fault}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "of somebody else");
    }
}
