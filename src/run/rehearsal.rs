//! A run that nobody looks at: for proofs that cases can fail, and for tests of the suite.

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use tokio::task::JoinSet;

use super::execution::Execution;
use super::known::Listed;
use super::outputs::{Outputs, Places};
use super::{RunError, RunOptions, Shown, Tested, plan, run_plan};
use crate::case::{Case, Need};
use crate::drive::{DriveOptions, Sabotage};
use crate::history::ExpectationFile;
use crate::limits::TimeoutScale;
use crate::model::{Behaviour, Offer};
use crate::oracle::Invariant;
use crate::outcome::RunReport;
use crate::plan::{Planned, Selection};

/// What to try on what.
#[derive(Clone, Debug, Default)]
pub struct Rehearsal {
    /// What is tested.
    pub tested: Tested,
    /// The cases that are wanted.
    pub selection: Selection,
    /// The failures that are known.
    pub known: Option<ExpectationFile>,
    /// Where to write all that was seen and done.
    pub history: Option<PathBuf>,
    /// By how much all timeouts are multiplied.
    pub timeout_scale: TimeoutScale,
    /// Where the suite itself shall fail.
    pub sabotage: Sabotage,
}

impl Rehearsal {
    /// On a model with nothing wrong, on which this case can run.
    #[must_use]
    pub fn fit_for(case: &Case) -> Self {
        let mut behaviour = Behaviour::default();
        if case.needs.contains(&Need::NoEvents) {
            behaviour.offer = Offer::Unimplemented;
        }
        Self {
            tested: Tested::model(behaviour, 0),
            ..Self::default()
        }
    }
}

/// Runs the selected cases and all invariants, and prints nothing. On a model that takes no time;
/// on a real runtime a signal ends it in an orderly way, which is a fault of the report.
///
/// # Errors
/// If it came to no report.
pub fn rehearse(rehearsal: Rehearsal, cases: Vec<Case>) -> Result<RunReport, RunError> {
    /// As many as can profit from it.
    const CASES_AT_ONCE: usize = 8;
    let mut tested = rehearsal.tested;
    if let Tested::Model { deadline, .. } = &mut tested {
        *deadline = rehearsal.timeout_scale.scaled(*deadline);
    }
    let options = RunOptions {
        tested,
        selection: rehearsal.selection,
        test_threads: Some(CASES_AT_ONCE),
        drive: DriveOptions {
            timeout_scale: rehearsal.timeout_scale,
            sabotage: rehearsal.sabotage,
            ..DriveOptions::default()
        },
        ..RunOptions::default()
    };
    let planned = plan(cases, &options.selection, options.repeat)?;
    let mut outputs = Outputs::open(Places {
        history: rehearsal.history.as_deref(),
        ..Places::default()
    })?;
    let known = Listed::In(rehearsal.known);
    let (report, _) = run_plan(&options, known, planned, &mut outputs, Shown::Nowhere)?;
    Ok(report)
}

/// Executes the plan, then judges the invariants. Nothing is printed that could get lost.
pub(super) async fn execute(
    planned: Vec<Planned>,
    invariants: &[&Invariant],
    execution: &Arc<Execution>,
) -> bool {
    let cases = planned.len();
    let mut running = JoinSet::new();
    for (place, planned) in planned.into_iter().enumerate() {
        let execution = execution.clone();
        running.spawn(async move { execution.case(place, &planned).await });
    }
    running.join_all().await;
    for place in 0..invariants.len() {
        execution.invariant(cases + place).await;
    }
    false
}
