//! What a history says of its run: the verdict of every case and invariant, and the whole report.
//!
//! [`Verdicts`] takes in a history entry by entry: a run's own while it grows, or a recorded one.
//! Both come to the same report, because there is nothing else that a report is made of. What is
//! judged is let go, so that a history of any length can be judged in little memory. Pure: no
//! clock, no file, no task.

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
