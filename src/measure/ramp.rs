//! The increase of the rate of changes, and the criterion of lag.

use std::time::Duration;

use crate::limits;

/// The number of parallel changes in each step: twice that of the previous one, and finally one in
/// each pod.
pub(super) fn steps(pods: usize) -> impl Iterator<Item = usize> {
    let doubled = move |parallel: &usize| match *parallel {
        all if all == pods => None,
        parallel => Some((parallel * 2).min(pods)),
    };
    std::iter::successors((pods > 0).then_some(1), doubled)
}

/// Whether events lag: some are missing, or their median latency is more than twice that of
/// sequential changes, and exceeds the delay of the host's scheduler.
pub(super) fn lags(alone: Option<Duration>, now: Option<Duration>, missing: usize) -> bool {
    let doubled = |alone: Duration, now| now > alone.max(limits::LAG_FLOOR) * 2;
    match (alone, now) {
        (Some(alone), Some(now)) => missing > 0 || doubled(alone, now),
        // Events that came before come no more.
        (Some(_), None) => true,
        (None, _) => false,
    }
}

/// Whether a step cut short by the time limit is representative.
pub(super) fn is_representative(changes: usize, wanted: usize) -> bool {
    changes * 2 >= wanted
}

/// Create, start, exit and remove of the containers as changes per second; `None` if no time has
/// passed.
pub(super) fn rate(containers: usize, took: Duration) -> Option<f64> {
    const CHANGES_OF_EACH: f64 = 4.0;
    let containers = u32::try_from(containers).unwrap_or(u32::MAX);
    let seconds = took.as_secs_f64();
    (seconds > 0.0).then(|| CHANGES_OF_EACH * f64::from(containers) / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_doubled_until_each_pod_changes() {
        let of = |pods| steps(pods).collect::<Vec<_>>();
        assert_eq!(of(10), [1, 2, 4, 8, 10]);
        assert_eq!(of(8), [1, 2, 4, 8]);
        assert_eq!(of(1), [1]);
        assert!(of(0).is_empty());
    }

    #[test]
    fn a_doubled_median_is_a_lag_unless_it_is_the_schedulers() {
        let us = |micros| Some(Duration::from_micros(micros));
        assert!(!lags(us(3_000), us(6_000), 0));
        assert!(lags(us(3_000), us(6_001), 0));
        assert!(!lags(us(100), us(2_000), 0));
        assert!(lags(us(100), us(2_001), 0));
        assert!(lags(us(100), us(100), 1));
        assert!(lags(us(100), None, 9));
        assert!(!lags(None, us(100), 0));
    }

    #[test]
    fn half_a_step_shows_something() {
        assert!(is_representative(50, 100));
        assert!(!is_representative(49, 100));
    }

    #[test]
    fn a_container_is_four_changes() {
        let found = rate(30, Duration::from_secs(10)).unwrap();
        assert!((found - 12.0).abs() < 1e-9, "{found}");
        assert_eq!(rate(30, Duration::ZERO), None);
    }
}
