//! Measurements of a runtime by a run, besides the verdicts.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Spread;

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

/// The largest message of an event in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Largest {
    pub bytes: u32,
    /// The id of the first case with this event.
    pub case: Arc<str>,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::EventAfterCall => "event-after-call",
            Self::EventLag => "event-lag",
            Self::Call => "call",
            Self::LatencyMedian => "latency-median",
            Self::LatencyP99 => "latency-p99",
            Self::Timing => "timing",
            Self::Headers => "headers",
            Self::Await => "await",
            Self::AwaitEnd => "await-end",
        })
    }
}
