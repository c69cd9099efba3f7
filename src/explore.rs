//! Random walks: finds what nobody wrote a case for, and makes it small.
//!
//! A walk is a case like any other: a plan of legal operations by several clients, made from a seed
//! and put into the words of cases, executed by `run` and judged by all invariants and by checks
//! that follow from what is certain after the plan. What fails is shrunk to a case that shows it.
//!
//! `plan` is what is done as data, `world` knows what is legal at its place and what must come of
//! it, `text` makes a case of both; `generate` makes plans and `shrink` smaller ones. All of these
//! are pure. Only [`explore`] runs them.

mod capabilities;
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
