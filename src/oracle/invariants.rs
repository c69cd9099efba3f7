//! The rules that hold on every history, independent of the case.

use std::rc::Rc;

use super::index::Index;
use super::rules::INVARIANTS;
use super::subjects::{entries_about, name_of};
use super::whole_run::{Brief, by_stream};
use crate::history::{CaseHistory, EventArrival, Seq, Subject, cut};
use crate::outcome::{Kind, Level, Levels, Mismatch, Violation};

/// A rule that every history must keep.
#[derive(Clone, Copy, Debug)]
pub struct Invariant {
    pub id: &'static str,
    /// The name under which it is listed.
    pub name: &'static str,
    pub sentence: &'static str,
    pub source: &'static str,
    /// The ids of the requirements that it checks.
    pub requirements: &'static [&'static str],
    /// The requirement level for each profile.
    pub levels: Levels,
    pub kinds: &'static [Kind],
    /// Whether it compares wall-clock times. If so, it is not checked on a case during which the
    /// clock was set.
    pub(super) compares_clocks: bool,
    /// Whether it can be judged for a foreign pod, whose calls are not recorded.
    pub of_foreign_pods: bool,
    pub(super) check: fn(&Invariant, &Index<'_>) -> Vec<Violation>,
}

pub(super) const MUST_SHOULD: Levels = Levels {
    cache: Some(Level::Must),
    hint: Some(Level::Should),
    observer: None,
};
pub(super) const MUST_MUST: Levels = Levels {
    cache: Some(Level::Must),
    hint: Some(Level::Must),
    observer: None,
};
pub(super) const MUST_MAY: Levels = Levels {
    cache: Some(Level::Must),
    hint: Some(Level::May),
    observer: None,
};
pub(super) const SHOULD_MAY: Levels = Levels {
    cache: Some(Level::Should),
    hint: Some(Level::May),
    observer: None,
};
pub(super) const SHOULD_SHOULD: Levels = Levels {
    cache: Some(Level::Should),
    hint: Some(Level::Should),
    observer: None,
};
pub(super) const OBSERVERS: Levels = Levels {
    cache: None,
    hint: None,
    observer: Some(Level::Must),
};

/// Checks every invariant on a case's history; at most one violation for each rule and subject.
pub fn invariants(index: &Index<'_>) -> Vec<Violation> {
    let clock_was_set = index.history.clock_set_by().is_some();
    let is_foreign = index.history.is_of_foreign_pod();
    INVARIANTS
        .iter()
        .filter(|invariant| !(clock_was_set && invariant.compares_clocks))
        .filter(|invariant| !is_foreign || invariant.of_foreign_pods)
        .flat_map(|invariant| index.broken(invariant).as_ref().clone())
        .collect()
}

pub fn invariant(id: &str) -> Option<&'static Invariant> {
    INVARIANTS.iter().find(|invariant| invariant.id == id)
}

/// The violations of the invariant with an id; `None` for an unknown id.
pub(crate) fn broken_by(id: &str, index: &Index<'_>) -> Option<Rc<Vec<Violation>>> {
    Some(index.broken(invariant(id)?))
}

impl Invariant {
    /// The strictest of its levels.
    pub(super) fn level(&self) -> Level {
        self.levels.highest().unwrap_or(Level::May)
    }

    /// The invariant's violation by a subject, proven by these of its events.
    pub(super) fn violation_by<'a>(
        &self,
        subject: &Subject,
        mismatch: Mismatch,
        proof: impl IntoIterator<Item = &'a EventArrival>,
    ) -> Violation {
        let proof = proof.into_iter().map(EventArrival::seq).collect();
        self.violation(name_of(subject), mismatch, proof)
    }

    pub(super) fn violation(
        &self,
        mut subject: String,
        mismatch: Mismatch,
        evidence: Vec<Seq>,
    ) -> Violation {
        cut(&mut subject);
        let is_declared = self.kinds.contains(&mismatch.kind);
        debug_assert!(is_declared, "{} has no `{}`", self.id, mismatch.kind);
        Violation {
            rule: self.id.to_owned(),
            level: self.level(),
            sentence: self.sentence.to_owned(),
            subject,
            mismatch,
            evidence,
        }
    }

    /// Applies a check to each event; the first finding of each subject counts.
    pub(super) fn on_each_event(
        &self,
        history: &CaseHistory,
        mut check: impl FnMut(&Subject, &EventArrival) -> Option<Mismatch>,
    ) -> Vec<Violation> {
        let first = |subject: &Subject| {
            subject.arrivals.iter().find_map(|arrival| {
                let mismatch = check(subject, arrival)?;
                Some(self.violation_by(subject, mismatch, [arrival]))
            })
        };
        history.subjects().iter().filter_map(first).collect()
    }

    /// Applies a check to the events of each subject on each stream: a runtime may repeat events
    /// to a new subscriber.
    pub(super) fn on_each_stream(
        &self,
        history: &CaseHistory,
        check: fn(&[Brief]) -> Option<Broken>,
    ) -> Vec<Violation> {
        let first = |subject: &Subject| {
            let briefs = subject.arrivals.iter().map(Brief::of).collect();
            let mut streams = by_stream(briefs).into_values();
            let (mismatch, proof) = streams.find_map(|events| check(&events))?;
            Some(self.violation(name_of(subject), mismatch, proof))
        };
        history.subjects().iter().filter_map(first).collect()
    }
}

/// A mismatch, and the entries that prove it.
pub(super) type Broken = (Mismatch, Vec<Seq>);

/// The entries that explain a violation: its evidence, and the other entries about the subject.
pub fn context(history: &CaseHistory, violation: &Violation) -> Vec<Seq> {
    let about = |subject: &&Subject| violation.subject.contains(subject.id.as_str());
    let mut entries = violation.evidence.clone();
    for subject in history.subjects().iter().filter(about) {
        entries.extend(entries_about(history, subject));
    }
    entries.sort_unstable();
    entries.dedup();
    entries
}
