//! The run as its user sees it: a line for each case, by libtest-mimic, so that it reads like any
//! Rust test run and its JSON like libtest's.
//!
//! libtest-mimic only prints and counts; what runs when, and what becomes of it, is `execution`'s.

use std::panic::AssertUnwindSafe;

use libtest_mimic::{Arguments, ColorSetting, Completion, Failed, FormatSetting};

use super::{Color, Format};
use crate::escape::{printable, printable_lines};
use crate::outcome::{Outcome, Verdict};
use crate::plan::label;
use crate::report;

/// Nobody reads our output any more.
pub(super) struct OutputLost;

/// How to present it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) format: Format,
    pub(super) color: Color,
    pub(super) threads: usize,
}

/// A line to be printed, and what makes its outcome.
pub(super) struct Trial(libtest_mimic::Trial);

impl Trial {
    pub(super) fn new(name: String, run: impl FnOnce() -> Outcome + Send + 'static) -> Self {
        Self(libtest_mimic::Trial::ignorable_test(name, move || {
            completion(&run())
        }))
    }
}

/// How a case or an invariant is listed.
pub(super) fn name(id: &str, name: &str, repetition: Option<u32>) -> String {
    let label = label(id, name);
    let label = printable(&label);
    match repetition {
        Some(repetition) => format!("{label}#{repetition}"),
        None => label.into_owned(),
    }
}

/// Makes the outcomes and prints a line for each as it comes.
///
/// # Errors
/// If the output was closed. The cases that were under way have then ended, too.
pub(super) fn present(look: Look, trials: Vec<Trial>) -> Result<(), OutputLost> {
    // One thread for each place, and one more: on a single thread libtest-mimic would print half
    // a line before a case and the rest after it. The execution keeps the number of cases.
    let arguments = Arguments {
        test_threads: Some(look.threads + 1),
        format: Some(match look.format {
            Format::Pretty => FormatSetting::Pretty,
            Format::Terse => FormatSetting::Terse,
            Format::Json => FormatSetting::Json,
        }),
        color: Some(match look.color {
            Color::Auto => ColorSetting::Auto,
            Color::Always => ColorSetting::Always,
            Color::Never => ColorSetting::Never,
        }),
        ..Arguments::default()
    };
    let trials = trials.into_iter().map(|Trial(trial)| trial).collect();
    // libtest-mimic panics when it cannot write; by then all of its threads have ended.
    let presented = std::panic::catch_unwind(AssertUnwindSafe(|| {
        // Its exit code knows no error and no known failure; ours comes from the report.
        let _ = libtest_mimic::run(&arguments, trials);
    }));
    presented.map_err(|_| OutputLost)
}

fn completion(outcome: &Outcome) -> Result<Completion, Failed> {
    let reason = || printable(outcome.reason.as_deref().unwrap_or_default()).into_owned();
    match outcome.verdict {
        Verdict::Pass => Ok(Completion::Completed),
        Verdict::Known => Ok(Completion::ignored_with(format!(
            "known failure: {}",
            reason()
        ))),
        Verdict::Skip => Ok(Completion::ignored_with(reason())),
        Verdict::Inconclusive => Ok(Completion::ignored_with(format!(
            "inconclusive: {}",
            reason()
        ))),
        Verdict::Fail | Verdict::Error | Verdict::UnexpectedPass => {
            let failure = report::failure(outcome);
            Err(Failed::from(printable_lines(&failure).into_owned()))
        }
    }
}
