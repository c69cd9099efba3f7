//! A kubelet's PLEG metrics, with the kubelet's names, types and buckets.
//!
//! [`Metrics`] is the set of metrics; [`Endpoint`] serves them to Prometheus over HTTP. This module
//! is independent of runtimes and reads no clock: durations are passed in.
//!
//! Names are those of kubernetes 1.36.2 (`pkg/kubelet/metrics/metrics.go`), even where they violate
//! Prometheus's conventions and `promtool check metrics` complains. Three of its counters lack the
//! suffix `_total`, which the `OpenMetrics` format requires. Therefore the text format 0.0.4 is
//! served, as by a kubelet. The suite's own metrics begin with `cri_event_conformance_`.

mod endpoint;

use std::fmt;
use std::sync::atomic::Ordering;
use std::time::Duration;

use prometheus_client::encoding::{
    EncodeLabelSet, EncodeLabelValue, EncodeMetric, LabelValueEncoder, MetricEncoder, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

pub use endpoint::{Endpoint, EndpointError};

/// `prometheus.DefBuckets` of the Go client, used by all PLEG histograms.
const DEFAULT_BUCKETS: [f64; 11] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// Defines the metrics: the type of each, its first value, its name and its help.
macro_rules! metrics {
    ($($field:ident: $type:ty = $first:expr, $name:literal, $help:literal;)+) => {
        /// All metrics. Clones are cheap and share the same values.
        #[derive(Clone, Debug)]
        pub struct Metrics {
            $($field: $type,)+
        }

        impl Default for Metrics {
            fn default() -> Self {
                Self { $($field: $first,)+ }
            }
        }

        impl Metrics {
            /// All metrics by name. Built for each scrape, since it only references the values.
            fn registry(&self) -> Registry {
                let mut all = Registry::default();
                $(all.register($name, $help, self.$field.clone());)+
                all
            }
        }
    };
}

metrics! {
    relist_duration: Histogram = histogram(),
        "kubelet_pleg_relist_duration_seconds", "Duration in seconds for relisting pods in PLEG";
    relist_interval: Histogram = histogram(),
        "kubelet_pleg_relist_interval_seconds", "Interval in seconds between relisting in PLEG";
    pod_relist_duration: Histogram = histogram(),
        "kubelet_pleg_pod_relist_duration_seconds",
        "Duration in seconds for relisting a single pod in PLEG";
    discarded: BareCounter = BareCounter::default(),
        "kubelet_pleg_discard_events", "The number of discard events in PLEG";
    last_seen: Gauge = Gauge::default(),
        "kubelet_pleg_last_seen_seconds", "Timestamp in seconds when PLEG was last seen active";
    connection_errors: BareCounter = BareCounter::default(),
        "kubelet_evented_pleg_connection_error_count",
        "The number of errors encountered during the establishment of streaming connection with \
         the CRI runtime";
    connection_successes: BareCounter = BareCounter::default(),
        "kubelet_evented_pleg_connection_success_count",
        "The number of times a streaming client was obtained to receive CRI Events";
    latency: Histogram = histogram(),
        "kubelet_evented_pleg_connection_latency_seconds",
        "The latency of streaming connection with the CRI runtime, measured in seconds";
    running_pods: Gauge = Gauge::default(),
        "kubelet_running_pods", "Number of pods that have a running pod sandbox";
    running_containers: Family<StateLabel, Gauge> = Family::default(),
        "kubelet_running_containers", "Number of containers currently running";
    missed: BareCounter = BareCounter::default(),
        "cri_event_conformance_missed_events_total",
        "Transitions that a relist has shown and no event has reported in time";
    disagreements: BareCounter = BareCounter::default(),
        "cri_event_conformance_disagreements_total",
        "Times that the caches of both PLEGs came to disagree about an idle pod";
}

fn histogram() -> Histogram {
    Histogram::new(DEFAULT_BUCKETS)
}

/// A counter without the suffix `_total`, which `OpenMetrics` would add and a kubelet lacks.
#[derive(Clone, Debug, Default)]
struct BareCounter(Counter);

/// The value of the label `container_state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RunningState(
    /// `created`, `running`, `exited` or `unknown`.
    pub &'static str,
);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabel {
    container_state: RunningState,
}

impl EncodeLabelValue for RunningState {
    fn encode(&self, encoder: &mut LabelValueEncoder) -> fmt::Result {
        EncodeLabelValue::encode(&self.0, encoder)
    }
}

impl Metrics {
    /// Records the duration of a relist, successful or not.
    pub fn relisted(&self, duration: Duration) {
        self.relist_duration.observe(duration.as_secs_f64());
    }

    /// Records the interval between the beginnings of the last successful relist and a new one.
    pub fn relist_began_after(&self, interval: Duration) {
        self.relist_interval.observe(interval.as_secs_f64());
    }

    /// Records the duration of an on-demand relist of one pod.
    pub fn pod_relisted(&self, duration: Duration) {
        self.pod_relist_duration.observe(duration.as_secs_f64());
    }

