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
use findings::Findings;

pub(super) use steps::{Surroundings, Walk};

/// All that is wrong with a case.
pub(super) fn validate(file: &CaseFile, place: Place<'_>) -> Vec<Problem> {
    let mut found = Findings::default();
    header::check(file, place, &mut found);
    let names = steps::check(file, &mut found);
    expectations::check(file, &names, &mut found);
    found.into_problems()
}
