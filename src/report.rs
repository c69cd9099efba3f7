//! Reports of a run for people and machines: a timeline, console text, Markdown, HTML, `JUnit` XML,
//! JSON, annotations of GitHub and a trace for Perfetto.
//!
//! Each report is a pure function of a [`RunReport`](crate::outcome::RunReport) or of history
//! entries; the caller chooses the output. A runtime's text is escaped before it is shown, see
//! [`printable()`]: no report lets a runtime control a terminal or break a document. This module is
//! independent of rules, files and clocks.

mod causes;
mod compare;
mod evidence;
mod failed;
#[cfg(test)]
pub(crate) mod fixture;
mod fleet;
pub mod github;
pub mod html;
pub mod json;
pub mod junit;
mod markdown;
mod matrix;
mod perfetto;
mod printable;
mod rate;
mod standings;
mod summary;
mod text;
mod timeline;

pub use causes::{clearest, failures, has_details};
pub use compare::Comparison;
pub use evidence::Evidence;
pub use failed::Failed;
pub use fleet::Fleet;
pub use github::page;
#[cfg(test)]
pub use json::WorstLatency;
pub use json::{CaseOutcome, Document, NamedReport};
pub use markdown::{Markdown, Sheet};
pub use perfetto::perfetto;
pub use printable::{
    cut, headline, nanos, printable, rfc3339, short_id, short_ids, signed_span, span, wrapped,
};
pub use rate::{Rate, by_id};
pub use summary::{counted, summary};
pub use text::{cause, failure};
pub use timeline::{Timeline, timeline};
