//! The files that a run writes. Each is opened before anything runs, so that an unwritable path is
//! reported at once; a report replaces an older one only when it is complete.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{Exit, Format};
use crate::files::Draft;
pub use crate::files::OutputError;
use crate::outcome::RunReport;
use crate::verdicts::{self, Known};
use crate::{report, terminal};

/// The paths of the output files.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OutputPaths<'a> {
    pub(super) junit: Option<&'a Path>,
    pub(super) json: Option<&'a Path>,
    pub(super) expectations: Option<&'a Path>,
    pub(super) history: Option<&'a Path>,
    /// A history that is read, which no output may overwrite.
    pub(super) judged: Option<&'a Path>,
}

/// The requested output files.
#[derive(Debug, Default)]
pub(super) struct Outputs {
    junit: Option<Draft>,
    json: Option<Draft>,
    expectations: Option<Draft>,
    history: Option<Draft>,
    history_is_cut: bool,
}

/// The result of writing the reports.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// A line for each report that was written.
    pub(super) lines: Vec<String>,
    /// The errors of those that were not.
    pub(super) faults: Vec<OutputError>,
}

impl Outputs {
    /// Opens drafts of all files; if one fails, none is left behind.
    pub(super) fn open(places: OutputPaths<'_>) -> Result<Self, OutputError> {
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
        let drafts: Vec<&Draft> = [&self.junit, &self.json, &self.expectations, &self.history]
            .into_iter()
            .flatten()
            .collect();
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

    /// Begins the history file of the run.
    pub(super) fn begin_history(&mut self) -> Result<Option<File>, OutputError> {
        self.history.take().map(Draft::begin).transpose()
    }

    /// Notes the error of the history file, if any, at the end of the run.
    pub(super) fn history_ended(&mut self, fault: Option<String>) -> Option<String> {
        self.history_is_cut = fault.is_some();
        fault
    }

    /// Whether the history file is complete.
    pub(super) fn history_is_whole(&self) -> bool {
        !self.history_is_cut
    }

    /// The files that are useless without a report.
    pub(super) fn unfinished(&self) -> Vec<PathBuf> {
        let drafts = [&self.junit, &self.json, &self.expectations, &self.history];
        let places = drafts
            .into_iter()
            .flatten()
            .filter_map(Draft::temporary_path);
        places.map(Path::to_owned).collect()
    }

    /// Writes the reports on the first run, and the expectation file of all runs, as far as
    /// possible. `known` are the failures that were accepted.
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

/// Removes empty files of our own; errors are ignored, since a leftover does no harm.
pub(super) fn remove(files: &[PathBuf]) {
    for file in files {
        let _ = fs::remove_file(file);
    }
}

/// Writes the reports, prints the summary, and returns the run's exit code, even if a report cannot
/// be written.
pub(super) fn conclude(
    format: Format,
    outputs: Outputs,
    reports: &[RunReport],
    known: &Known,
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
    let exit = match Exit::from_report(report) {
        Exit::Conformant if !written.faults.is_empty() => Exit::Undecided,
        exit => exit,
    };
    summary.push_str(&exit.describe(report));
    summary.push('\n');
    if format == Format::Json {
        terminal::say(summary.trim_end());
    } else {
        // The report already contains a closed output as a fault.
        let _ = terminal::print(&summary);
    }
    for fault in &written.faults {
        terminal::say(&format!("error: {fault}"));
    }
    exit
}
