//! A run on the model that nobody looks at: for tests of the suite and of its cases.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::execution::Execution;
use super::outputs::Outputs;
use super::{RunError, RunOptions, Shown, Tested, plan, run_plan};
use crate::case::Case;
use crate::limits;
use crate::model::Behaviour;
use crate::oracle::INVARIANTS;
use crate::outcome::RunReport;
use crate::plan::{Planned, Selection};

/// What to try on what model.
#[derive(Clone, Debug, Default)]
pub struct Rehearsal {
    /// How the model behaves.
    pub behaviour: Behaviour,
    /// What looks random in it follows from this.
    pub seed: u64,
    /// The cases that are wanted.
    pub selection: Selection,
}

/// Runs the selected cases and all invariants on a model of its own, in simulated time, and prints
/// nothing.
///
/// # Errors
/// If it came to no report.
pub fn rehearse(rehearsal: Rehearsal, cases: Vec<Case>) -> Result<RunReport, RunError> {
    /// As many as can profit from it.
    const CASES_AT_ONCE: usize = 8;
    let tested = Tested::Model {
        behaviour: Box::new(rehearsal.behaviour),
        seed: rehearsal.seed,
        deadline: limits::CALL_DEADLINE,
    };
    let options = RunOptions::new(tested, rehearsal.selection, CASES_AT_ONCE);
    let planned = plan(cases, &options.selection)?;
    let mut outputs = Outputs::open(None, None, None)?;
    run_plan(&options, None, planned, &mut outputs, Shown::Nowhere)
}

/// Executes the plan, then judges the invariants. Nothing is printed that could get lost.
pub(super) async fn execute(planned: Vec<Planned>, execution: &Arc<Execution>) -> bool {
    let cases = planned.len();
    let mut running = JoinSet::new();
    for (place, planned) in planned.into_iter().enumerate() {
        let execution = execution.clone();
        running.spawn(async move { execution.case(place, &planned).await });
    }
    running.join_all().await;
    for place in 0..INVARIANTS.len() {
        execution.invariant(cases + place).await;
    }
    false
}
