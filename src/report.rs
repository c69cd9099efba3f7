//! Reports of a run for people and machines: a timeline, console text, Markdown, HTML, `JUnit` XML,
//! JSON, annotations of GitHub and a trace for Perfetto.
//!
//! Each report is a pure function of a [`RunReport`](crate::outcome::RunReport) or of history
//! entries; the caller chooses the output. A runtime's text is escaped before it is shown, see
//! [`printable()`]: no report lets a runtime control a terminal or break a document. This module is
//! independent of rules, files and clocks.

mod calendar;
mod causality;
mod compare;
mod document;
mod evidence;
mod failed;
#[cfg(test)]
pub(crate) mod fixture;
pub mod github;
pub mod html;
pub mod json;
pub mod junit;
mod markdown;
mod matrix;
mod page;
mod perfetto;
mod printable;
mod properties;
mod rate;
mod sheet;
mod standings;
mod summary;
mod text;
mod timeline;
mod xml;

pub use calendar::{rfc3339, signed_span, span};
pub use compare::{Comparison, Incomparable};
#[cfg(test)]
pub use document::WorstLatency;
pub use document::{CaseOutcome, Document, NamedReport, Watch};
pub use evidence::Evidence;
pub use failed::Failed;
pub use markdown::Markdown;
pub use matrix::Matrix;
pub use page::page;
pub use perfetto::perfetto;
pub use printable::{cut, folded, printable, short_id};
pub use rate::Rate;
pub use sheet::Sheet;
pub use summary::{counted, summary};
pub use text::{cause, failure};
pub use timeline::{Timeline, timeline};
