//! What is told to a run and stands before another command: that one must not pass over it.

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command, Error};

/// What of a run's arguments another command heeds, too.
fn heeded_by(command: &str) -> &'static [&'static str] {
    match command {
        "matrix" | "explain" => &["cases", "color"],
        _ => &["color"],
    }
}

/// Refuses what the user told a run, and not the command that follows.
pub(super) fn refuse(cli: &mut Command, told: &ArgMatches) -> Result<(), Error> {
    let Some((name, _)) = told.subcommand().filter(|(name, _)| *name != "bench") else {
        return Ok(());
    };
    let unheeded = cli.get_arguments().find(|argument| {
        let id = argument.get_id().as_str();
        let said = told.value_source(id) == Some(ValueSource::CommandLine);
        said && !argument.is_global_set() && !heeded_by(name).contains(&id)
    });
    let Some(unheeded) = unheeded else {
        return Ok(());
    };
    let takes_it = cli.find_subcommand(name).is_some_and(|command| {
        let mut arguments = command.get_arguments();
        arguments.any(|argument| argument.get_id() == unheeded.get_id())
    });
    let message = if takes_it {
        format!("`{unheeded}` is of a run where it stands: put it after `{name}`")
    } else {
        format!("`{name}` does not take `{unheeded}`, which is of a run")
    };
    Err(cli.error(ErrorKind::ArgumentConflict, message))
}
