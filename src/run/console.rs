//! The run as its user sees it: a line for each case, by libtest-mimic, so that it reads like any
//! Rust test run and its JSON like libtest's.
//!
//! libtest-mimic only prints and counts; what runs when, and what becomes of it, is `execution`'s.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use libtest_mimic::{Arguments, ColorSetting, Completion, Failed, FormatSetting, Trial};
use tokio::runtime::Handle;

use super::execution::Execution;
use super::{Color, Format};
use crate::oracle::Invariant;
use crate::outcome::{Outcome, Verdict};
use crate::plan::{Planned, label};
use crate::report;

/// Nobody reads our output any more.
pub(super) struct OutputLost;

/// What to present, and how.
pub(super) struct Presentation {
    pub(super) format: Format,
    pub(super) color: Color,
    pub(super) threads: usize,
    pub(super) planned: Vec<Planned>,
    pub(super) invariants: Vec<&'static Invariant>,
}

/// Executes the plan and prints a line for each case and invariant as it ends.
///
/// # Errors
/// If the output was closed. The cases that were under way have then ended, too.
pub(super) fn present(
    presentation: Presentation,
    execution: &Arc<Execution>,
    handle: &Handle,
) -> Result<(), OutputLost> {
    let Presentation {
        format,
        color,
        threads,
        planned,
        invariants,
    } = presentation;
    // One thread for each place, and one more: on a single thread libtest-mimic would print half
    // a line before a case and the rest after it. The execution keeps the number of cases.
    let arguments = Arguments {
        test_threads: Some(threads + 1),
        format: Some(match format {
            Format::Pretty => FormatSetting::Pretty,
            Format::Terse => FormatSetting::Terse,
            Format::Json => FormatSetting::Json,
        }),
        color: Some(match color {
            Color::Auto => ColorSetting::Auto,
            Color::Always => ColorSetting::Always,
            Color::Never => ColorSetting::Never,
        }),
        ..Arguments::default()
    };
    let cases = planned.len();
    let mut trials = Vec::with_capacity(cases + invariants.len());
    for (place, planned) in planned.into_iter().enumerate() {
        let (execution, handle) = (execution.clone(), handle.clone());
        let name = match planned.repetition {
            Some(repetition) => {
                format!(
                    "{}#{repetition}",
                    label(&planned.case.id, &planned.case.name)
                )
            }
            None => label(&planned.case.id, &planned.case.name),
        };
        let case = move || completion(&handle.block_on(execution.case(place, &planned)));
        trials.push(Trial::ignorable_test(name, case));
    }
    for (place, invariant) in invariants.into_iter().enumerate() {
        let (execution, handle) = (execution.clone(), handle.clone());
        let name = label(invariant.id, invariant.name);
        let judge =
            move || completion(&handle.block_on(execution.invariant(cases + place, invariant)));
        trials.push(Trial::ignorable_test(name, judge));
    }
    // libtest-mimic panics when it cannot write; by then all of its threads have ended.
    let presented = std::panic::catch_unwind(AssertUnwindSafe(|| {
        // Its exit code knows no error and no known failure; ours comes from the report.
        let _ = libtest_mimic::run(&arguments, trials);
    }));
    presented.map_err(|_| OutputLost)
}

fn completion(outcome: &Outcome) -> Result<Completion, Failed> {
    let reason = || outcome.reason.clone().unwrap_or_default();
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
            Err(Failed::from(report::failure(outcome)))
        }
    }
}
