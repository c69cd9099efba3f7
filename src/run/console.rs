//! Console output of a run: a line for each case as it ends, then the failures in detail. The
//! summary with the counts belongs to the report.
//!
//! libtest-mimic runs the trials. Its own output has only `ok`, `FAILED` and `ignored`, and would
//! print an undecided case as FAILED; so it prints to `/dev/null`, and this module prints instead.

mod events;
mod github;
mod lines;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use libtest_mimic::{Arguments, FormatSetting};
use tokio_util::sync::CancellationToken;

use super::Format;
use crate::outcome::Outcome;
use crate::plan::label;
use crate::terminal;
use events::Events;
use github::WithoutCommands;
use lines::Lines;

pub(super) struct OutputLost(pub(super) io::Error);

/// The format of results, and the number of parallel trials.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConsoleOptions {
    pub(super) format: Format,
    pub(super) threads: usize,
}

/// A case or an invariant: its name, and the function that produces its outcome.
pub(super) struct Trial {
    name: String,
    is_case: bool,
    run: Box<dyn FnOnce() -> Outcome + Send>,
}

/// Renders outcomes as they arrive.
trait Renderer: Send {
    fn begin(&mut self, cases: usize, invariants: usize) -> String;
    fn outcome(&mut self, name: &str, outcome: &Outcome) -> String;
    fn end(&mut self) -> String;
}

/// The renderer, and the first write error, which stops the output.
struct Printer {
    by: Box<dyn Renderer>,
    lost: Option<io::Error>,
}

impl Trial {
    pub(super) fn case(name: String, run: impl FnOnce() -> Outcome + Send + 'static) -> Self {
        Self {
            name,
            is_case: true,
            run: Box::new(run),
        }
    }

    pub(super) fn invariant(name: String, run: impl FnOnce() -> Outcome + Send + 'static) -> Self {
        Self {
            is_case: false,
            ..Self::case(name, run)
        }
    }
}

/// The name of a case or an invariant in the output.
pub(super) fn name(id: &str, name: &str, repetition: Option<u32>) -> String {
    match repetition {
        Some(repetition) => format!("{}#{repetition}", label(id, name)),
        None => label(id, name),
    }
}

/// Runs the trials and prints a line for each as it ends. A write error stops the run. Fails if the
/// output cannot be written to, after the cases in progress have ended.
pub(super) fn present(
    look: ConsoleOptions,
    trials: Vec<Trial>,
    stop: &CancellationToken,
) -> Result<(), OutputLost> {
    let by: Box<dyn Renderer> = match look.format {
        Format::Json => Box::new(Events::new()),
        Format::Pretty | Format::Terse | Format::Github => {
            let widest = trials.iter().map(|trial| trial.name.chars().count()).max();
            let is_terse = look.format == Format::Terse;
            let lines = Lines::new(is_terse, widest.unwrap_or(0), terminal::columns());
            if look.format == Format::Github {
                Box::new(WithoutCommands::new(lines))
            } else {
                Box::new(lines)
            }
        }
    };
    let printer = Arc::new(Mutex::new(Printer { by, lost: None }));
    let cases = trials.iter().filter(|trial| trial.is_case).count();
    let invariants = trials.len() - cases;
    say(&printer, stop, |by| by.begin(cases, invariants));
    let trials = trials.into_iter().map(|trial| {
        let (printer, stop) = (printer.clone(), stop.clone());
        libtest_mimic::Trial::test(trial.name.clone(), move || {
            let outcome = (trial.run)();
            say(&printer, &stop, |by| by.outcome(&trial.name, &outcome));
            Ok(())
        })
    });
    // Its counts are meaningless: to libtest-mimic, no trial fails.
    let _ = libtest_mimic::run(&arguments(look.threads), trials.collect());
    say(&printer, stop, |by| by.end());
    let lost = lock(&printer).lost.take();
    lost.map_or(Ok(()), |fault| Err(OutputLost(fault)))
}

/// With a single thread, libtest-mimic starts none, and runs the trials in order.
fn arguments(threads: usize) -> Arguments {
    Arguments {
        test_threads: Some(threads),
        format: Some(FormatSetting::Terse),
        logfile: Some("/dev/null".to_owned()),
        ..Arguments::default()
    }
}

/// Prints a text, unless an earlier write has failed.
fn say(
    printer: &Mutex<Printer>,
    stop: &CancellationToken,
    what: impl FnOnce(&mut dyn Renderer) -> String,
) {
    let mut printer = lock(printer);
    let text = what(&mut *printer.by);
    if printer.lost.is_none()
        && let Err(fault) = terminal::print_styled(&text)
    {
        printer.lost = Some(fault);
        stop.cancel();
    }
}

fn lock(printer: &Mutex<Printer>) -> MutexGuard<'_, Printer> {
    printer.lock().unwrap_or_else(PoisonError::into_inner)
}
