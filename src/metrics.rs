//! A kubelet's PLEG metrics, with the kubelet's names, types and buckets.
//!
//! [`Metrics`] is the set of metrics; [`Endpoint`] serves them to Prometheus over HTTP. This module
//! is independent of runtimes and reads no clock: durations are passed in.
//!
//! Names are those of kubernetes 1.36.2 (`pkg/kubelet/metrics/metrics.go`), even where they violate
//! Prometheus's conventions and `promtool check metrics` complains. Three of its counters lack the
//! suffix `_total`, which the `OpenMetrics` format requires. Therefore the text format 0.0.4 is
//! served, as by a kubelet. The suite's own metrics begin with `cri_event_conformance_`.

mod counter;
mod endpoint;
mod families;

pub use endpoint::{Endpoint, EndpointError};
pub use families::{Metrics, RunningState};