    /// Sets the total number of PLEG events discarded by a full channel.
    pub fn discarded(&self, all: u64) {
        self.discarded.raise_to(all);
    }

    /// Sets the time at which the PLEG was last active, in seconds since 1970.
    pub fn last_seen(&self, seconds: i64) {
        self.last_seen.set(seconds);
    }

    /// Sets the total numbers of streams that ended and that were opened.
    pub fn connections(&self, errors: u64, successes: u64) {
        self.connection_errors.raise_to(errors);
        self.connection_successes.raise_to(successes);
    }

    /// Records the latency of an event. It may be negative, since two clocks are involved.
    pub fn event_arrived(&self, lag_ns: i64) {
        #[expect(
            clippy::cast_precision_loss,
            reason = "a double distinguishes nanoseconds for three months"
        )]
        self.latency.observe(lag_ns as f64 / 1e9);
    }

    /// Sets the number of pods with a running sandbox.
    pub fn running_pods(&self, pods: i64) {
        self.running_pods.set(pods);
    }

    /// Sets the number of containers in a state.
    pub fn containers(&self, state: RunningState, containers: i64) {
        let label = StateLabel {
            container_state: state,
        };
        self.running_containers
            .get_or_create(&label)
            .set(containers);
    }

    /// Counts a transition that a relist has shown and no event reported.
    pub fn missed(&self) {
        self.missed.increment();
    }

    /// Counts a disagreement of both PLEGs' caches about a pod.
    pub fn disagreed(&self) {
        self.disagreements.increment();
    }

    /// The metrics in Prometheus text format 0.0.4.
    pub fn text(&self) -> String {
        let mut text = String::new();
        text::encode_registry(&mut text, &self.registry()).expect("a string takes it all");
        // The Go client writes `le="1"`: sums by `le` with a kubelet's series need the same
        // spelling.
        text.replace(".0\"}", "\"}")
    }
}

impl BareCounter {
    fn increment(&self) {
        self.0.inc();
    }

    /// Raises the counter to a total from elsewhere; never lowers it.
    fn raise_to(&self, count: u64) {
        self.0.inner().fetch_max(count, Ordering::Relaxed);
    }
}

impl EncodeMetric for BareCounter {
    fn encode(&self, mut encoder: MetricEncoder) -> fmt::Result {
        // A gauge's line is the bare name and the number.
        encoder.encode_gauge(&self.0.get())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Counter
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line_of<'t>(text: &'t str, name: &str) -> &'t str {
        let mut lines = text.lines();
        lines
            .find(|line| line.starts_with(name))
            .unwrap_or_default()
    }

    #[test]
    fn names_and_types_are_those_of_the_kubelet() {
        let text = Metrics::default().text();
        let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        expect_test::expect![[r"
            kubelet_pleg_relist_duration_seconds histogram
            kubelet_pleg_relist_interval_seconds histogram
            kubelet_pleg_pod_relist_duration_seconds histogram
            kubelet_pleg_discard_events counter
            kubelet_pleg_last_seen_seconds gauge
            kubelet_evented_pleg_connection_error_count counter
            kubelet_evented_pleg_connection_success_count counter
            kubelet_evented_pleg_connection_latency_seconds histogram
            kubelet_running_pods gauge
            cri_event_conformance_missed_events_total counter
            cri_event_conformance_disagreements_total counter"]]
        .assert_eq(&types.collect::<Vec<_>>().join("\n"));
    }

    #[test]
    fn counters_keep_their_names() {
        let metrics = Metrics::default();
        metrics.connections(3, 4);
        metrics.connections(2, 2);
        metrics.discarded(1);
        metrics.missed();
        let text = metrics.text();
        for line in [
            "kubelet_evented_pleg_connection_error_count 3",
            "kubelet_evented_pleg_connection_success_count 4",
            "kubelet_pleg_discard_events 1",
            "cri_event_conformance_missed_events_total 1",
        ] {
            assert_eq!(line_of(&text, line), line);
        }
    }

    #[test]
    fn buckets_are_gos_default_ones_in_gos_spelling() {
        let metrics = Metrics::default();
        metrics.relisted(Duration::from_millis(30));
        let text = metrics.text();
        let bounds = text.lines().filter_map(|line| {
            let bound = line.strip_prefix("kubelet_pleg_relist_duration_seconds_bucket{le=\"")?;
            bound.split_once("\"} ")
        });
        let bounds: Vec<_> = bounds.map(|(le, n)| format!("{le}:{n}")).collect();
        assert_eq!(
            bounds.join(" "),
            "0.005:0 0.01:0 0.025:0 0.05:1 0.1:1 0.25:1 0.5:1 1:1 2.5:1 5:1 10:1 +Inf:1"
        );
    }

    #[test]
    fn containers_are_counted_by_state() {
        let metrics = Metrics::default();
        metrics.containers(RunningState("exited"), 2);
        let line = "kubelet_running_containers{container_state=\"exited\"} 2";
        assert_eq!(line_of(&metrics.text(), line), line);
    }
}
