//! The history of a watch: the retained entries, their verdicts, and the file.

use std::sync::Arc;

use super::history_file::HistoryFile;
use crate::history::{Body, CallId, Entry, Reply, Request, Seq};
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
            request: Request::ListSandboxes(labels),
            ..
        } if labels.is_empty()
    )
}

fn begins(entry: &Entry, wanted: CallId) -> bool {
    matches!(entry.body, Body::CallBegan { call, .. } if call == wanted)
}
