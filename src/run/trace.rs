//! `show --perfetto`: a recorded run as a trace, with its violations; and `show FILTER`: the
//! timeline of some of its cases.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use super::RunError;
use super::check::{BUFFER, CheckError, open, replay};
use super::select::nothing_recorded;
use crate::files::Draft;
use crate::history::codec::StreamDecoder;
use crate::limits;
use crate::plan::Selection;
use crate::report;
use crate::verdicts::{Scope, Verdicts};

/// Writes the trace of a history, up to any damage, and returns the text to print.
pub fn trace(history: &Path, output: &Path) -> Result<String, RunError> {
    let unusable = |fault| CheckError::new(history, fault);
    let source = open(history).map_err(unusable)?;
    let draft = Draft::open("Perfetto trace", output)?;
    let mut entries = Vec::new();
    let (mut room, mut is_cut) = (limits::HISTORY_BYTES, false);
    let mut replayed = replay(Scope::default(), source, |entry| {
        let left = room.checked_sub(entry.approximate_bytes());
        is_cut |= left.is_none();
        if let (Some(left), false) = (left, is_cut) {
            room = left;
            entries.push(entry.clone());
        }
    })
    .map_err(unusable)?;
    if is_cut {
        let drawn = limits::HISTORY_BYTES >> 20;
        let cut = format!("only the first {drawn} MiB of it can be drawn");
        replayed.damage.get_or_insert(cut);
    }
    let outcomes = replayed.verdicts.report(replayed.damage.clone()).outcomes;
    let trace = report::perfetto(&entries, &outcomes);
    let line = format!("{}: {}\n", draft.what(), draft.path().display());
    draft.complete(|out| out.write_all(&trace))?;
    match replayed.damage {
        Some(damage) => Err(unusable(damage).into()),
        None => Ok(line),
    }
}

/// The timeline of the selected cases in a history, each entry once.
pub fn timeline(history: &Path, filters: &[String]) -> Result<String, RunError> {
    let unusable = |fault: String| CheckError::new(history, fault);
    let selection = Selection {
        filters: filters.to_vec(),
        ..Selection::default()
    };
    let source = BufReader::with_capacity(BUFFER, open(history).map_err(unusable)?);
    let mut verdicts = Verdicts::new(Scope::default());
    let (mut began, mut shown) = (None, BTreeMap::new());
    for entry in StreamDecoder::new(source) {
        let entry = Arc::new(entry.map_err(|fault| unusable(fault.to_string()))?);
        began.get_or_insert(entry.at);
        if let Some(ended) = verdicts.push(&entry)
            && selection.selects(&ended.facts())
        {
            let entries = ended.entries().iter().cloned();
            shown.extend(entries.map(|entry| (entry.seq, entry)));
        }
    }
    let (Some(began), false) = (began, shown.is_empty()) else {
        return Err(nothing_recorded(&selection, history));
    };
    let lines = report::timeline(began, shown.values().map(|entry| &**entry), &[]);
    Ok(lines.join("\n") + "\n")
}
