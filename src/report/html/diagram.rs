//! A sequence diagram of the evidence of a violation: a lane for calls, for the events of each
//! subscription, for lists, for the kernel, and for waits and faults; a row for each entry.
//!
//! An arrow leads from a call to the event that it causes, and from an event to the first list that
//! shows the change. A missing event is a gap. The content of the diagram is also available as
//! text: the lines of the timeline.

mod drawing;
mod lane;
mod missing;
mod selection;
mod threads;

use super::super::evidence::Evidence;
use super::super::timeline::Brief;
use crate::outcome::Violation;

pub(super) use drawing::draw;
use lane::Lane;
use missing::Missing;
use threads::Threads;

/// A diagram, as rows from top to bottom.
#[derive(Debug)]
pub(super) struct Diagram {
    lanes: Vec<Lane>,
    rows: Vec<Row>,
    arrows: Vec<Arrow>,
    calls: Vec<CallBar>,
}

#[derive(Debug)]
enum Row {
    Entry(Mark),
    Missing { lane: Lane, label: String },
    Skipped(usize),
}

#[derive(Debug)]
struct Mark {
    lane: Lane,
    seq: String,
    time: String,
    brief: Brief,
    convicts: bool,
    failed: bool,
}

/// From a row to another one below.
#[derive(Debug, PartialEq, Eq)]
struct Arrow {
    from: usize,
    to: usize,
}

/// A call from its row to the row of its return.
#[derive(Debug, PartialEq, Eq)]
struct CallBar {
    from: usize,
    to: usize,
    /// The number of other calls under way when it began.
    depth: usize,
}

impl Diagram {
    /// The diagram of a violation in at most `budget` rows of entries; `None` if none of its
    /// evidence is available.
    pub(super) fn new(
        evidence: &Evidence<'_>,
        violation: &Violation,
        budget: usize,
    ) -> Option<Self> {
        let threads = Threads::new(evidence.entries());
        let subject = threads.id_in(&violation.subject);
        let chosen = selection::select(&threads, violation, subject, budget);
        if chosen.is_empty() {
            return None;
        }
        let mut rows = Rows::default();
        let mut gaps = missing::of(&threads, violation, subject, &chosen);
        let convicting = selection::convicting(&threads, violation);
        let mut next = 0;
        for at in chosen {
            rows.skip(threads.count_drawn(next..at));
            next = at + 1;
            let (due, later): (Vec<_>, Vec<_>) = gaps.into_iter().partition(|gap| gap.before == at);
            gaps = later;
            for gap in due {
                rows.miss(gap);
            }
            rows.add(at, mark(evidence, &threads, at, convicting.contains(&at)));
        }
        for gap in gaps {
            rows.miss(gap);
        }
        rows.skip(threads.count_drawn(next..evidence.entries().len()));
        Some(rows.connect(&threads))
    }
}

fn mark(evidence: &Evidence<'_>, threads: &Threads<'_>, at: usize, convicts: bool) -> Mark {
    let entry = &evidence.entries()[at];
    Mark {
        lane: threads.lane(at),
        seq: format!("#{}", entry.seq),
        time: evidence.timeline().time(entry),
        brief: evidence.timeline().brief(entry),
        convicts,
        failed: threads.is_fault(at),
    }
}

/// The rows made so far, and the row of each entry.
#[derive(Debug, Default)]
struct Rows {
    made: Vec<Row>,
    places: Vec<(usize, usize)>,
    gaps: Vec<(usize, usize)>,
}

impl Rows {
    fn skip(&mut self, count: usize) {
        if count > 0 {
            self.made.push(Row::Skipped(count));
        }
    }

    fn add(&mut self, at: usize, mark: Mark) {
        self.places.push((at, self.made.len()));
        self.made.push(Row::Entry(mark));
    }

    fn miss(&mut self, gap: Missing) {
        if let Some(cause) = gap.cause {
            self.gaps.push((cause, self.made.len()));
        }
        let Missing { lane, label, .. } = gap;
        self.made.push(Row::Missing { lane, label });
    }

    fn connect(self, threads: &Threads<'_>) -> Diagram {
        let row_of = |entry: usize| {
            let place = self.places.iter().find(|(at, _)| *at == entry);
            place.map(|(_, row)| *row)
        };
        let mut arrows = Vec::new();
        let mut calls: Vec<CallBar> = Vec::new();
        for (at, row) in &self.places {
            let from = threads.cause(*at).and_then(row_of);
            arrows.extend(from.map(|from| Arrow { from, to: *row }));
            let to = threads.shown_by(*at).and_then(row_of);
            arrows.extend(to.map(|to| Arrow { from: *row, to }));
            if let Some(to) = threads.end_of_call(*at).and_then(row_of) {
                let depth = calls.iter().filter(|bar| bar.to > *row).count();
                let from = *row;
                calls.push(CallBar { from, to, depth });
            }
        }
        for (cause, row) in &self.gaps {
            let from = row_of(*cause).filter(|from| from < row);
            arrows.extend(from.map(|from| Arrow { from, to: *row }));
        }
        let used = self.made.iter().filter_map(Row::lane);
        let lanes = Lane::shown(used);
        Diagram {
            lanes,
            rows: self.made,
            arrows,
            calls,
        }
    }
}

impl Row {
    fn lane(&self) -> Option<Lane> {
        match self {
            Self::Entry(mark) => Some(mark.lane),
            Self::Missing { lane, .. } => Some(*lane),
            Self::Skipped(_) => None,
        }
    }
}
