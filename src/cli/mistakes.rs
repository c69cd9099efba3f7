//! Rejects mistaken arguments: options of a run that are given with another command, which would
//! ignore them; outputs that would overwrite an input of the same command line, or share standard
//! output; and filters that look like commands, such as `test` or `lits`, or are one.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, CommandFactory, Error};

use super::Fault;
use super::args::Cli;
use crate::case::{Case, did_you_mean};
use crate::files;
use crate::plan::Facts;

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

/// The options that name a file to write.
const OUTPUTS: [&str; 7] = [
    "history", "html", "json", "junit", "markdown", "output", "perfetto",
];

/// The option that names a file to write, and overwrites none.
const NEW_OUTPUT: &str = "write_expectations";

/// Commands of other programs, and their equivalents here.
const ELSEWHERE: [(&str, &str); 8] = [
    ("start", RUNS),
    ("test", RUNS),
    ("verify", RUNS),
    ("all", "all cases are run if no filter is given"),
    ("list", "it stands alone, or use --list"),
    ("ls", "it stands alone, or use --list"),
    ("help", "it stands before a command, or use --help"),
    ("version", "it stands alone, or use --version"),
];

/// The hint for a command that follows another one and so counts as a filter.
const FIRST: &str = "a command stands before all filters";

const RUNS: &str = "use `run`";

/// The minimum similarity to a command for a hint.
const MIN_SIMILARITY: f64 = 0.9;

/// The arguments of a run that another command uses, too.
fn shared_with(command: &str) -> &'static [&'static str] {
    match command {
        "matrix" | "explain" => &["cases", "color"],
        // These have a `--color` of their own.
        "run" | "check" | "sonobuoy" => &[],
        _ => &["color"],
    }
}

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

