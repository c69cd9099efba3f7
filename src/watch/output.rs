//! Where notices go: standard output, as text or JSON; what is about the stream also to standard
//! error.

use std::io::{self, Write};

use serde::Serialize;

use super::notice::Notice;
use super::text;
use crate::history::HostInstant;
use crate::report::rfc3339;

/// How notices are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// A notice and when it is printed.
#[derive(Serialize)]
struct Timed<'a> {
    time: String,
    #[serde(flatten)]
    notice: &'a Notice,
}

impl Output {
    /// Prints a notice.
    ///
    /// # Errors
    /// If standard output takes nothing more.
    pub(super) fn show(self, at: HostInstant, notice: &Notice) -> io::Result<()> {
        if matches!(notice, Notice::Stream { .. }) {
            say(&text::line(at, notice));
        }
        let mut line = match self {
            Self::Text if matches!(notice, Notice::Stream { .. }) => return Ok(()),
            Self::Text => text::line(at, notice),
            Self::Json => json(at, notice),
        };
        line.push('\n');
        let mut out = anstream::stdout().lock();
        out.write_all(line.as_bytes())?;
        out.flush()
    }
}

pub(super) fn json(at: HostInstant, notice: &Notice) -> String {
    let time = rfc3339(at);
    serde_json::to_string(&Timed { time, notice }).expect("all keys are strings")
}

/// Prints a line to standard error; if nobody reads it, nothing is lost.
pub(super) fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
