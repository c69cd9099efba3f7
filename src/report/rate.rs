//! The outcomes of a case or an invariant as one, over its repetitions and over several reports:
//! the worst verdict, and the failure rate.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::json::CaseOutcome;
use crate::outcome::{Outcome, Verdict};
use crate::statistics::{CONFIDENCE, highest_rate};

/// The counts of the verdicts on a case or an invariant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Rate {
    /// The number of failures, including known ones.
    pub failed: usize,
    /// The number of known failures.
    pub known: usize,
    /// The number of passes and failures.
    pub decided: usize,
}

/// A case or an invariant, with all its repetitions.
#[derive(Clone, Debug)]
pub struct Tested<'a, T> {
    /// Its place among all cases and invariants, by their first outcomes.
    pub place: usize,
    pub first: &'a T,
    /// The first of its outcomes with the worst of its verdicts.
    pub worst: &'a T,
    pub rate: Rate,
}

/// An outcome of a run, or of its JSON report.
pub trait Judged {
    fn id(&self) -> &str;
    fn verdict(&self) -> Verdict;
}

impl Judged for Outcome {
    fn id(&self) -> &str {
        &self.id
    }

    fn verdict(&self) -> Verdict {
        self.verdict
    }
}

impl Judged for CaseOutcome {
    fn id(&self) -> &str {
        &self.id
    }

    fn verdict(&self) -> Verdict {
        self.verdict
    }
}

/// The tested cases and invariants by id.
pub fn by_id<'a, T: Judged>(
    outcomes: impl IntoIterator<Item = &'a T>,
) -> BTreeMap<&'a str, Tested<'a, T>> {
    let mut all = BTreeMap::<&str, Tested<'a, T>>::new();
    for outcome in outcomes {
        let place = all.len();
        let tested = all.entry(outcome.id()).or_insert_with(|| Tested {
            place,
            first: outcome,
            worst: outcome,
            rate: Rate::default(),
        });
        tested.rate.add(outcome.verdict(), 1);
        if badness(outcome.verdict()) > badness(tested.worst.verdict()) {
            tested.worst = outcome;
        }
    }
    all
}

/// The tested cases and invariants in the order of their first outcomes.
pub(super) fn in_order<'a, T: Judged>(
    outcomes: impl IntoIterator<Item = &'a T>,
) -> Vec<Tested<'a, T>> {
    let mut all: Vec<_> = by_id(outcomes).into_values().collect();
    all.sort_by_key(|tested| tested.place);
    all
}

/// The weight of a verdict among repetitions: the highest one counts.
pub(super) fn badness(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Fail => 6,
        Verdict::Known => 5,
        Verdict::Error => 4,
        Verdict::Inconclusive => 3,
        Verdict::Skip => 2,
        Verdict::UnexpectedPass => 1,
        Verdict::Pass => 0,
    }
}

impl Rate {
    pub fn of(verdicts: impl IntoIterator<Item = Verdict>) -> Self {
        let mut rate = Self::default();
        verdicts
            .into_iter()
            .for_each(|verdict| rate.add(verdict, 1));
        rate
    }

    /// Adds a number of equal verdicts.
    pub(super) fn add(&mut self, verdict: Verdict, count: usize) {
        self.decided += count * usize::from(verdict.has_passed() || verdict.has_failed());
        self.failed += count * usize::from(verdict.has_failed());
        self.known += count * usize::from(verdict == Verdict::Known);
    }

    /// The highest rate that is compatible with these counts, known failures included, at
    /// [`CONFIDENCE`].
    pub fn highest(self) -> f64 {
        highest_rate(self.failed, self.decided, CONFIDENCE)
    }

    /// Whether two rates are equal, for any numbers of repetitions.
    pub fn is_as_high_as(self, other: Self) -> bool {
        self.failed * other.decided == other.failed * self.decided
    }

    /// Whether there is more than one verdict, so that the rate is informative.
    pub fn is_of_several(self) -> bool {
        self.decided > 1
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.failed, self.decided)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_decided_does_not_count() {
        let rate = Rate::of(Verdict::ALL);
        let expected = Rate {
            failed: 2,
            known: 1,
            decided: 4,
        };
        assert_eq!(rate, expected);
        assert_eq!(rate.to_string(), "2 of 4");
        assert!(!Rate::of([Verdict::Pass, Verdict::Skip]).is_of_several());
    }
}
