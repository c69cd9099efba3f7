//! Random walks: finds what nobody wrote a case for, and makes it small.
//!
//! A walk is a case like any other: a plan of legal operations by several clients, made from a seed
//! and put into the words of cases, executed by `run` and judged by all invariants and by checks
//! that follow from what is certain after the plan. What fails is shrunk to a case that shows it.
//!
//! A plan is a list of a case's own steps. `world` knows which are legal at their places and what
//! must come of them, `checks` what a case can expect of that, `text` makes the case; `generate`
//! makes plans and `shrink` smaller ones. All of these are pure. Only [`explore`] runs them.

mod capabilities;
mod checks;
mod coverage;
mod explorer;
mod finding;
mod generate;
mod options;
mod plan;
mod probe;
mod rate;
mod result;
mod shrink;
mod testbed;
mod text;
mod trials;
mod world;

pub use explorer::explore;
pub use options::ExploreOptions;
pub use result::{ExploreError, Explored};
