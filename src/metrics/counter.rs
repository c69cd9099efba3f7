//! A counter whose name is exported unchanged.

use std::fmt;
use std::sync::atomic::Ordering;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;

/// A counter without the suffix `_total`, which `OpenMetrics` would add and a kubelet lacks.
#[derive(Clone, Debug, Default)]
pub(super) struct BareCounter(Counter);

impl BareCounter {
    pub(super) fn increment(&self) {
        self.0.inc();
    }

    /// Raises the counter to a total from elsewhere; never lowers it.
    pub(super) fn raise_to(&self, count: u64) {
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
