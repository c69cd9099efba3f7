//! The results of a history: the verdict of every case and invariant, and the whole report.
//!
//! [`Verdicts`] processes a history entry by entry: a run's own while it grows, or a recorded one.
//! Both give the same report, because it depends on nothing else. Judged entries are dropped, so
//! that a history of any length needs little memory. Pure: no clock, no file, no task.

mod builtin;
mod ended;
mod findings;
mod fold;
mod kinds;
mod known;
mod plan;
mod relist_troubles;
mod tallies;
mod watched;
mod watched_pods;
mod written;

pub use builtin::{builtin, builtin_files, builtin_of};
pub use ended::{EndedCase, JudgedCase};
pub use fold::{Accepted, Scope, Verdicts};
pub use kinds::kinds_by_id;
pub use known::{
    JudgedRun, Known, KnownFailure, KnownFault, RuntimeFacts, Signatures, Texts, Versions, When,
};
pub use plan::invariant_facts;
pub use watched::WatchNews;
pub use written::expectations;
