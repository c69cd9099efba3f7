//! Words that stand where a filter may, and are meant as a command: nothing runs by them.

use clap::CommandFactory;

use super::Fault;
use super::args::Cli;
use crate::case::Case;
use crate::plan::Facts;
use crate::run::Exit;

/// What other programs have as commands, and how it is done here.
const ELSEWHERE: [(&str, &str); 9] = [
    ("run", RUNS),
    ("start", RUNS),
    ("test", RUNS),
    ("verify", RUNS),
    ("all", "without a filter all cases run"),
    ("list", "use --list"),
    ("ls", "use --list"),
    ("help", "use --help"),
    ("version", "use --version"),
];

const RUNS: &str = "without a command cases run";

/// How alike words have to be to be taken for each other.
const ALIKE: f64 = 0.9;

/// Refuses filters that are no filters.
pub(super) fn refuse(filters: &[String], cases: &[Case]) -> Result<(), Fault> {
    for filter in filters {
        if let Some(hint) = hint(filter, cases) {
            let message = format!("error: `{filter}` is no command: {hint}");
            return Err(Fault::new(Exit::Usage, message));
        }
    }
    Ok(())
}

fn hint(filter: &str, cases: &[Case]) -> Option<String> {
    let word = filter.to_ascii_lowercase();
    let taken = cases
        .iter()
        .any(|case| Facts::of(case).is_taken_by(filter, false));
    if let Some((_, instead)) = ELSEWHERE.iter().find(|(known, _)| *known == word) {
        let names = format!("; for the cases with it in their names write '*{word}*'");
        return Some(instead.to_string() + if taken { &names } else { "" });
    }
    if taken {
        return None;
    }
    let cli = Cli::command();
    let commands = cli.get_subcommands().map(clap::Command::get_name);
    let mut alike = commands.filter(|name| strsim::jaro_winkler(name, &word) > ALIKE);
    Some(format!("did you mean `{}`?", alike.next()?))
}
