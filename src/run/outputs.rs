//! The files that a run writes. Each is opened before anything runs, so that a path which cannot be
//! written is told at once; a report replaces its predecessor only when it is complete.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{Exit, Format};
use crate::files::Draft;
pub use crate::files::OutputError;
use crate::outcome::RunReport;
use crate::verdicts::{self, Known};
use crate::{report, terminal};

/// Where the user wants what.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Places<'a> {
    pub(super) junit: Option<&'a Path>,
    pub(super) json: Option<&'a Path>,
    pub(super) expectations: Option<&'a Path>,
    pub(super) history: Option<&'a Path>,
    /// A history that is read.
    pub(super) judged: Option<&'a Path>,
}

/// The files that the user asked for.
#[derive(Debug, Default)]
pub(super) struct Outputs {
    junit: Option<Draft>,
    json: Option<Draft>,
    expectations: Option<Draft>,
    history: Option<Draft>,
    history_is_cut: bool,
}

/// What became of the reports.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// A line for each that is there now.
    pub(super) lines: Vec<String>,
    /// Why others are not.
    pub(super) faults: Vec<OutputError>,
}

impl Outputs {
    /// Drafts of all of them; where that fails, none is left.
    pub(super) fn open(places: Places<'_>) -> Result<Self, OutputError> {
        let open = |what, path: Option<&Path>| path.map(|path| Draft::open(what, path)).transpose();
        let new = |path| Draft::open_new("expectation file", path);
        let outputs = Self {
            junit: open("JUnit report", places.junit)?,
            json: open("JSON report", places.json)?,
            expectations: places.expectations.map(new).transpose()?,
            history: open("history", places.history)?,
            history_is_cut: false,
        };
        outputs.differ(places.judged)?;
        Ok(outputs)
    }

    fn differ(&self, judged: Option<&Path>) -> Result<(), OutputError> {
        let drafts = [&self.junit, &self.json, &self.expectations, &self.history];
        let drafts: Vec<&Draft> = drafts.into_iter().flatten().collect();
        for (place, draft) in drafts.iter().enumerate() {
            for before in &drafts[..place] {
                draft.differs_from(before.what(), before.path())?;
            }
            if let Some(judged) = judged {
                draft.differs_from("history", judged)?;
            }
        }
        Ok(())
    }

    /// The history's file, for the run that now begins.
    pub(super) fn begin_history(&mut self) -> Result<Option<File>, OutputError> {
        self.history.take().map(Draft::begin).transpose()
    }

    /// The run is over, and this is what is wrong with its history's file, if anything is.
    pub(super) fn history_ended(&mut self, fault: Option<String>) -> Option<String> {
        self.history_is_cut = fault.is_some();
        fault
    }

    /// Whether nothing of the history was lost.
    pub(super) fn history_is_whole(&self) -> bool {
        !self.history_is_cut
    }

    /// The files that are of no use unless the run comes to a report.
    pub(super) fn unfinished(&self) -> Vec<PathBuf> {
        let drafts = [&self.junit, &self.json, &self.expectations, &self.history];
        let places = drafts.into_iter().flatten().filter_map(Draft::beside);
        places.map(Path::to_owned).collect()
    }

    /// Writes each report that can be written: of the first one, and the expectation file of all.
    /// `known` is what they were judged by.
    pub(super) fn write(self, reports: &[RunReport], known: &Known) -> Written {
        let report = &reports[0];
        let mut written = Written::default();
        written.add(self.junit, |out| report::junit::write(report, out));
        written.add(self.json, |out| report::json::write(report, out));
        written.add(self.expectations, |out| {
            out.write_all(verdicts::expectations(reports, known).as_bytes())
        });
        written
    }
}

impl Written {
    fn add(&mut self, draft: Option<Draft>, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) {
        let Some(draft) = draft else { return };
        let line = format!("{}: {}", draft.what(), draft.path().display());
        match draft.complete(write) {
            Ok(()) => self.lines.push(line),
            Err(fault) => self.faults.push(fault),
        }
    }
}

/// Removes files that are empty and ours; if one stays, it harms nobody.
pub(super) fn remove(files: &[PathBuf]) {
    for file in files {
        let _ = fs::remove_file(file);
    }
}

/// Writes the reports, prints the summary, and returns the run's exit code. A report that cannot be
/// written keeps none of this back.
pub(super) fn conclude(
    format: Format,
    outputs: Outputs,
    (reports, known): (&[RunReport], &Known),
    history: Option<String>,
) -> Exit {
    let report = &reports[0];
    let written = outputs.write(reports, known);
    let mut summary = report::summary(report);
    for line in written.lines {
        summary.push_str(&line);
        summary.push('\n');
    }
    if let Some(history) = history {
        summary.extend(["history: ", &history, "\n"]);
    }
    let exit = match Exit::of(report) {
        Exit::Conformant if !written.faults.is_empty() => Exit::Undecided,
        exit => exit,
    };
    summary.push_str(&exit.in_words(report));
    summary.push('\n');
    if format == Format::Json {
        terminal::say(summary.trim_end());
    } else {
        // A reader that is gone has been told of in the report.
        let _ = terminal::print(&summary);
    }
    for fault in &written.faults {
        terminal::say(&format!("error: {fault}"));
    }
    exit
}
