//! The files and the verdict of commands that judge a history without running cases.

use std::path::{Path, PathBuf};

use super::expectations::ExpectationSource;
use super::outputs::{Conclusion, OutputPaths, Outputs, conclude};
use super::{Exit, Expectations, Format, ReportOptions, RunError, expectations};
use crate::case::load;
use crate::files;
use crate::history::{ExpectationFile, RunInfo};
use crate::outcome::RunReport;
use crate::verdicts::Known;

/// The output files of a report, opened, and the failures that it accepts.
#[derive(Debug)]
pub struct Reporting {
    format: Format,
    outputs: Outputs,
    history: Option<PathBuf>,
    accepted: ExpectationSource,
}

impl Reporting {
    pub fn open(options: &ReportOptions, history: Option<&Path>) -> Result<Self, RunError> {
        let accepted = match &options.expectations {
            None => ExpectationSource::Given(None),
            Some(Expectations::Builtin) => ExpectationSource::Builtin,
            Some(Expectations::File(path)) => {
                let cases = load::embedded().map_err(load::LoadError::from)?;
                let (file, _) = expectations::read(path, &cases)?;
                ExpectationSource::Given(Some(file))
            }
        };
        let paths = OutputPaths::new(options).with_history(history);
        Ok(Self {
            format: options.format,
            outputs: Outputs::open(&paths)?,
            history: paths.history().map(Path::to_owned),
            accepted,
        })
    }

    /// Begins the history file, if requested; also returns its path.
    pub fn begin_history(&mut self) -> Result<Option<(PathBuf, files::Output)>, RunError> {
        let file = self.outputs.begin_history()?;
        Ok(self.history.clone().zip(file))
    }

    /// The expectation file for this runtime; prints a note if there is no built-in one.
    pub fn expectations(&self, info: &RunInfo) -> Result<Option<ExpectationFile>, RunError> {
        Ok(self.accepted.clone().resolve(info)?)
    }

    /// Writes the reports and prints the summary, `head` first. Returns the exit code: `exit`,
    /// unless a report cannot be written.
    pub fn conclude(self, report: RunReport, known: &Known, exit: Exit, head: String) -> Exit {
        let history = self.history.map(|path| path.display().to_string());
        let conclusion = Conclusion {
            format: self.format,
            head,
            history,
            exit,
        };
        conclude(self.outputs, &[report], known, conclusion)
    }
}
