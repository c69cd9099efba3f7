//! Rejects options of a run that are given with another command, which would ignore them.

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, Error};

/// The arguments of a run that another command uses, too.
fn shared_with(command: &str) -> &'static [&'static str] {
    match command {
        "matrix" | "explain" => &["cases", "color"],
        // These have a `--color` of their own.
        "run" | "check" | "sonobuoy" => &[],
        _ => &["color"],
    }
}

/// Commands that need no runtime.
const WITHOUT_RUNTIME: [&str; 11] = [
    "check",
    "compare",
    "completions",
    "defects",
    "explain",
    "gate",
    "image",
    "man",
    "matrix-report",
    "schema",
    "show",
];

/// Hides the connection options in the help of commands that need no runtime.
pub(super) fn hide(cli: Command) -> Command {
    let globals = cli
        .get_arguments()
        .filter(|argument| argument.is_global_set());
    let hidden: Vec<Arg> = globals
        .map(|argument| argument.clone().global(false).hide(true))
        .collect();
    WITHOUT_RUNTIME.into_iter().fold(cli, |cli, name| {
        let hidden = hidden.clone();
        cli.mut_subcommand(name, |command| command.args(hidden))
    })
}

/// Whether the user gave an argument, before or after the command.
fn is_given(matches: &ArgMatches, argument: &Arg) -> bool {
    let id = argument.get_id().as_str();
    let given = |matches: &ArgMatches| {
        let known = matches.ids().any(|known| known.as_str() == id);
        known && matches.value_source(id) == Some(ValueSource::CommandLine)
    };
    given(matches)
        || argument.is_global_set()
            && matches
                .subcommand()
                .is_some_and(|(_, matches)| given(matches))
}

pub(super) fn refuse(cli: &mut Command, matches: &ArgMatches) -> Result<(), Error> {
    let Some((name, _)) = matches.subcommand() else {
        return Ok(());
    };
    let conflicting = cli.get_arguments().find(|argument| {
        let used = if argument.is_global_set() {
            !WITHOUT_RUNTIME.contains(&name)
        } else {
            shared_with(name).contains(&argument.get_id().as_str())
        };
        is_given(matches, argument) && !used
    });
    let Some(conflicting) = conflicting else {
        return Ok(());
    };
    if conflicting.is_global_set() {
        let message = format!("`{name}` does not accept `{conflicting}`: it needs no runtime");
        return Err(cli.error(ErrorKind::ArgumentConflict, message));
    }
    let takes_it = cli.find_subcommand(name).is_some_and(|command| {
        let mut arguments = command.get_arguments();
        arguments.any(|argument| argument.get_id() == conflicting.get_id())
    });
    let message = if takes_it {
        format!("`{conflicting}` is an option of a run here: put it after `{name}`")
    } else {
        format!("`{name}` does not accept `{conflicting}`, an option of a run")
    };
    Err(cli.error(ErrorKind::ArgumentConflict, message))
}
