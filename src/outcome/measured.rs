//! Measurements of a runtime by a run, besides the verdicts.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Capabilities of a runtime as observed by the run: true, false, or absent if the run did not
/// observe them. No extra calls are made for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Capabilities {
    /// The runtime sends events. Unknown if none arrived and no case needed to know.
    pub events: Option<bool>,
    /// Each subscriber gets every event. Checked only if a case needs to know.
    pub broadcast: Option<bool>,
    /// A new subscriber receives earlier events. Observed if events
    /// occurred without any subscriber.
    pub replay: Option<bool>,
    /// Sandboxes have events of their own, besides those of their containers.
    pub sandbox_events: Option<bool>,
    /// `PodSandboxStatus` has a timestamp, by which a kubelet with `EventedPLEG` orders it.
    pub sandbox_status_timestamp: Option<bool>,
    /// A stop sends the container's stop signal, whether or not `ContainerStatus`
    /// reports it. Checked only if a case needs to know.
    pub stop_signal: Option<bool>,
    /// Lists can be streamed (KEP-5825). Checked only if a case needs to know.
    pub streamed_lists: Option<bool>,
    /// The runtime has several runtime handlers, by name. Checked only if a case needs to know.
    pub handlers: Option<bool>,
    /// Sandboxes can have their own network. Checked only if a case needs to know.
    pub network: Option<bool>,
}

/// A time limit that a run watches.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// From the return of a call to the arrival of the event that it causes.
    EventAfterCall,
    /// From an event's `created_at` to its arrival.
    EventLag,
    /// The duration of a call, without the grace period of a stop.
    Call,
    /// The median time from `created_at` to arrival of the events of a `latency` check.
    LatencyMedian,
    /// The 99th percentile of the same time.
    LatencyP99,
    /// From the beginning or the end of a call to an event, as a `timing` check bounds it.
    Timing,
    /// From the request for a stream to the headers of the response, as `headers-within` bounds it.
    Headers,
    /// The duration of an `await` step with a time of its own.
    Await,
    /// The duration of an `await-end` step.
    AwaitEnd,
}

/// A measured time that has a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    pub limit: Limit,
    /// The limit, multiplied by `--timeout-scale`.
    pub bound: Duration,
    pub took: Duration,
}

/// All measured times of a case, for one limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Times {
    pub longest: Latency,
    pub spread: Spread,
}

impl Times {
    pub fn of(latencies: impl IntoIterator<Item = Latency>) -> Vec<Self> {
        let mut all = BTreeMap::<(Limit, Duration), Self>::new();
        for latency in latencies {
            let of_limit = all.entry((latency.limit, latency.bound));
            let times = of_limit.or_insert_with(|| Self {
                longest: latency,
                spread: Spread::default(),
            });
            times.longest.took = times.longest.took.max(latency.took);
            times.spread.add(latency.took);
        }
        all.into_values().collect()
    }
}

/// The measured times of a run, for one limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worst {
    /// The longest time, and its limit.
    pub latency: Latency,
    pub spread: Spread,
    /// The id of the case with the longest time.
    pub case: Arc<str>,
}

/// The largest message of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "LargestEvent")]
pub struct Largest {
    /// Its size.
    pub bytes: u32,
    /// The id of the first case with this event.
    pub case: Arc<str>,
}

/// A class has this binary logarithm of equal parts between two powers of two: it is at most 1/64
/// wide.
const PARTS_LOG2: u32 = 6;

/// Times, counted in classes. A quantile is at most 1/64 longer than the exact time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spread(BTreeMap<u32, usize>);

impl Worst {
    /// A percentile of the times; `None` without times.
    pub fn percentile(&self, percent: usize) -> Option<Duration> {
        let found = self.spread.percentile(percent)?;
        // A class of times is wider than its longest time.
        Some(found.min(self.latency.took))
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

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
