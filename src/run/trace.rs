//! `show --perfetto`: a recorded run as a picture, with the violations that are found in it.

use std::path::Path;

use super::RunError;
use super::check::{CheckError, open, replay};
use crate::files::Draft;
use crate::report;
use crate::verdicts::Scope;

/// Writes the trace of a history, as far as that can be read, and returns what to print.
///
/// # Errors
/// If the history is damaged, or the file cannot be written.
pub fn trace(history: &Path, output: &Path) -> Result<String, RunError> {
    let unusable = |fault| CheckError::new(history, fault);
    let source = open(history).map_err(unusable)?;
    let draft = Draft::open("Perfetto trace", output)?;
    draft.differs_from("history", history)?;
    let mut entries = Vec::new();
    let mut replayed = replay(Scope::default(), source, |entry| {
        entries.push(entry.clone());
    })
    .map_err(unusable)?;
    let outcomes = replayed.verdicts.report(replayed.damage.clone()).outcomes;
    let trace = report::perfetto(&entries, &outcomes);
    let line = format!("{}: {}\n", draft.what(), draft.path().display());
    draft.complete(|out| out.write_all(&trace))?;
    match replayed.damage {
        Some(damage) => Err(unusable(damage).into()),
        None => Ok(line),
    }
}
