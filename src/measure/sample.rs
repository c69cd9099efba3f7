//! The delays of some changes, and the number of missed ones.

use std::time::Duration;

use super::measurement::Times;
use crate::outcome::Spread;

/// The figures of some changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sample {
    /// The number of ended containers.
    pub(super) changes: usize,
    /// The number of observations missing at the timeout.
    pub(super) missing: usize,
    delays: Spread,
}

impl Sample {
    /// Adds one change, with the number of watchers and the delays of those that learned of it.
    pub(super) fn add(&mut self, delays: &[Duration], watchers: usize) {
        self.changes += 1;
        self.missing += watchers.saturating_sub(delays.len());
        for delay in delays {
            self.delays.add(*delay);
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.changes += other.changes;
        self.missing += other.missing;
        self.delays.merge(&other.delays);
    }

    /// The median; `None` without delays.
    pub(super) fn median(&self) -> Option<Duration> {
        self.delays.percentile(50)
    }

    /// The quantiles of the delays; `None` without delays.
    pub(super) fn times(&self) -> Option<Times> {
        Some(Times {
            samples: self.delays.count(),
            median_ns: nanos(self.median()?),
            p99_ns: nanos(self.delays.percentile(99)?),
            worst_ns: nanos(self.delays.percentile(100)?),
        })
    }
}

/// Nanoseconds in 64 bits: up to 584 years.
pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_watcher_that_did_not_hear_is_counted() {
        let ms = Duration::from_millis;
        let mut sample = Sample::default();
        sample.add(&[ms(2), ms(4)], 2);
        let mut other = Sample::default();
        other.add(&[ms(6)], 2);
        other.add(&[], 2);
        sample.merge(&other);
        assert_eq!((sample.changes, sample.missing), (3, 3));
        let times = sample.times().unwrap();
        assert_eq!(times.samples, 3);
        // A class of `Spread` is at most 1/64 wide.
        assert!(
            (4_000_000..4_100_000).contains(&times.median_ns),
            "{times:?}"
        );
        assert!(
            (6_000_000..6_100_000).contains(&times.worst_ns),
            "{times:?}"
        );
        assert_eq!(Sample::default().times(), None);
    }
}
