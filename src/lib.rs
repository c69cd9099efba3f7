//! Conformance tests for the CRI event stream.

pub mod workload;
