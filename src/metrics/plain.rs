//! A counter whose name is printed as it is.

use std::fmt;
use std::sync::atomic::Ordering;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;

/// A counter without the suffix `_total`, which `OpenMetrics` would add and a kubelet lacks.
#[derive(Clone, Debug, Default)]
pub(super) struct PlainCounter(Counter);

impl PlainCounter {
    /// Adds one.
    pub(super) fn increment(&self) {
        self.0.inc();
    }

    /// Takes over a count that is kept elsewhere, and never goes back.
    pub(super) fn raise_to(&self, count: u64) {
        self.0.inner().fetch_max(count, Ordering::Relaxed);
    }
}

impl EncodeMetric for PlainCounter {
    fn encode(&self, mut encoder: MetricEncoder) -> fmt::Result {
        // A gauge's line is the bare name and the number.
        encoder.encode_gauge(&self.0.get())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Counter
    }
}
