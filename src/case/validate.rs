//! What makes a case right, beyond the types of its values. Pure; finds all problems, not only the
//! first, and names each by its path in the file.

mod expectations;
mod findings;
mod header;
mod names;
mod steps;
mod workload;

use super::diagnose::Problem;
use super::file::{CaseFile, Place};
use super::{Need, Step};
use findings::Findings;

pub(super) use steps::{Implied, Surroundings, Walk};

/// What follows from the steps of a case, or all that is wrong with it.
pub(super) fn validate(file: &CaseFile, place: Place<'_>) -> Result<Implied, Vec<Problem>> {
    let mut found = Findings::default();
    header::check(file, place, &mut found);
    let (names, implied) = steps::check(file, &mut found);
    expectations::check(file, &names, &mut found);
    let problems = found.into_problems();
    if problems.is_empty() {
        Ok(implied)
    } else {
        Err(problems)
    }
}

/// The needs of a step beyond the socket, with those of the steps inside it.
pub(crate) fn needs(step: Step) -> Vec<Need> {
    let file = CaseFile {
        steps: vec![step],
        ..CaseFile::default()
    };
    let (_, implied) = steps::check(&file, &mut Findings::default());
    implied.needs
}