/// Whether an argument of this id is on the command line.
fn is_of_user(matches: &ArgMatches, id: &str) -> bool {
    let known = matches.ids().any(|known| known.as_str() == id);
    known && matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// Whether the user gave an argument, before or after the command.
fn is_given(matches: &ArgMatches, argument: &Arg) -> bool {
    let id = argument.get_id().as_str();
    let given = |matches: &ArgMatches| is_of_user(matches, id);
    given(matches)
        || argument.is_global_set()
            && matches
                .subcommand()
                .is_some_and(|(_, matches)| given(matches))
}

/// The arguments with `help [COMMAND]`, `version` and `list` as options.
pub(super) fn as_options(mut args: Vec<OsString>) -> Vec<OsString> {
    match args.get(1).and_then(|word| word.to_str()) {
        Some("help") => {
            args.remove(1);
            args.push("--help".into());
        }
        Some("version") => args[1] = "--version".into(),
        Some("list" | "ls") => args[1] = "--list".into(),
        _ => {}
    }
    args
}

/// Refuses `help` with a word that is no command.
pub(super) fn refuse_help_of_nothing(cli: &mut Command, args: &[OsString]) -> Result<(), Error> {
    let mut words = args.iter().skip(1).filter_map(|word| word.to_str());
    let (Some("help"), Some(of)) = (words.next(), words.next()) else {
        return Ok(());
    };
    let commands: Vec<_> = cli.get_subcommands().map(Command::get_name).collect();
    if of.starts_with('-') || commands.contains(&of) {
        return Ok(());
    }
    let hint = did_you_mean(of, commands.into_iter());
    let hint = hint.unwrap_or_else(|| "`--help` lists all".to_owned());
    let message = format!("there is no command `{of}`; {hint}");
    Err(cli.error(ErrorKind::InvalidSubcommand, message))
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

/// A path of the command line whose file exists.
struct Given {
    argument: String,
    is_output: bool,
    file: PathBuf,
}

/// Fails if the file of an output is that of an input.
pub(super) fn refuse_to_overwrite(cli: &mut Command, matches: &ArgMatches) -> Result<(), Error> {
    let mut given = files(cli, matches);
    if let Some((name, matches)) = matches.subcommand()
        && let Some(command) = cli.find_subcommand(name)
    {
        given.extend(files(command, matches));
    }
    let overwritten = given.iter().filter(|it| it.is_output).find_map(|output| {
        let mut inputs = given.iter().filter(|it| !it.is_output);
        let input = inputs.find(|input| input.file == output.file)?;
        Some((&output.argument, &input.argument, output.file.display()))
    });
    let Some((output, input, file)) = overwritten else {
        return Ok(());
    };
    let message = format!("`{output}` would overwrite {file}, which `{input}` reads");
    Err(cli.error(ErrorKind::ArgumentConflict, message))
}

/// Whether an output is standard output. Fails if several are.
pub(super) fn use_stdout(cli: &mut Command, matches: &ArgMatches) -> Result<bool, Error> {
    let inner = matches.subcommand().map(|(_, inner)| inner);
    let given = [matches].into_iter().chain(inner).flat_map(|matches| {
        let raw = |id: &&str| matches.try_get_raw(id).ok().flatten();
        OUTPUTS
            .iter()
            .chain(&[NEW_OUTPUT])
            .filter_map(raw)
            .flatten()
    });
    match given.filter(|value| *value == files::STDOUT).count() {
        0 => Ok(false),
        1 => Ok(true),
        _ => {
            let message = "only one output can be `-`, which is standard output";
            Err(cli.error(ErrorKind::ArgumentConflict, message))
        }
    }
}

fn files(command: &Command, matches: &ArgMatches) -> Vec<Given> {
    let of_user = |argument: &&Arg| is_of_user(matches, argument.get_id().as_str());
    let arguments = command.get_arguments().filter(of_user);
    let files = arguments.flat_map(|argument| {
        let id = argument.get_id().as_str();
        let values = matches.get_raw(id).into_iter().flatten();
        let file = move |value| {
            Some(Given {
                argument: argument.to_string(),
                is_output: !argument.is_positional() && OUTPUTS.contains(&id),
                file: file(value)?,
            })
        };
        values.filter_map(file)
    });
    files.collect()
}

/// The file of a value, which is a path or `NAME=PATH`.
fn file(value: &OsStr) -> Option<PathBuf> {
    let existing = |path: &Path| path.canonicalize().ok().filter(|path| path.is_file());
    let named = || Some(Path::new(value.to_str()?.split_once('=')?.1));
    existing(Path::new(value)).or_else(|| existing(named()?))
}

pub(super) fn refuse_commands(filters: &[String], cases: &[Case]) -> Result<(), Fault> {
    for filter in filters {
        if let Some(hint) = hint(filter, cases) {
            let message = format!("`{filter}` is not a command: {hint}");
            return Err(Fault::usage(message));
        }
    }
    Ok(())
}

fn hint(filter: &str, cases: &[Case]) -> Option<String> {
    let word = filter.to_ascii_lowercase();
    let taken = cases
        .iter()
        .any(|case| Facts::from_case(case).matches_filter(filter, false));
    let cli = Cli::command();
    let mut commands = cli.get_subcommands().map(clap::Command::get_name);
    let elsewhere = ELSEWHERE.iter().find(|(known, _)| *known == word);
    let instead = elsewhere.map(|(_, instead)| *instead);
    if let Some(instead) = instead.or_else(|| commands.any(|it| it == word).then_some(FIRST)) {
        let names = format!("; to select cases with this word in their names, write '*{word}*'");
        return Some(instead.to_string() + if taken { &names } else { "" });
    }
    let is_alike = |name: &&str| {
        // One letter more or less: `slow` is no `show`.
        let is_typo = name.len() != word.len() && strsim::levenshtein(name, &word) == 1;
        is_typo || !taken && strsim::jaro_winkler(name, &word) > MIN_SIMILARITY
    };
    let mut commands = cli.get_subcommands().map(clap::Command::get_name);
    Some(match commands.find(is_alike) {
        Some(name) => format!("did you mean `{name}`?"),
        None if taken => return None,
        None => did_you_mean(&word, ELSEWHERE.iter().map(|(known, _)| *known))?,
    })
}
