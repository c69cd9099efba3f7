//! Conformance tests for the CRI event stream.

pub mod case;
pub mod history;
pub mod outcome;
pub mod report;
pub mod workload;
