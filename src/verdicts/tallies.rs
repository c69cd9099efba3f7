//! The number of lost races in the cases of a run, and of the affected containers.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::known::{KnownFailure, Losses};
use crate::history::{CaseRun, Seq};
use crate::outcome::{Outcome, Seen};

/// The tally of every judged execution.
#[derive(Debug, Default)]
pub(super) struct Tallies(BTreeMap<CaseRun, Tally>);

#[derive(Debug)]
pub(super) struct Tally {
    pub(super) case: Arc<str>,
    pub(super) ended: Seq,
    pub(super) containers: usize,
    /// Its own broken expectations, and their numbers.
    pub(super) seen: BTreeMap<Seen, usize>,
}

impl Tallies {
    pub(super) fn add(&mut self, run: CaseRun, tally: Tally) {
        self.0.insert(run, tally);
    }

    pub(super) fn forget(&mut self, run: CaseRun) {
        self.0.remove(&run);
    }

    /// The number of lost races of an entry in a case, up to the end of one of its executions.
    pub(super) fn of_case(&self, run: CaseRun, entry: &KnownFailure) -> Losses {
        let Some(last) = self.0.get(&run) else {
            return Losses::default();
        };
        let same = self.0.values().filter(|tally| tally.case == last.case);
        let until = same.filter(|tally| tally.ended <= last.ended);
        until.fold(Losses::default(), |losses, tally| Losses {
            findings: losses.findings + covered(&tally.seen, entry),
            containers: losses.containers + tally.containers,
        })
    }

    /// The number of lost races of an invariant's entry in the run.
    pub(super) fn of_invariant(&self, outcome: &Outcome, entry: &KnownFailure) -> Losses {
        let concerned = self.0.values().filter(|tally| entry.is_of(&tally.case));
        Losses {
            findings: covered(&outcome.seen, entry),
            containers: concerned.map(|tally| tally.containers).sum(),
        }
    }
}

fn covered(seen: &BTreeMap<Seen, usize>, entry: &KnownFailure) -> usize {
    let covered = seen.iter().filter(|(seen, _)| entry.covers(seen));
    covered.map(|(_, count)| count).sum()
}
