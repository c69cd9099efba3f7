//! What is told to a run and stands before another command: that one must not pass over it.

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, Error};

/// What of a run's arguments another command heeds, too.
fn heeded_by(command: &str) -> &'static [&'static str] {
    match command {
        "matrix" | "explain" => &["cases", "color"],
        _ => &["color"],
    }
}

/// Commands that have nothing to do with a runtime.
const WITHOUT_RUNTIME: [&str; 8] = [
    "check",
    "compare",
    "completions",
    "defects",
    "explain",
    "image",
    "schema",
    "show",
];

/// Hides how to reach a runtime from the help of commands that need none.
pub(super) fn hide(cli: Command) -> Command {
    let globals = cli
        .get_arguments()
        .filter(|argument| argument.is_global_set());
    let hidden = globals.map(|argument| argument.clone().global(false).hide(true));
    let hidden: Vec<Arg> = hidden.collect();
    WITHOUT_RUNTIME.into_iter().fold(cli, |cli, name| {
        let hidden = hidden.clone();
        cli.mut_subcommand(name, |command| command.args(hidden))
    })
}

/// Whether the user wrote an argument, before the command or after it.
fn is_said(told: &ArgMatches, argument: &Arg) -> bool {
    let id = argument.get_id().as_str();
    let said = |told: &ArgMatches| {
        let known = told.ids().any(|known| known.as_str() == id);
        known && told.value_source(id) == Some(ValueSource::CommandLine)
    };
    said(told) || argument.is_global_set() && told.subcommand().is_some_and(|(_, told)| said(told))
}

/// Refuses what the user told a run, and not the command that follows.
pub(super) fn refuse(cli: &mut Command, told: &ArgMatches) -> Result<(), Error> {
    let Some((name, _)) = told.subcommand() else {
        return Ok(());
    };
    let unheeded = cli.get_arguments().find(|argument| {
        let heeded = if argument.is_global_set() {
            !WITHOUT_RUNTIME.contains(&name)
        } else {
            heeded_by(name).contains(&argument.get_id().as_str())
        };
        is_said(told, argument) && !heeded
    });
    let Some(unheeded) = unheeded else {
        return Ok(());
    };
    if unheeded.is_global_set() {
        let message = format!("`{name}` does not take `{unheeded}`: it needs no runtime");
        return Err(cli.error(ErrorKind::ArgumentConflict, message));
    }
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
