//! The files of a command line: rejects outputs that would overwrite an input, or share standard
//! output.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, Error};

use crate::files;

/// The options that name a file to write.
const OUTPUTS: [&str; 7] = [
    "history", "html", "json", "junit", "markdown", "output", "perfetto",
];
/// The option that names a file to write, and overwrites none.
const NEW_OUTPUT: &str = "write_expectations";

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
    let of_user = |argument: &&Arg| {
        let id = argument.get_id().as_str();
        let known = matches.ids().any(|known| known.as_str() == id);
        known && matches.value_source(id) == Some(ValueSource::CommandLine)
    };
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
