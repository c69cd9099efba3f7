//! One run of the suite on a model.

use super::{Clean, Noticed, told};
use crate::case::Case;
use crate::model::{Behaviour, Defect, Variation};
use crate::outcome::{Outcome, RunReport, Verdict};
use crate::plan::Selection;
use crate::run::{Rehearsal, rehearse};

/// What is tried.
pub(super) enum Trial {
    Clean(&'static Variation, u64),
    Defect(&'static Defect),
}

/// What it came to.
pub(super) enum Tried {
    Clean(Clean),
    Defect(Noticed),
}

impl Trial {
    pub(super) fn run(&self, cases: &[Case], all_cases: bool) -> Tried {
        match self {
            Self::Clean((variation, change), seed) => {
                let mut behaviour = Behaviour::default();
                change(&mut behaviour);
                let rehearsal = Rehearsal {
                    behaviour,
                    seed: *seed,
                    ..Rehearsal::default()
                };
                let alarms = match rehearse(rehearsal, cases.to_vec()) {
                    Ok(report) => alarms(&report),
                    Err(fault) => vec![told(&fault)],
                };
                Tried::Clean(Clean {
                    variation,
                    seed: *seed,
                    alarms,
                })
            }
            Self::Defect(defect) => Tried::Defect(defect_tried(defect, cases, all_cases)),
        }
    }
}

fn defect_tried(defect: &'static Defect, cases: &[Case], all_cases: bool) -> Noticed {
    let mut behaviour = Behaviour::default();
    defect.fault.apply(&mut behaviour);
    let mut selection = Selection {
        exact: true,
        ..Selection::default()
    };
    if !all_cases {
        let wanted = defect.shown_in.iter().map(|&id| id.to_owned());
        selection.filters = wanted.collect();
    }
    let rehearsal = Rehearsal {
        behaviour,
        selection,
        ..Rehearsal::default()
    };
    let (failed, fault) = match rehearse(rehearsal, cases.to_vec()) {
        Ok(report) => (failed(&report), None),
        Err(fault) => (Vec::new(), Some(told(&fault))),
    };
    Noticed {
        defect,
        failed,
        fault,
    }
}

fn failed(report: &RunReport) -> Vec<String> {
    let outcomes = report.outcomes.iter();
    let failed = outcomes.filter(|outcome| outcome.verdict == Verdict::Fail);
    failed.map(|outcome| outcome.id.to_string()).collect()
}

fn alarms(report: &RunReport) -> Vec<String> {
    let outcomes = report.outcomes.iter();
    let red = outcomes.filter(|outcome| outcome.verdict != Verdict::Pass);
    red.map(alarm)
        .chain(report.faults.iter().cloned())
        .collect()
}

fn alarm(outcome: &Outcome) -> String {
    let seen = outcome
        .violations
        .first()
        .map(|violation| violation.actual.clone());
    let why = seen.or_else(|| outcome.reason.clone()).unwrap_or_default();
    format!("{} {:?}: {why}", outcome.id, outcome.verdict)
}
