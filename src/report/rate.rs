//! The failure rate of a case or an invariant, over its repetitions and over several reports.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::document::Document;
use crate::outcome::Verdict;

/// The counts of the verdicts on a case or an invariant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rate {
    /// The number of failures, including known ones.
    pub failed: usize,
    /// The number of known failures.
    pub known: usize,
    /// The number of passes and failures.
    pub decided: usize,
}

impl Rate {
    pub fn of(verdicts: impl IntoIterator<Item = Verdict>) -> Self {
        let mut rate = Self::default();
        verdicts.into_iter().for_each(|verdict| rate.add(verdict));
        rate
    }

    pub fn add(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Pass | Verdict::UnexpectedPass => self.decided += 1,
            Verdict::Fail | Verdict::Known => {
                self.decided += 1;
                self.failed += 1;
                self.known += usize::from(verdict == Verdict::Known);
            }
            Verdict::Error | Verdict::Skip | Verdict::Inconclusive => {}
        }
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

impl Document {
    /// The rate of each case and invariant, by its id.
    pub fn rates(&self) -> BTreeMap<&str, Rate> {
        let mut rates = BTreeMap::<&str, Rate>::new();
        for outcome in &self.outcomes {
            rates.entry(&outcome.id).or_default().add(outcome.verdict);
        }
        rates
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
