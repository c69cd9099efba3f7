//! The command line of cri-event-conformance.

use std::process::ExitCode;

use cri_event_conformance::cli::{self, Cli};
use cri_event_conformance::terminal;

fn main() -> ExitCode {
    // RUST_LOG selects log messages of the suite itself; by default only warnings and errors.
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::builder()
                .with_default_directive(tracing_subscriber::filter::LevelFilter::WARN.into())
                .from_env_lossy(),
        )
        .with_writer(|| terminal::Errors)
        .init();
    match cli::execute(&Cli::parse_args()) {
        Ok(exit) => exit.into(),
        Err(fault) => fault.report(),
    }
}
