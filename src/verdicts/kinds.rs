//! The kinds of findings that cases and invariants can have.

use std::collections::{BTreeMap, BTreeSet};

use crate::case::Case;
use crate::oracle::INVARIANTS;
use crate::outcome::Kind;

/// The kinds of findings of all invariants and of these cases, by their ids.
pub fn kinds_by_id(cases: &[Case]) -> BTreeMap<&str, BTreeSet<Kind>> {
    let of_invariants = INVARIANTS.iter().map(|rule| {
        let kinds = rule.kinds.iter().copied();
        (rule.id, kinds.collect())
    });
    let of_cases = cases.iter().map(|case| (&*case.id, case.claim().kinds()));
    of_invariants.chain(of_cases).collect()
}
