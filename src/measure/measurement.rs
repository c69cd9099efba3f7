//! The figures of a measurement, as `--json` writes them. Times are in nanoseconds.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::history::Host;
use crate::host;
use crate::outcome::Spread;
use crate::report::{nanos, rfc3339};
use crate::run::Surroundings;

/// The version of the format. It changes with a field that is renamed, removed or changes its
/// meaning.
pub const VERSION: u32 = 1;

/// All figures. Those that could not be measured are absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// [`VERSION`].
    pub version: u32,
    pub suite: String,
    pub runtime: String,
    pub runtime_version: String,
    pub endpoint: String,
    /// When it began, in UTC, as RFC 3339.
    #[serde(default)]
    pub began: String,
    /// The node; absent for the model.
    pub host: Option<Host>,
    /// Whether time was simulated: then only the model's delays are meaningful.
    pub simulated: bool,
    /// The number of foreign pods on the node.
    pub foreign_pods: usize,
    /// The cells of `measure events`.
    pub events: Vec<EventsCell>,
    /// The cells of `measure pleg`.
    pub pleg: Vec<PlegCell>,
    /// Figures that could not be measured, with the reasons.
    pub notes: Vec<String>,
    /// The reasons for missing cells, and leftovers on the node; empty on success.
    pub faults: Vec<String>,
}

/// Quantiles of delays: each is at most 1/64 too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    pub samples: usize,
    pub median_ns: u64,
    /// The 99th percentile.
    pub p99_ns: u64,
    /// The maximum.
    pub worst_ns: u64,
}

/// Figures for one number of pods and of streams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventsCell {
    /// The number of pods of the suite, each with one container.
    pub pods: usize,
    /// The number of open event streams.
    pub subscribers: usize,
    /// The latencies of STOPPED on all streams, while containers were killed sequentially.
    pub latency: Option<Times>,
    /// The number of STOPPED events that did not arrive within the timeout.
    pub missing: usize,
    /// The highest rate of changes per second at which events did not lag.
    pub rate_without_lag: Option<f64>,
    /// The rate at which they lagged; absent if they never did.
    pub rate_with_lag: Option<f64>,
    /// The rates that were tried.
    pub steps: Vec<RampStep>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RampStep {
    /// The number of parallel changes.
    pub parallel: usize,
    pub killed: usize,
    pub took_ns: u64,
    /// Creates, starts, exits and removes per second; absent in simulated time.
    pub changes_per_second: Option<f64>,
    pub latency: Option<Times>,
    /// The number of STOPPED events that did not arrive within the timeout.
    pub missing: usize,
    /// Whether the median latency had doubled.
    pub lags: bool,
}

/// The activity on the node during a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    Idle,
    /// A container is killed and replaced nearly twice a second.
    Busy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Watching {
    Relists,
    /// By events, with a relist every five minutes, as the Evented PLEG.
    EventsAndRelists,
    Events,
}

/// One way of watching, for one number of pods.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlegCell {
    /// The number of pods of the suite.
    pub pods: usize,
    pub containers: usize,
    /// The interval at which each container wrote a line to its log; absent if never.
    pub write_every_ns: Option<u64>,
    pub load: Load,
    pub watching: Watching,
    pub window_ns: u64,
    pub relists: u64,
    pub failed_relists: u64,
    /// The watcher's calls: lists and statuses.
    pub calls: u64,
    /// The bytes of their messages.
    pub call_bytes: u64,
    /// The events that it received.
    pub events: u64,
    /// The bytes of their messages.
    pub event_bytes: u64,
    /// The CPU time of the runtime's process, without shims and monitors.
    pub runtime_cpu_ns: Option<u64>,
    /// The CPU time of the suite's process, which also makes the changes.
    pub own_cpu_ns: Option<u64>,
    /// The number of killed containers.
    pub changes: usize,
    /// The time from the end of each until the watcher knew it.
    pub delay: Option<Times>,
    /// The number of ends that the watcher did not learn within the timeout.
    pub lost: usize,
}

