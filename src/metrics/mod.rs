//! What operators know of a kubelet's PLEGs, measured here: the same names, types and buckets.
//!
//! A [`Metrics`] is a set of numbers that anyone may move; [`Endpoint`] shows them to a Prometheus
//! over HTTP. This module knows nothing of runtimes and reads no clock: spans come from outside.
//!
//! Names are those of kubernetes 1.36.2 (`pkg/kubelet/metrics/metrics.go`), also where they break
//! Prometheus's conventions, of which `promtool check metrics` reminds. Three of its counters lack
//! the suffix `_total`, which the `OpenMetrics` format would force on them. So what is served is
//! the older text format, 0.0.4, which every Prometheus reads, and which a kubelet serves, too. Our
//! own metrics begin with `cri_event_conformance_`.

mod endpoint;
mod families;
mod plain;

pub use endpoint::{Endpoint, EndpointError};
pub use families::{Metrics, RunningState};
