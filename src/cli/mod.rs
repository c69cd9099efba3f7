//! The command line: what the words of a user mean. Nothing is decided here about a run.

mod args;
mod commands;
mod config;
mod mistaken;
mod proof;
mod reports;
mod target;

pub use args::Cli;

use std::process::ExitCode;

use crate::case::load::LoadError;
use crate::run::{Exit, RunError};
use crate::terminal;
use crate::watch::WatchError;

/// Why a command could not be done, and how the process then ends.
#[derive(Debug)]
pub struct Fault {
    exit: Exit,
    message: String,
    /// Whether the message has colours of our own.
    styled: bool,
}

impl Fault {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            styled: false,
        }
    }

    /// Prints the fault and returns the exit code that tells it.
    #[must_use]
    pub fn report(&self) -> ExitCode {
        // Nobody may be reading; the exit code tells it all the same.
        let message = self.message.trim_end();
        if self.styled {
            terminal::say_styled(message);
        } else {
            terminal::say(message);
        }
        self.exit.into()
    }
}

impl From<RunError> for Fault {
    fn from(fault: RunError) -> Self {
        let exit = fault.exit();
        match fault {
            // Diagnostics bring their own "error:" lines.
            RunError::Cases(LoadError::Invalid(diagnostics)) => {
                let message = diagnostics.render(terminal::errors_have_colours());
                Self {
                    styled: true,
                    ..Self::new(exit, message)
                }
            }
            fault => Self::new(exit, format!("error: {}", chain(&fault))),
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