impl Load {
    /// In the order of the table.
    pub const ALL: [Self; 2] = [Self::Idle, Self::Busy];

    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Busy => "busy",
        }
    }
}

impl Watching {
    /// In the order of the table.
    pub const ALL: [Self; 3] = [Self::Relists, Self::EventsAndRelists, Self::Events];

    pub fn name(self) -> &'static str {
        match self {
            Self::Relists => "relists",
            Self::EventsAndRelists => "events, relists",
            Self::Events => "events",
        }
    }
}

impl EventsCell {
    /// The cell of these steps, the first of which makes one change at a time.
    pub fn from_steps(pods: usize, subscribers: usize, steps: Vec<RampStep>) -> Self {
        let rates = |lags| {
            let of = steps.iter().filter(move |step| step.lags == lags);
            of.filter_map(|step| step.changes_per_second)
        };
        let first = steps.first();
        Self {
            pods,
            subscribers,
            latency: first.and_then(|step| step.latency),
            missing: first.map_or(0, |step| step.missing),
            rate_without_lag: rates(false).max_by(f64::total_cmp),
            rate_with_lag: rates(true).next(),
            steps,
        }
    }
}

/// Collects figures. Cheap to clone; all clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Results {
    measurement: Arc<Mutex<Option<Measurement>>>,
}

/// The figures of some changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sample {
    /// The number of ended containers.
    pub(super) changes: usize,
    /// The number of observations missing at the timeout.
    pub(super) missing: usize,
    delays: Spread,
}

impl Results {
    /// Records the facts about the node.
    pub(super) fn begin(&self, surroundings: &Surroundings) {
        let info = &surroundings.info;
        *self.lock() = Some(Measurement {
            version: VERSION,
            suite: info.suite.clone(),
            runtime: info.runtime.runtime_name.clone(),
            runtime_version: info.runtime.runtime_version.clone(),
            endpoint: info.endpoint.clone(),
            began: rfc3339(host::now()),
            host: info.host.clone(),
            simulated: surroundings.simulated,
            foreign_pods: surroundings.foreign_pods,
            events: Vec::new(),
            pleg: Vec::new(),
            notes: Vec::new(),
            faults: Vec::new(),
        });
    }

    pub(super) fn add_events(&self, cell: EventsCell) {
        self.with(|measurement| measurement.events.push(cell));
    }

    pub(super) fn add_pleg(&self, cell: PlegCell) {
        self.with(|measurement| measurement.pleg.push(cell));
    }

    /// Records a figure that cannot be measured.
    pub(super) fn note(&self, note: String) {
        self.with(|measurement| measurement.notes.push(note));
    }

    /// All figures; `None` if the measurement has not begun.
    pub(super) fn take(&self) -> Option<Measurement> {
        self.lock().take()
    }

    fn with(&self, change: impl FnOnce(&mut Measurement)) {
        if let Some(measurement) = &mut *self.lock() {
            change(measurement);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Measurement>> {
        let measurement = self.measurement.lock();
        measurement.unwrap_or_else(PoisonError::into_inner)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn step(changes_per_second: f64, lags: bool) -> RampStep {
        RampStep {
            parallel: 1,
            killed: 10,
            took_ns: 1,
            changes_per_second: Some(changes_per_second),
            latency: None,
            missing: 0,
            lags,
        }
    }

    #[test]
    fn the_highest_rate_without_a_lag_need_not_be_the_last() {
        let steps = vec![step(40.0, false), step(30.0, false), step(35.0, true)];
        let cell = EventsCell::from_steps(10, 2, steps);
        assert_eq!(cell.rate_without_lag, Some(40.0));
        assert_eq!(cell.rate_with_lag, Some(35.0));
        let never = EventsCell::from_steps(10, 2, vec![step(40.0, false)]);
        assert_eq!(never.rate_with_lag, None);
    }

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
