//! A gate: one verdict on one or more reports, by a policy.
//!
//! A [`Policy`] states the requirements of a roll-out or a pipeline. Each requirement is a rule
//! that passes, fails, or is undecided; the gate fails if one fails, and passes if all pass.
//! Performs no file I/O: the reports are data. See `ci/policies/README.md`.

mod judge;
mod policy;
mod ruling;
mod series;
#[cfg(test)]
mod tests;

pub use judge::judge;
pub use policy::{Policy, schema};
pub use ruling::Ruling;
