//! What makes a case right, beyond the types of its values.

use super::diagnose::Problem;
use super::parse::{CaseFile, Place};

/// All that is wrong with a case.
pub(super) fn validate(_: &CaseFile, _: Place<'_>) -> Vec<Problem> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_case_of_the_repository_is_right() {
        let cases = crate::case::load::embedded().unwrap_or_else(|found| panic!("{found}"));
        assert_eq!(cases.len(), 20);
    }
}
