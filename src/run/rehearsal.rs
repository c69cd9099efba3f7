//! A run without console output: for the defect matrix, and for tests of the suite.

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use tokio::task::JoinSet;

use super::execution::Execution;
use super::expectations::ExpectationSource;
use super::outputs::Outputs;
use super::{RunError, RunOptions, Target, Visibility, plan, run_plan};
use crate::case::{Case, Need};
use crate::drive::DriveOptions;
use crate::model::{Behaviour, StreamSupport};
use crate::oracle::Invariant;
use crate::outcome::RunReport;
use crate::plan::{Planned, Selection};

#[derive(Clone, Debug, Default)]
pub struct Rehearsal {
    pub target: Target,
    pub selection: Selection,
    pub known: ExpectationSource,
    /// Where to record the history.
    pub history: Option<PathBuf>,
    /// The treatment of the runtime and its node.
    pub drive: DriveOptions,
}

impl Rehearsal {
    /// A rehearsal on a conformant model that can run this case.
    pub fn fit_for(case: &Case) -> Self {
        let mut behaviour = Behaviour::default();
        if case.needs.contains(&Need::NoEvents) {
            behaviour.stream_support = StreamSupport::Unimplemented;
        }
        Self {
            target: Target::model(behaviour, 0),
            ..Self::default()
        }
    }
}

/// Runs the selected cases and all invariants without console output. On the model it runs in
/// simulated time; on a real runtime a signal stops it, which the report contains as a fault.
pub fn rehearse(rehearsal: Rehearsal, cases: Vec<Case>) -> Result<RunReport, RunError> {
    /// More parallel cases bring no gain.
    const CASES_AT_ONCE: usize = 8;
    let mut target = rehearsal.target;
    if let Target::Model { deadline, .. } = &mut target {
        *deadline = rehearsal.drive.timeout_scale.scaled(*deadline);
    }
    let options = RunOptions {
        target,
        selection: rehearsal.selection,
        test_threads: Some(CASES_AT_ONCE),
        drive: rehearsal.drive,
        ..RunOptions::default()
    };
    let planned = plan(cases, &options.selection, options.repeat)?;
    let outputs = Outputs::default();
    let mut outputs = outputs.with_history(rehearsal.history.as_deref(), &options.report)?;
    let (report, _) = run_plan(
        &options,
        rehearsal.known,
        planned,
        &mut outputs,
        Visibility::Silent,
    )?;
    Ok(report)
}

/// Executes the plan, then judges the invariants.
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
