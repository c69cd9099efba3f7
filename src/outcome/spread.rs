//! A distribution of times, in little memory.

use std::collections::BTreeMap;
use std::time::Duration;

/// A class has this binary logarithm of equal parts between two powers of two: it is at most 1/64
/// wide.
const PARTS_LOG2: u32 = 6;

/// Times, counted in classes. A quantile is at most 1/64 longer than the exact time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spread(BTreeMap<u32, usize>);

impl Spread {
    pub fn add(&mut self, took: Duration) {
        *self.0.entry(class(took)).or_default() += 1;
    }

    pub fn merge(&mut self, other: &Self) {
        for (class, count) in &other.0 {
            *self.0.entry(*class).or_default() += count;
        }
    }

    pub fn count(&self) -> usize {
        self.0.values().sum()
    }

    /// The longest time of each class and its count, in order.
    pub fn classes(&self) -> impl Iterator<Item = (Duration, usize)> {
        let classes = self.0.iter();
        classes.map(|(class, count)| (longest_of(*class), *count))
    }

    /// A percentile; `None` without times.
    pub fn percentile(&self, percent: usize) -> Option<Duration> {
        let rank = (self.count() * percent).div_ceil(100).max(1);
        let mut below = 0;
        let found = self.0.iter().find(|(_, count)| {
            below += **count;
            below >= rank
        });
        found.map(|(class, _)| longest_of(*class))
    }
}

/// The class of a time in microseconds: the power of two below it, and the part above that.
fn class(took: Duration) -> u32 {
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    let shift = shift(micros);
    let part = u32::try_from(micros >> shift).expect("it has less than 32 bits");
    (shift << PARTS_LOG2) + part
}

/// The number of low bits below the resolution of a class.
fn shift(micros: u64) -> u32 {
    (u64::BITS - micros.leading_zeros()).saturating_sub(PARTS_LOG2 + 1)
}

/// The longest time of a class.
fn longest_of(class: u32) -> Duration {
    let shift = (class >> PARTS_LOG2).saturating_sub(1);
    let part = u64::from(class - (shift << PARTS_LOG2));
    Duration::from_micros(((part + 1) << shift).wrapping_sub(1))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{ProptestConfig, prop_assert, proptest};

    use super::*;

    fn of(micros: &[u64]) -> Spread {
        let mut spread = Spread::default();
        let times = micros.iter().copied().map(Duration::from_micros);
        times.for_each(|time| spread.add(time));
        spread
    }

    #[test]
    fn small_times_are_exact() {
        let hundred: Vec<u64> = (1..=100).collect();
        let spread = of(&hundred);
        assert_eq!(spread.count(), 100);
        assert_eq!(spread.percentile(50), Some(Duration::from_micros(50)));
        assert_eq!(spread.percentile(99), Some(Duration::from_micros(99)));
        assert_eq!(spread.percentile(100), Some(Duration::from_micros(100)));
        assert_eq!(of(&[0]).percentile(1), Some(Duration::ZERO));
        assert_eq!(Spread::default().percentile(50), None);
    }

    #[test]
    fn merged_spreads_are_one() {
        let mut one = of(&[3, 5_000_000]);
        one.merge(&of(&[7, 5_000_000]));
        assert_eq!(one, of(&[3, 7, 5_000_000, 5_000_000]));
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn a_percentile_is_never_shorter_and_hardly_longer(
            mut micros in vec(0..u64::MAX, 1..50),
            percent in 1_usize..=100,
        ) {
            let found = of(&micros).percentile(percent).expect("there are times").as_micros();
            micros.sort_unstable();
            let exact = u128::from(micros[(micros.len() * percent).div_ceil(100) - 1]);
            prop_assert!(found >= exact, "{found} {exact}");
            prop_assert!(found <= exact + exact / 64, "{found} {exact}");
        }
    }
}
