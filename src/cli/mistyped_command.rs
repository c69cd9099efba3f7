//! Rejects filters that look like commands, such as `test` or `lits`, or are one.

use clap::CommandFactory;

use super::Fault;
use super::args::Cli;
use crate::case::Case;
use crate::plan::Facts;
use crate::run::Exit;

/// Commands of other programs, and their equivalents here.
const ELSEWHERE: [(&str, &str); 9] = [
    ("run", FIRST),
    ("start", RUNS),
    ("test", RUNS),
    ("verify", RUNS),
    ("all", "all cases are run if no filter is given"),
    ("list", "use --list"),
    ("ls", "use --list"),
    ("help", "use --help"),
    ("version", "use --version"),
];

/// The hint for a command that follows another one and so counts as a filter.
const FIRST: &str = "a command stands before all filters";

const RUNS: &str = "use `run`";

/// The minimum similarity to a command for a hint.
const MIN_SIMILARITY: f64 = 0.9;

pub(super) fn refuse(filters: &[String], cases: &[Case]) -> Result<(), Fault> {
    for filter in filters {
        if let Some(hint) = hint(filter, cases) {
            let message = format!("error: `{filter}` is not a command: {hint}");
            return Err(Fault::new(Exit::Usage, message));
        }
    }
    Ok(())
}

fn hint(filter: &str, cases: &[Case]) -> Option<String> {
    let word = filter.to_ascii_lowercase();
    let taken = cases
        .iter()
        .any(|case| Facts::from_case(case).matches_filter(filter, false));
    if let Some((_, instead)) = ELSEWHERE.iter().find(|(known, _)| *known == word) {
        let names = format!("; to select cases with this word in their names, write '*{word}*'");
        return Some(instead.to_string() + if taken { &names } else { "" });
    }
    if taken {
        return None;
    }
    let cli = Cli::command();
    let commands = cli.get_subcommands().map(clap::Command::get_name);
    let mut alike = commands.filter(|name| strsim::jaro_winkler(name, &word) > MIN_SIMILARITY);
    Some(match alike.next()? {
        name if name == word => FIRST.to_owned(),
        name => format!("did you mean `{name}`?"),
    })
}
