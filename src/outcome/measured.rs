//! Measurements of a runtime by a run, besides the verdicts.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Spread;

/// Capabilities of a runtime as observed by the run: true, false, or absent where the run did not
/// observe them. No calls are made only to find them out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Capabilities {
    /// There are events at all. Unknown where none came and no case needed to know.
    pub events: Option<bool>,
    /// Of several subscribers each gets every event. Only looked at where a case needs to know.
    pub broadcast: Option<bool>,
    /// A new subscriber receives events that were sent before it subscribed. Observed where events
    /// occurred without any subscriber.
    pub replay: Option<bool>,
    /// Sandboxes have events of their own, besides those of their containers.
    pub sandbox_events: Option<bool>,
    /// `PodSandboxStatus` says when it was read, by which a kubelet with `EventedPLEG` orders it.
    pub sandbox_status_timestamp: Option<bool>,
    /// A stop sends the stop signal that a container was given, whether or not `ContainerStatus`
    /// reports it. Only looked at where a case needs to know.
    pub stop_signal: Option<bool>,
    /// Lists can be had as streams (KEP-5825). Only looked at where a case needs to know.
    pub streamed_lists: Option<bool>,
    /// It has several runtime handlers, by name. Only looked at where a case needs to know.
    pub handlers: Option<bool>,
    /// Sandboxes can have a network of their own. Only looked at where a case needs to know.
    pub network: Option<bool>,
}

/// A bound on time that a run watches.
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
    /// How long an `await` step with a time of its own waits for an event.
    Await,
    /// How long an `await-end` step waits for the end of a subscription.
    AwaitEnd,
}

/// How long something took for which there is a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// The kind of limit.
    pub limit: Limit,
    /// The limit, multiplied by `--timeout-scale`.
    pub bound: Duration,
    pub took: Duration,
}

/// All that took its time in a case, for one limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Times {
    pub longest: Latency,
    pub spread: Spread,
}

impl Times {
    /// The times of each limit.
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

/// How long a run has seen something take for which there is a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worst {
    /// What took longest, and how long it might have.
    pub latency: Latency,
    /// How long it took each time.
    pub spread: Spread,
    /// The id of the case in which it took longest.
    pub case: Arc<str>,
}

/// The largest message of an event that a run has seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Largest {
    /// How large it was.
    pub bytes: u32,
    /// The id of the case that saw it first.
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
