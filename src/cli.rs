//! The command line: parses arguments and dispatches to the library.

mod args;
mod commands;
mod mistakes;
mod reports;
mod sonobuoy;
mod target;

use std::fmt::Display;
use std::process::ExitCode;

use crate::case::load::LoadError;
use crate::doctor::DoctorError;
use crate::files::OutputError;
use crate::measure::MeasureError;
use crate::run::{Exit, RunError};
use crate::watch::WatchError;
use crate::{host, terminal};

pub use args::Cli;

pub fn main() -> ExitCode {
    // A run starts this program again for a subscriber that is a process of its own.
    if let Some(socket) = host::connection_to_hold(std::env::args_os()) {
        return match host::hold_connection(&socket) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    if let Some(fault) = host::run_program_of_host(std::env::args_os()) {
        return Fault::undecided(format!("run a program of the host: {fault}")).report();
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
    let exit = match Cli::parse_args() {
        Ok(cli) => execute(&cli),
        Err(help) => commands::print_help(&help),
    };
    let exit = match exit {
        Ok(exit) => exit.into(),
        Err(fault) => fault.report(),
    };
    terminal::finish();
    exit
}

/// The error of a command, with its exit code.
#[derive(Debug)]
pub struct Fault {
    exit: Exit,
    message: String,
    /// Whether the message contains colours.
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

    /// A mistake of the user.
    fn usage(fault: impl Display) -> Self {
        Self::new(Exit::Usage, format!("error: {fault}"))
    }

    fn undecided(fault: impl Display) -> Self {
        Self::new(Exit::Undecided, format!("error: {fault}"))
    }

    /// The message on one line, without the `error:` prefix.
    fn in_one_line(&self) -> String {
        let lines = self.message.trim_start_matches("error: ").lines();
        lines.map(str::trim).collect::<Vec<_>>().join("; ")
    }

    pub fn report(&self) -> ExitCode {
        // A closed standard error does not change the exit code.
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
            // Diagnostics have their own "error:" lines.
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

impl From<LoadError> for Fault {
    fn from(fault: LoadError) -> Self {
        RunError::from(fault).into()
    }
}

impl From<OutputError> for Fault {
    fn from(fault: OutputError) -> Self {
        RunError::from(fault).into()
    }
}

impl From<WatchError> for Fault {
    fn from(fault: WatchError) -> Self {
        Self::new(fault.exit(), format!("error: {}", chain(&fault)))
    }
}

impl From<MeasureError> for Fault {
    fn from(fault: MeasureError) -> Self {
        Self::new(fault.exit(), format!("error: {}", chain(&fault)))
    }
}

impl From<DoctorError> for Fault {
    fn from(fault: DoctorError) -> Self {
        match fault {
            DoctorError::Root { .. } => Self::usage(chain(&fault)),
            DoctorError::System(_) => Self::undecided(chain(&fault)),
        }
    }
}

/// The message of an error with those of its causes that it does not contain already.
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

pub fn execute(cli: &Cli) -> Result<Exit, Fault> {
    cli.choose_color();
    if cli.leaves_stdout {
        terminal::print_to_errors();
    }
    commands::execute(cli)
}
