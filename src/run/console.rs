//! The run as its user sees it: a line for each case as it ends, then in full what failed. The
//! closing lines, with the only counts, are the report's.
//!
//! libtest-mimic runs the trials. Its printer knows no words but `ok`, `FAILED` and `ignored`, and
//! would call FAILED what is undecided; so it prints to nowhere, and this module says what is
//! printed.

mod events;
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
use lines::Lines;

/// The output cannot be written to, for this reason.
pub(super) struct OutputLost(pub(super) io::Error);

/// How to present it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) format: Format,
    pub(super) threads: usize,
}

/// A line to be printed, and what makes its outcome.
pub(super) struct Trial {
    name: String,
    is_case: bool,
    run: Box<dyn FnOnce() -> Outcome + Send>,
}

/// What is to be printed of outcomes as they come.
trait Show: Send {
    fn begin(&mut self, cases: usize, invariants: usize) -> String;
    fn outcome(&mut self, name: &str, outcome: &Outcome) -> String;
    fn end(&mut self) -> String;
}

/// What is to be printed, and the first failure to print it, after which nothing more is printed.
struct Shown {
    by: Box<dyn Show>,
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

/// How a case or an invariant is listed.
pub(super) fn name(id: &str, name: &str, repetition: Option<u32>) -> String {
    match repetition {
        Some(repetition) => format!("{}#{repetition}", label(id, name)),
        None => label(id, name),
    }
}

/// Makes the outcomes and prints a line for each as it comes. If the output can be written to no
/// more, that stops the run.
///
/// # Errors
/// If it could not be written to. The cases that were under way have then ended, too.
pub(super) fn present(
    look: Look,
    trials: Vec<Trial>,
    stop: &CancellationToken,
) -> Result<(), OutputLost> {
    let by: Box<dyn Show> = match look.format {
        Format::Json => Box::new(Events::new()),
        Format::Pretty | Format::Terse => {
            let widest = trials.iter().map(|trial| trial.name.chars().count()).max();
            let is_terse = look.format == Format::Terse;
            Box::new(Lines::new(
                is_terse,
                widest.unwrap_or(0),
                terminal::columns(),
            ))
        }
    };
    let shown = Arc::new(Mutex::new(Shown { by, lost: None }));
    let cases = trials.iter().filter(|trial| trial.is_case).count();
    let invariants = trials.len() - cases;
    say(&shown, stop, |by| by.begin(cases, invariants));
    let trials = trials.into_iter().map(|trial| {
        let (shown, stop) = (shown.clone(), stop.clone());
        libtest_mimic::Trial::test(trial.name.clone(), move || {
            let outcome = (trial.run)();
            say(&shown, &stop, |by| by.outcome(&trial.name, &outcome));
            Ok(())
        })
    });
    // What it counts is nothing: no trial fails by its word.
    let _ = libtest_mimic::run(&arguments(look.threads), trials.collect());
    say(&shown, stop, |by| by.end());
    let lost = lock(&shown).lost.take();
    lost.map_or(Ok(()), |fault| Err(OutputLost(fault)))
}

/// One thread more than cases may run at once, whose number the execution keeps: with a single one
/// libtest-mimic uses none.
fn arguments(threads: usize) -> Arguments {
    Arguments {
        test_threads: Some(threads + 1),
        format: Some(FormatSetting::Terse),
        logfile: Some("/dev/null".to_owned()),
        ..Arguments::default()
    }
}

/// Prints something, unless nothing can be printed any more.
fn say(shown: &Mutex<Shown>, stop: &CancellationToken, what: impl FnOnce(&mut dyn Show) -> String) {
    let mut shown = lock(shown);
    let text = what(&mut *shown.by);
    if shown.lost.is_none()
        && let Err(fault) = terminal::print_styled(&text)
    {
        shown.lost = Some(fault);
        stop.cancel();
    }
}

fn lock(shown: &Mutex<Shown>) -> MutexGuard<'_, Shown> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
}
