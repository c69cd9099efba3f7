//! The suite on models that are wrong: each defect is noticed by the cases and invariants that it
//! names, each case and each invariant notices some defect, and what a runtime is permitted to do
//! is held against it by none.

use std::collections::BTreeSet;

use cri_event_conformance::case::load;
use cri_event_conformance::model::{Behaviour, DEFECTS, Defect, VARIATIONS, Variation};
use cri_event_conformance::oracle::INVARIANTS;
use cri_event_conformance::outcome::{RunReport, Verdict};
use cri_event_conformance::plan::Selection;
use cri_event_conformance::report;
use cri_event_conformance::run::{Rehearsal, rehearse};
use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> std::process::ExitCode {
    let everything = Trial::test("every_check_notices_some_defect", every_check_is_named);
    let defects = DEFECTS.iter().map(|defect| {
        let name = format!("defect::{}", defect.name);
        Trial::test(name, || is_noticed(defect))
    });
    let variations = VARIATIONS.iter().map(|variation| {
        let name = format!("variation::{}", variation.name);
        Trial::test(name, || is_permitted(variation))
    });
    let trials = std::iter::once(everything).chain(defects).chain(variations);
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

fn run(apply: fn(&mut Behaviour), filters: Vec<String>) -> Result<RunReport, Failed> {
    let mut behaviour = Behaviour::default();
    apply(&mut behaviour);
    let selection = Selection {
        filters,
        exact: true,
        repeat: 1,
        ..Selection::default()
    };
    let rehearsal = Rehearsal {
        behaviour,
        selection,
    };
    Ok(rehearse(rehearsal, load::embedded()?)?)
}

fn is_invariant(id: &str) -> bool {
    INVARIANTS.iter().any(|invariant| invariant.id == id)
}

/// Cases that are quickly over and bring every kind of event. An invariant that is to notice a
/// defect by itself has to do so on their histories.
const QUICK: &[&str] = &["ORD-01", "SBX-03", "SBX-04", "FLR-02"];

/// Runs the cases that are named.
fn is_noticed(defect: &Defect) -> Result<(), Failed> {
    let named = defect.noticed_by.iter().filter(|id| !is_invariant(id));
    let mut named: Vec<String> = named.map(|id| (*id).to_owned()).collect();
    if named.is_empty() {
        named.extend(QUICK.iter().map(|id| (*id).to_owned()));
    }
    let report = run(defect.apply, named)?;
    let failed: BTreeSet<&str> = report
        .outcomes
        .iter()
        .filter(|outcome| outcome.verdict == Verdict::Fail)
        .map(|outcome| outcome.id.as_str())
        .collect();
    let missed: Vec<_> = defect
        .noticed_by
        .iter()
        .filter(|id| !failed.contains(**id))
        .collect();
    if missed.is_empty() && !defect.noticed_by.is_empty() {
        return Ok(());
    }
    let told: Vec<String> = report.outcomes.iter().map(report::failure).collect();
    let what = defect.what;
    Err(format!(
        "{what}: not noticed by {missed:?}, but by {failed:?}\n{}",
        told.concat()
    )
    .into())
}

fn is_permitted(variation: &Variation) -> Result<(), Failed> {
    let report = run(variation.apply, Vec::new())?;
    let wrong = report.outcomes.iter();
    let wrong = wrong.filter(|outcome| outcome.verdict != Verdict::Pass);
    let wrong: Vec<String> = wrong.map(report::failure).collect();
    if wrong.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{}: held against the runtime\n{}",
        variation.what,
        wrong.concat()
    )
    .into())
}

fn every_check_is_named() -> Result<(), Failed> {
    let named = DEFECTS.iter().flat_map(|defect| defect.noticed_by);
    let named: BTreeSet<&str> = named.copied().collect();
    let cases = load::embedded()?;
    let all = cases.iter().map(|case| case.id.as_str());
    let all = all.chain(INVARIANTS.iter().map(|invariant| invariant.id));
    let all: BTreeSet<&str> = all.collect();
    if all == named {
        return Ok(());
    }
    let unnamed: Vec<_> = all.difference(&named).collect();
    let unknown: Vec<_> = named.difference(&all).collect();
    Err(format!("no defect is noticed by {unnamed:?}; there is no {unknown:?}").into())
}
