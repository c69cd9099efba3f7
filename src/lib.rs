//! Conformance tests for the CRI event stream.

pub mod case;
pub mod cli;
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
pub mod run;
pub mod workload;

/// Version and commit of this suite.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("GIT_COMMIT"), ")");
