//! Prints notices to standard output, as text or JSON, and those about the stream to standard
//! error.

use std::io;

use clap::ValueEnum;
use clap::builder::Resettable;
use serde::Serialize;

use super::notice::Notice;
use super::text;
use crate::escape::printable_json;
use crate::history::HostInstant;
use crate::report::rfc3339;
use crate::terminal;

/// The format of notices. The help of the option lists only the values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Lines for people.
    #[value(help = Resettable::Reset)]
    #[default]
    Text,
    /// One JSON object a line.
    #[value(help = Resettable::Reset)]
    Json,
}

#[derive(Serialize)]
struct Timed<'a> {
    time: String,
    #[serde(flatten)]
    notice: &'a Notice,
}

/// Prints a notice. Without an output, prints only those about the stream or a violation, to
/// standard error.
pub(super) fn show(output: Option<Output>, at: HostInstant, notice: &Notice) -> io::Result<()> {
    let is_violation = matches!(
        notice,
        Notice::Violation { .. } | Notice::MoreViolations { .. }
    );
    let is_of_stream = matches!(notice, Notice::Stream { .. });
    if is_of_stream || (output.is_none() && is_violation) {
        terminal::say_styled(&text::line(at, notice));
    }
    match output {
        None => Ok(()),
        Some(Output::Text) if is_of_stream => Ok(()),
        Some(Output::Text) => terminal::print_styled(&(text::line(at, notice) + "\n")),
        Some(Output::Json) => terminal::print(&(json(at, notice) + "\n")),
    }
}

pub(super) fn json(at: HostInstant, notice: &Notice) -> String {
    let time = rfc3339(at);
    let text = serde_json::to_string(&Timed { time, notice }).expect("all keys are strings");
    printable_json(&text).into_owned()
}
