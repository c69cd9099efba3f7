//! Statistical tests: tails and bounds of the binomial and the hypergeometric distribution.
//!
//! The sums are exact. They need no table of a distribution and no iteration but bisection, so that
//! a crate for statistics would add more code than it saves. Independent of cases and reports.

/// The probability of at least `some` successes in `tries` trials: the upper tail of the binomial
/// distribution.
pub fn at_least(some: usize, tries: usize, probability: f64) -> f64 {
    let odds = (probability / (1.0 - probability)).ln();
    // The logarithm of the probability that just `count` do; it may be too small for a number.
    let mut exactly = number(tries) * (1.0 - probability).ln();
    let mut fewer = 0.0;
    for count in 0..some.min(tries + 1) {
        fewer += exactly.exp();
        exactly += (number(tries - count) / number(count + 1)).ln() + odds;
    }
    1.0 - fewer
}

/// The confidence of the upper bound of a rate.
pub const CONFIDENCE: f64 = 0.95;

/// The highest rate that is compatible with this number of failures: the upper end of the one-sided
/// interval of Clopper and Pearson. With none of `tries` it is some 3
/// `tries` at 95%.
pub fn highest_rate(failed: usize, tries: usize, confidence: f64) -> f64 {
    /// The number of bisections after which an interval is below the precision of `f64`.
    const STEPS: usize = 60;
    if failed >= tries {
        return 1.0;
    }
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..STEPS {
        let middle = f64::midpoint(low, high);
        let as_few = 1.0 - at_least(failed + 1, tries, middle);
        if as_few > 1.0 - confidence {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// A negligible probability.
pub const IMPOSSIBLE: f64 = 1e-30;

/// Failures in two series of tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series {
    /// Failures and tries of the first.
    pub before: (usize, usize),
    /// Failures and tries of the second.
    pub after: (usize, usize),
}

impl Series {
    /// The probability of at least as many failures in the second series if both have the same
    /// rate: Fisher's exact test, one-sided.
    pub fn p_value(&self) -> f64 {
        self.tail(self.after.0)
    }

    /// The least p-value of a series with the same total of failures.
    pub fn least_p_value(&self) -> f64 {
        let failed = self.before.0 + self.after.0;
        self.tail(failed.min(self.after.1))
    }

    /// The upper tail of the distribution: the second series has at least this number of failures.
    fn tail(&self, at_least: usize) -> f64 {
        let (fewest, probabilities) = self.distribution();
        probabilities[at_least - fewest..].iter().sum()
    }

    /// The probability of each number of failures in the second series, from the minimum on: the
    /// hypergeometric distribution.
    fn distribution(&self) -> (usize, Vec<f64>) {
        let failed = self.before.0 + self.after.0;
        let (before, after) = (self.before.1, self.after.1);
        let fewest = failed.saturating_sub(before);
        // Logarithms, up to a common summand.
        let mut weights = Vec::new();
        let mut weight = 0.0;
        for count in fewest..=failed.min(after) {
            weights.push(weight);
            let more = number(after - count) * number(failed - count);
            let fewer = number(count + 1) * number(before + count + 1 - failed);
            weight += (more / fewer).ln();
        }
        let highest = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        for weight in &mut weights {
            *weight = (*weight - highest).exp();
        }
        let sum: f64 = weights.iter().sum();
        (fewest, weights.iter().map(|weight| weight / sum).collect())
    }
}

/// The probability of at least as many failures in all second series together if each has the rate
/// of its first: the exact test of Mantel and Haenszel, one-sided. It permits different lengths of
/// series.
pub fn p_value_of_all(series: &[Series]) -> f64 {
    let (mut fewest, mut all) = (0, vec![1.0]);
    for one in series {
        let (its_fewest, probabilities) = one.distribution();
        let (its_fewest, probabilities) = possible(its_fewest, probabilities);
        let mut sums = vec![0.0; all.len() + probabilities.len() - 1];
        for (place, probability) in all.iter().enumerate() {
            for (more, its_probability) in probabilities.iter().enumerate() {
                sums[place + more] += probability * its_probability;
            }
        }
        (fewest, all) = possible(fewest + its_fewest, sums);
    }
    let failed: usize = series.iter().map(|one| one.after.0).sum();
    let tail = all.get(failed.saturating_sub(fewest)..);
    tail.unwrap_or_default().iter().sum()
}

/// A distribution without its negligible ends, so that its length grows with the root of the number
/// of tries.
fn possible(fewest: usize, mut probabilities: Vec<f64>) -> (usize, Vec<f64>) {
    let is_impossible = |probability: &f64| *probability < IMPOSSIBLE;
    let from = probabilities
        .iter()
        .take_while(|it| is_impossible(it))
        .count();
    probabilities.drain(..from);
    while probabilities.last().is_some_and(is_impossible) {
        probabilities.pop();
    }
    (fewest + from, probabilities)
}

/// Whether a p-value is at most a level, with a tolerance for rounding.
pub fn is_significant(p_value: f64, level: f64) -> bool {
    p_value <= level * (1.0 + 1e-9)
}

/// The significance level for each of several series, and for all of them together, so that at most
/// `alpha` of all comparisons report an unchanged runtime: Bonferroni's correction as modified by
/// Tarone, which does not count series with too few failures to be significant.
pub fn corrected(alpha: f64, series: &[Series]) -> f64 {
    let least: Vec<f64> = series.iter().map(Series::least_p_value).collect();
    let testable = |level: f64| 1 + least.iter().filter(|p| is_significant(**p, level)).count();
    let levels = (1..=series.len() + 1).map(|count| (count, alpha / number(count)));
    let mut enough = levels.filter(|(count, level)| testable(*level) <= *count);
    enough.next().map_or(alpha, |(_, level)| level)
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// A sample: its time, and its value.
pub type Point = (f64, f64);

/// A line through samples.
#[derive(Clone, Copy, Debug)]
pub struct Fit {
    /// The growth of the value per unit of time.
    pub slope: f64,
    /// The standard error of the slope.
    pub error: f64,
}

/// The least-squares slope within lives, each of which begins at a value of its own. The error is
/// widened by the correlation of consecutive residuals. `None` for too few samples.
pub fn slope(lives: &[&[Point]]) -> Option<Fit> {
    const HIGHEST_CORRELATION: f64 = 0.99;
    let lives: Vec<Vec<Point>> = lives.iter().map(|life| centred(life)).collect();
    let degrees = lives
        .iter()
        .map(|life| life.len().saturating_sub(1))
        .sum::<usize>();
    let all = || lives.iter().flatten();
    let spread: f64 = all().map(|(x, _)| x * x).sum();
    if degrees < 3 || spread <= 0.0 {
        return None;
    }
    let slope = all().map(|(x, y)| x * y).sum::<f64>() / spread;
    let rest = |(x, y): &Point| y - slope * x;
    let squares: f64 = all().map(|point| rest(point).powi(2)).sum();
    let pairs = lives.iter().flat_map(|life| life.windows(2));
    let neighbours: f64 = pairs.map(|pair| rest(&pair[0]) * rest(&pair[1])).sum();
    let correlation = if squares > 0.0 {
        (neighbours / squares).clamp(0.0, HIGHEST_CORRELATION)
    } else {
        0.0
    };
    let variance = squares / number(degrees - 1) / spread;
    let error = (variance * (1.0 + correlation) / (1.0 - correlation)).sqrt();
    Some(Fit { slope, error })
}

/// The samples of a life, relative to their means.
fn centred(life: &[Point]) -> Vec<Point> {
    let count = number(life.len());
    let mean_x = life.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = life.iter().map(|(_, y)| y).sum::<f64>() / count;
    life.iter().map(|(x, y)| (x - mean_x, y - mean_y)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{ProptestConfig, Strategy, prop_assert, proptest};

    use super::*;

    #[track_caller]
    fn close(found: f64, expected: f64) {
        assert!(
            (found - expected).abs() < 1e-6 * expected.max(1e-3),
            "{found}, not {expected}"
        );
    }

    #[test]
    fn the_tail_of_the_binomial_distribution_is_right() {
        for (some, tries, probability, expect) in [
            (0, 10, 0.5, 1.0),
            (1, 10, 0.5, 1.0 - 1.0 / 1024.0),
            (10, 10, 0.5, 1.0 / 1024.0),
            (11, 10, 0.5, 0.0),
            (2, 3, 0.25, 10.0 / 64.0),
            (2, 3, 0.1, 0.028),
        ] {
            let found = at_least(some, tries, probability);
            assert!((found - expect).abs() < 1e-9, "{some} of {tries}: {found}");
        }
    }

    /// From R's `binom.test`: 682 of 925 plants is the example of its manual page, whose two-sided
    /// interval of 95% ends at the one-sided bound of 97.5%.
    #[test]
    fn the_bound_of_a_rate_is_that_of_clopper_and_pearson() {
        close(highest_rate(682, 925, 0.975), 0.765_406_6);
        close(highest_rate(0, 10, 0.975), 0.308_497_1);
        close(highest_rate(0, 59, 0.95), 1.0 - 0.05_f64.powf(1.0 / 59.0));
        close(highest_rate(7, 7, 0.95), 1.0);
        assert!((highest_rate(0, 1_000, 0.95) - 0.003).abs() < 1e-5);
    }

    /// Fisher's tea-tasting lady, and the convicted twins of R's `fisher.test`.
    #[test]
    fn the_p_value_is_that_of_fisher() {
        let series = |before, after| Series { before, after };
        close(series((1, 4), (3, 4)).p_value(), 17.0 / 70.0);
        close(series((0, 4), (4, 4)).p_value(), 1.0 / 70.0);
        close(series((2, 17), (10, 13)).p_value(), 4.651_809e-4);
        close(series((0, 9), (0, 5)).p_value(), 1.0);
        close(series((0, 0), (3, 5)).p_value(), 1.0);
        close(series((1, 4), (3, 4)).least_p_value(), 1.0 / 70.0);
    }

    #[test]
    fn all_series_together_show_what_none_does_alone() {
        let series = |before, after| Series { before, after };
        let one = series((1, 4), (3, 4));
        close(p_value_of_all(&[one]), one.p_value());
        close(p_value_of_all(&[]), 1.0);
        // At least 6 of 8 in two series of 17/70, 16/70 + 1/70 and so on.
        let at = [1.0, 16.0, 36.0, 16.0, 1.0].map(|ways| ways / 70.0);
        let both = at[4] * (at[2] + at[3] + at[4]) + at[3] * (at[3] + at[4]) + at[2] * at[4];
        close(p_value_of_all(&[one, one]), both);
        let broken = series((0, 3), (3, 3));
        assert!(broken.p_value() > 0.049 && p_value_of_all(&[broken; 42]) < 1e-50);
        // One case repeated more often than the others is no change.
        let often = [series((0, 10), (0, 10)), series((5, 10), (50, 100))];
        assert!(p_value_of_all(&often) > 0.5);
        let long = series((50_000, 100_000), (50_000, 100_000));
        assert!((p_value_of_all(&[long; 3]) - 0.5).abs() < 0.01);
    }

    #[test]
    fn series_that_can_show_nothing_cost_no_power() {
        let quiet = Series {
            before: (0, 20),
            after: (0, 20),
        };
        let loud = Series {
            before: (0, 20),
            after: (9, 20),
        };
        close(corrected(0.05, &[]), 0.05);
        close(corrected(0.05, &[quiet; 100]), 0.05);
        close(
            corrected(0.05, &[&[quiet; 100][..], &[loud]].concat()),
            0.025,
        );
        close(corrected(0.05, &[loud; 9]), 0.005);
    }

    fn series() -> impl Strategy<Value = Series> {
        let side = || (1_usize..80).prop_flat_map(|tries| (0..=tries, tries..=tries));
        (side(), side()).prop_map(|(before, after)| Series { before, after })
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn more_failures_are_never_less_conspicuous(series in series()) {
            let p = series.p_value();
            prop_assert!((0.0..=1.0 + 1e-9).contains(&p), "{p}");
            prop_assert!(series.least_p_value() <= p * (1.0 + 1e-9));
            if series.after.0 < series.after.1 {
                let after = (series.after.0 + 1, series.after.1);
                let more = Series { after, ..series };
                prop_assert!(more.p_value() <= p * (1.0 + 1e-9));
            }
        }

        #[test]
        fn equal_series_are_never_conspicuous(failed in 0_usize..50, passed in 0_usize..50) {
            let side = (failed, failed + passed);
            let series = Series { before: side, after: side };
            prop_assert!(series.p_value() > 0.5 - 1e-9);
        }

        #[test]
        fn a_bound_is_above_its_rate_and_falls_with_more_tries(
            failed in 0_usize..20, passed in 1_usize..100,
        ) {
            let tries = failed + passed;
            let bound = highest_rate(failed, tries, 0.95);
            prop_assert!(bound > number(failed) / number(tries) && bound <= 1.0);
            prop_assert!(highest_rate(failed, tries + 1, 0.95) < bound);
            // Just there as few failures have the probability that the confidence leaves.
            prop_assert!((1.0 - at_least(failed + 1, tries, bound) - 0.05).abs() < 1e-6);
        }
    }
}
