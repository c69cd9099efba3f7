//! The figures of a measurement, as `--json` writes them. Times are in nanoseconds.

use serde::{Deserialize, Serialize};

use crate::history::Host;

/// The version of the format. It changes with a field that is renamed, removed or means something
/// else.
pub const VERSION: u32 = 1;

/// All that was measured. Figures that could not be measured are absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// [`VERSION`].
    pub version: u32,
    pub suite: String,
    pub runtime: String,
    pub runtime_version: String,
    pub endpoint: String,
    /// The node; absent for the model.
    pub host: Option<Host>,
    /// Whether time was simulated: then only delays mean anything, those of the model.
    pub simulated: bool,
    /// How many pods of others were on the node.
    pub foreign_pods: usize,
    /// The cells of `measure events`.
    pub events: Vec<EventsCell>,
    /// The cells of `measure pleg`.
    pub pleg: Vec<PlegCell>,
    /// What could not be measured, and why.
    pub notes: Vec<String>,
    /// Why cells are missing, and what was left on the node; empty if all went well.
    pub faults: Vec<String>,
}

/// Delays in figures: a quantile is at most 1/64 too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// How many delays were measured.
    pub samples: usize,
    pub median_ns: u64,
    /// What 99 % do not exceed.
    pub p99_ns: u64,
    /// The longest.
    pub worst_ns: u64,
}

/// Events with one number of pods and of streams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventsCell {
    /// How many pods of the suite ran, each with one container.
    pub pods: usize,
    /// How many event streams were open.
    pub subscribers: usize,
    /// The latencies of STOPPED while containers were killed one after the other, on all streams.
    pub latency: Option<Times>,
    /// How many STOPPED events did not arrive within the bound then.
    pub missing: usize,
    /// The highest rate of changes per second at which events did not lag.
    pub rate_without_lag: Option<f64>,
    /// The rate at which they did; absent if they never lagged.
    pub rate_with_lag: Option<f64>,
    /// Each rate that was tried.
    pub steps: Vec<RampStep>,
}

/// One rate of changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RampStep {
    /// How many containers changed at once.
    pub parallel: usize,
    pub killed: usize,
    pub took_ns: u64,
    /// Creates, starts, exits and removes per second; absent in simulated time.
    pub changes_per_second: Option<f64>,
    /// The latencies of STOPPED.
    pub latency: Option<Times>,
    /// How many STOPPED events did not arrive within the bound.
    pub missing: usize,
    /// Whether the median latency had doubled.
    pub lags: bool,
}

/// What happens while a node is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    Idle,
    /// Nearly twice a second a container is killed and replaced.
    Busy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Watching {
    /// By a relist every second, as the Generic PLEG.
    Relists,
    /// By events, with a relist every five minutes, as the Evented PLEG.
    EventsAndRelists,
    /// By events alone.
    Events,
}

/// One way of watching one number of pods.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlegCell {
    /// How many pods of the suite ran.
    pub pods: usize,
    pub containers: usize,
    /// How often each wrote a line to its log; absent if never.
    pub write_every_ns: Option<u64>,
    pub load: Load,
    pub watching: Watching,
    pub window_ns: u64,
    pub relists: u64,
    /// Those that failed.
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
    /// How many containers were killed.
    pub changes: usize,
    /// How long after its end the watcher knew of each.
    pub delay: Option<Times>,
    /// How many it did not know of within the bound.
    pub lost: usize,
}

impl Load {
    /// Both, in the order of the table.
    pub const ALL: [Self; 2] = [Self::Idle, Self::Busy];

    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Busy => "busy",
        }
    }
}

impl Watching {
    /// All, in the order of the table.
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
    /// The cell of these steps, the first of which has one change at a time.
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
}
