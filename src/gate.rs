//! A gate: one verdict on one or more reports, by a policy.
//!
//! A [`Policy`] says what a roll-out or a pipeline requires. Each requirement is a rule that
//! passes, fails, or cannot tell; the gate fails if one fails, and passes if all pass. Knows
//! nothing of files: the reports are data. See `ci/policies/README.md`.

mod judge;
mod policy;
mod ruling;
mod series;
#[cfg(test)]
mod tests;

pub use judge::judge;
pub use policy::{Policy, schema};
pub use ruling::Ruling;
