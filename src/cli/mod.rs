//! The command line: what the words of a user mean. Nothing is decided here about a run.

mod args;
mod commands;
mod config;
mod offered;
mod proof;
mod reports;
mod target;

pub use args::Cli;

use std::io::{self, Write};
use std::process::ExitCode;

use crate::case::load::LoadError;
use crate::run::{Exit, RunError};
use crate::watch::WatchError;

/// Why a command could not be done, and how the process then ends.
#[derive(Debug)]
pub struct Fault {
    exit: Exit,
    message: String,
}

impl Fault {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
        }
    }

    /// Prints the fault and returns the exit code that tells it.
    #[must_use]
    pub fn report_to(&self, to: &mut dyn Write) -> ExitCode {
        // Nobody may be reading; the exit code tells it all the same.
        let _ = writeln!(to, "{}", self.message.trim_end());
        self.exit.into()
    }
}

impl From<RunError> for Fault {
    fn from(fault: RunError) -> Self {
        let message = match &fault {
            // Diagnostics bring their own "error:" lines.
            RunError::Cases(LoadError::Invalid(diagnostics)) => diagnostics.render(
                anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never,
            ),
            _ => format!("error: {}", chain(&fault)),
        };
        Self {
            exit: fault.exit(),
            message,
        }
    }
}

impl From<WatchError> for Fault {
    fn from(fault: WatchError) -> Self {
        Self::new(fault.exit(), format!("error: {}", chain(&fault)))
    }
}

/// An error with its causes, unless it tells them itself.
fn chain(fault: &dyn std::error::Error) -> String {
    let mut text = fault.to_string();
    let mut source = fault.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// Does what the command line says and returns how the process ends.
///
/// # Errors
/// If it cannot be done; the fault knows the exit code.
pub fn execute(cli: &Cli) -> Result<Exit, Fault> {
    cli.choose_color();
    commands::execute(cli)
}
