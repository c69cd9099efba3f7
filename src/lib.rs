//! Conformance tests for the CRI event stream.

pub mod case;
pub mod cri;
pub mod drive;
pub mod history;
pub mod host;
pub mod limits;
pub mod oracle;
pub mod outcome;
pub mod plan;
pub mod recorder;
pub mod report;
pub mod workload;
