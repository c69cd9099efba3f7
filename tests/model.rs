//! Runs every case on the conformant model runtime, each as a separate test: neither the case nor
//! an invariant may fail.

use cri_event_conformance::testing::case::{Case, Need, load};
use cri_event_conformance::testing::outcome::Verdict;
use cri_event_conformance::testing::plan::label;
use cri_event_conformance::testing::report;
use cri_event_conformance::testing::run::{Rehearsal, rehearse};
use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> std::process::ExitCode {
    let cases = load::embedded().expect("the cases are valid");
    let trials = cases.into_iter().map(|case| {
        let name = label(&case.id, &case.name).replace(' ', "::");
        Trial::test(name, move || passes(case))
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

fn passes(case: Case) -> Result<(), Failed> {
    let without_events = case.needs.contains(&Need::NoEvents);
    let rehearsal = Rehearsal::fit_for(&case);
    let report = rehearse(rehearsal, vec![case])?;
    let mut wrong: Vec<String> = report.faults.clone();
    let outcomes = report.outcomes.iter();
    wrong.extend(
        outcomes
            // Without events there is nothing that an invariant could be about.
            .filter(|outcome| !(without_events && outcome.is_invariant()))
            .filter(|outcome| outcome.verdict != Verdict::Pass || !outcome.advice.is_empty())
            .map(report::failure),
    );
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n").into())
    }
}
