//! The lags of events: the time from `created_at` to arrival.

use std::collections::VecDeque;

/// The number of lags kept for the quantiles; older ones are dropped.
const KEPT: usize = 100_000;

/// In nanoseconds.
#[derive(Debug, Default)]
pub(super) struct Lags {
    kept: VecDeque<i64>,
    max: Option<i64>,
}

impl Lags {
    pub(super) fn add(&mut self, lag_ns: i64) {
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(lag_ns);
        self.max = self.max.max(Some(lag_ns));
    }

    pub(super) fn percentile(&self, percent: usize) -> Option<i64> {
        let mut sorted: Vec<i64> = self.kept.iter().copied().collect();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100);
        sorted.get(rank.saturating_sub(1)).copied()
    }

    pub(super) fn max(&self) -> Option<i64> {
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_lags_that_occurred() {
        let mut lags = Lags::default();
        assert_eq!((lags.percentile(50), lags.max()), (None, None));
        (1..=100).rev().for_each(|lag| lags.add(lag));
        let summary = (lags.percentile(50), lags.percentile(95), lags.max());
        assert_eq!(summary, (Some(50), Some(95), Some(100)));
    }

    #[test]
    fn memory_is_bounded_and_the_maximum_is_kept() {
        let mut lags = Lags::default();
        lags.add(7);
        (0..KEPT).for_each(|_| lags.add(1));
        assert_eq!((lags.kept.len(), lags.percentile(100)), (KEPT, Some(1)));
        assert_eq!(lags.max(), Some(7));
    }
}
