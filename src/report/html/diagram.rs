//! A sequence diagram of the evidence of a violation: a lane for calls, for the events of each
//! subscription, for lists, for the kernel, and for waits and faults; a row for each entry.
//!
//! An arrow leads from a call to the event that it causes, and from an event to the first list that
//! shows the change. A missing event is a gap. The content of the diagram is also available as
//! text: the lines of the timeline.

mod drawing;
mod threads;

use std::collections::BTreeSet;

use threads::Threads;

use crate::history::{EventKind, SubscriptionId};
use crate::outcome::{Fact, Facts, Kind, Mismatch, Violation};
use crate::report::evidence::Evidence;
use crate::report::timeline::Brief;

pub(super) use drawing::draw;

/// A diagram, as rows from top to bottom.
#[derive(Debug)]
pub(super) struct Diagram {
    lanes: Vec<Lane>,
    rows: Vec<Row>,
    arrows: Vec<Arrow>,
    calls: Vec<CallBar>,
}

/// The column of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Lane {
    /// Calls that change state.
    Calls,
    /// Events of a subscription.
    Events(SubscriptionId),
    /// Read-only calls.
    Lists,
    /// Facts read from the kernel.
    Kernel,
    /// Waits, and errors of the suite.
    Faults,
}

#[derive(Debug)]
enum Row {
    Entry(Mark),
    Missing(Missing),
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

#[derive(Debug)]
struct Missing {
    lane: Lane,
    label: String,
    /// The index of the entry before which it is missing; that of an undrawn entry for the end.
    before: usize,
    /// The index of the call that should cause it.
    cause: Option<usize>,
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
        let marked = convicting(&threads, violation);
        let chosen = select(&threads, &marked, subject, budget);
        if chosen.is_empty() {
            return None;
        }
        // Where each row is proof, a mark says nothing.
        let has_others = chosen.iter().any(|at| !marked.contains(at));
        let mut rows = Rows::default();
        let mut gaps = missing(&threads, violation, subject, &chosen);
        let mut next = 0;
        for at in chosen {
            rows.skip(threads.count_drawn(next..at));
            next = at + 1;
            let (due, later): (Vec<_>, Vec<_>) = gaps.into_iter().partition(|gap| gap.before == at);
            gaps = later;
            for gap in due {
                rows.miss(gap);
            }
            rows.add(
                at,
                mark(evidence, &threads, at, has_others && marked.contains(&at)),
            );
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
        self.made.push(Row::Missing(gap));
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
            Self::Missing(gap) => Some(gap.lane),
            Self::Skipped(_) => None,
        }
    }
}

impl Lane {
    /// These lanes and the mandatory ones.
    fn shown(used: impl Iterator<Item = Self>) -> Vec<Self> {
        let mut lanes: BTreeSet<Self> = used.collect();
        lanes.extend([Self::Calls, Self::Lists]);
        if !lanes.iter().any(|lane| matches!(lane, Self::Events(_))) {
            lanes.insert(Self::Events(SubscriptionId(0)));
        }
        lanes.into_iter().collect()
    }

    /// Its heading; `several` if there are several subscriptions.
    fn heading(self, several: bool) -> String {
        match self {
            Self::Calls => "Calls".to_owned(),
            Self::Events(stream) if several => format!("Events of stream {stream}"),
            Self::Events(_) => "Events".to_owned(),
            Self::Lists => "Lists".to_owned(),
            Self::Kernel => "Kernel".to_owned(),
            Self::Faults => "Waits and faults".to_owned(),
        }
    }

    /// In pixels.
    fn width(self) -> usize {
        match self {
            Self::Calls => 250,
            Self::Events(_) => 280,
            Self::Lists => 270,
            Self::Kernel => 190,
            Self::Faults => 300,
        }
    }
}

/// The missing events of a violation, among these entries.
fn missing(
    threads: &Threads<'_>,
    violation: &Violation,
    subject: Option<&str>,
    chosen: &BTreeSet<usize>,
) -> Vec<Missing> {
    let lane = Lane::Events(threads.first_stream());
    let end = threads.entries().len();
    let missing = kinds(&violation.mismatch).into_iter().map(|kind| {
        // It was due before what could only follow, and before a list that shows it has happened.
        let later = subject.and_then(|id| {
            let mut drawn = chosen.iter().copied();
            drawn.find(|at| threads.is_after(*at, id, kind))
        });
        let before = later.unwrap_or(end);
        let cause = subject.and_then(|id| threads.cause_of(kind, id, None, before));
        Missing {
            lane,
            label: kind.to_string(),
            before,
            cause,
        }
    });
    missing.collect()
}

/// The kinds of the missing events.
fn kinds(mismatch: &Mismatch) -> Vec<EventKind> {
    let is_missing = Kind::MISSING.contains(&mismatch.kind)
        || matches!(
            mismatch.kind,
            Kind::MissingOnSubscription | Kind::MissingOnMainStream
        );
    match mismatch.expected.get("event") {
        Some(Fact::Event(kind)) if is_missing => return vec![*kind],
        _ => {}
    }
    let events = |facts: &Facts| match facts.get("events") {
        Some(Fact::Events(kinds)) => kinds.clone(),
        _ => Vec::new(),
    };
    if mismatch.kind != Kind::WrongEvents {
        return Vec::new();
    }
    let mut came = events(&mismatch.actual);
    let mut missing = events(&mismatch.expected);
    missing.retain(|kind| match came.iter().position(|it| it == kind) {
        Some(at) => {
            came.remove(at);
            false
        }
        None => true,
    });
    missing
}

/// The indices of the drawn entries that are evidence.
fn convicting(threads: &Threads<'_>, violation: &Violation) -> BTreeSet<usize> {
    let entries = threads.entries();
    let place = |seq| entries.binary_search_by_key(seq, |entry| entry.seq).ok();
    let places = violation.evidence.iter().filter_map(place);
    places.map(|at| threads.drawn(at)).collect()
}

/// The indices of at most `budget` entries, in order. By priority: the evidence, the other ends of
/// its calls, their causes and the lists that show them, then all entries of the same subject, then
/// neighbouring ones.
fn select(
    threads: &Threads<'_>,
    marked: &BTreeSet<usize>,
    subject: Option<&str>,
    budget: usize,
) -> BTreeSet<usize> {
    let linked = marked.iter().flat_map(|at| {
        let ends = threads.both_ends(*at);
        let cause = threads.cause(*at).into_iter();
        let causes = cause.flat_map(|cause| threads.both_ends(cause));
        ends.chain(causes).chain(threads.shown_by(*at))
    });
    let about = subject.into_iter().flat_map(|id| {
        let calls = threads.calls_on(id);
        let calls = calls.flat_map(|call| threads.both_ends(call));
        calls.chain(threads.events_of(id).map(|(at, _)| at))
    });
    let last = threads.entries().len().saturating_sub(1);
    let beside = marked
        .iter()
        .flat_map(|at| [at.saturating_sub(1), (at + 1).min(last)]);
    let all = marked.iter().copied().chain(linked).chain(about);
    let mut chosen = BTreeSet::new();
    if marked.is_empty() {
        return chosen;
    }
    for at in all.chain(beside) {
        if chosen.len() == budget {
            break;
        }
        chosen.insert(threads.drawn(at));
    }
    chosen
}
