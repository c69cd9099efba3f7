//! The results of a history: the verdict of every case and invariant, and the whole report.
//!
//! [`Verdicts`] processes a history entry by entry: a run's own while it grows, or a recorded one.
//! Both give the same report, because it depends on nothing else. Judged entries are dropped, so
//! that a history of any length needs little memory. Pure: no clock, no file, no task.

mod ended;
mod findings;
mod fold;
mod known;
mod plan;
mod watched;
mod watched_pods;
mod written;

use std::collections::{BTreeMap, BTreeSet};

use crate::case::Case;
use crate::oracle::INVARIANTS;
use crate::outcome::Kind;

pub use ended::{EndedCase, JudgedCase};
pub use fold::Verdicts;
pub use known::schema as expectation_schema;
pub use known::{JudgedRun, Known, KnownFailure, RuntimeFacts, Signatures, Texts, Versions, When};
pub use plan::{Accepted, Scope, builtin, builtin_files, builtin_of, invariant_facts, unmeasured};
pub use watched::WatchNews;
pub use written::expectations;

/// The kinds of findings of all invariants and of these cases, by their ids.
pub fn kinds_by_id(cases: &[Case]) -> BTreeMap<&str, BTreeSet<Kind>> {
    let of_invariants = INVARIANTS.iter().map(|rule| {
        let kinds = rule.kinds.iter().copied();
        (rule.id, kinds.collect())
    });
    let of_cases = cases.iter().map(|case| (&*case.id, case.claim().kinds()));
    of_invariants.chain(of_cases).collect()
}
