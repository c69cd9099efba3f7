//! The command line of cri-event-conformance.

use std::process::ExitCode;

use cri_event_conformance::cli::{self, Cli};
use cri_event_conformance::{host, terminal};

fn main() -> ExitCode {
    // A run starts this program again for a subscriber that is a process of its own.
    if let Some(socket) = host::connection_to_hold(std::env::args_os()) {
        return match host::hold_connection(&socket) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    // RUST_LOG selects log messages of the suite itself; by default only warnings and errors.
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::builder()
                .with_default_directive(tracing_subscriber::filter::LevelFilter::WARN.into())
                .from_env_lossy(),
        )
        .with_writer(|| terminal::Errors)
        .with_ansi(terminal::errors_have_colours())
        .init();
    let exit = match cli::execute(&Cli::parse_args()) {
        Ok(exit) => exit.into(),
        Err(fault) => fault.report(),
    };
    terminal::finish();
    exit
}
