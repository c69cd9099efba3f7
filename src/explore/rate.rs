//! How often something is found, and how many runs it takes to see it.

/// Runs in which something was found, and all runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// It was found in so many runs,
    pub found: u32,
    pub runs: u32,
}

/// When a candidate counts as failing: so many findings in so many runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Threshold {
    pub(super) found: u32,
    pub(super) runs: u32,
}

/// The most runs of one candidate.
const MOST_RUNS: u32 = 50;

impl Rate {
    /// The probability, as the rule of succession has it.
    pub(super) fn probability(self) -> f64 {
        f64::from(self.found + 1) / f64::from(self.runs + 2)
    }

    /// The threshold for what is found as often as this: two findings in as many runs as should
    /// bring five. A candidate with the same rate passes it nearly always, one with a third of it
    /// every second time. What was always found has to come in one of two.
    pub(super) fn threshold(self) -> Threshold {
        if self.found == self.runs {
            return Threshold { found: 1, runs: 2 };
        }
        let runs = (5.0 / self.probability()).ceil().min(f64::from(MOST_RUNS));
        Threshold {
            found: 2,
            runs: whole(runs),
        }
    }

    /// How often a case is repeated to show it with a probability of 95 percent.
    pub(super) fn repetitions(self) -> u32 {
        if self.found == self.runs {
            return 1;
        }
        let missed = 1.0 - self.probability();
        whole((0.05_f64.ln() / missed.ln()).ceil().clamp(1.0, 100.0))
    }
}

impl Threshold {
    /// Of what happens in every run or in none, as on the model.
    pub(super) const SURE: Self = Self { found: 1, runs: 1 };
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} runs", self.found, self.runs)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is whole, positive and small"
)]
fn whole(number: f64) -> u32 {
    number as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_rarely_is_looked_for_in_more_runs() {
        let threshold = |found, runs| Rate { found, runs }.threshold().runs;
        assert_eq!(threshold(5, 5), 2);
        assert_eq!(threshold(4, 5), 7);
        assert_eq!(threshold(1, 5), 18);
        assert_eq!(threshold(1, 1_000), MOST_RUNS);
    }

    #[test]
    fn what_is_always_found_is_not_repeated() {
        let repetitions = |found, runs| Rate { found, runs }.repetitions();
        assert_eq!(repetitions(5, 5), 1);
        assert_eq!(repetitions(3, 5), 4);
        assert_eq!(repetitions(1, 20), 32);
    }
}
