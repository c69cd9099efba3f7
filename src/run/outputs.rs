//! The files that a run writes. Each is opened before anything runs, so that an unwritable path is
//! reported at once; a report replaces an older one only when it is complete.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::console::COLUMNS;
use super::{Exit, Format, Look, ReportOptions};
use crate::case::load;
pub use crate::files::OutputError;
use crate::files::{Draft, Output};
use crate::history::{Body, Entry, RunEnd, RunInfo, Seq};
use crate::outcome::RunReport;
use crate::report::{github, html};
use crate::verdicts::{self, Known, Scope, Verdicts};
use crate::{files, host, report, terminal};

/// The name of the JUnit report in the directory of `--report-dir`. Prow's Spyglass and `TestGrid`
/// look for `junit*.xml`.
pub const JUNIT: &str = "junit_cri_events.xml";
const JSON: &str = "report.json";
const MARKDOWN: &str = "summary.md";
const HTML: &str = "report.html";
const HISTORY: &str = "history.binpb";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Report {
    Junit,
    Json,
    Markdown,
    Html,
}

#[derive(Debug, Default)]
pub(super) struct Outputs {
    reports: Vec<(Report, Draft)>,
    expectations: Option<Draft>,
    history: Option<Draft>,
    history_path: Option<PathBuf>,
    history_is_cut: bool,
    /// The path of the cases, unless they are built in.
    pub(super) cases: Option<PathBuf>,
    pub(super) info: RunInfo,
}

#[derive(Debug, Default)]
pub(super) struct Written {
    /// A line for each report that was written.
    pub(super) lines: Vec<String>,
    /// The errors of the others.
    pub(super) faults: Vec<OutputError>,
}

impl Outputs {
    /// Opens drafts of the reports and the expectation file; if one fails, none is left behind.
    pub(super) fn open(options: &ReportOptions) -> Result<Self, OutputError> {
        let directory = options.report_dir.as_ref();
        if let Some(directory) = directory {
            files::create_directory("reports", directory)?;
        }
        let mut outputs = Self::default();
        for (report, what, given, name) in [
            (Report::Junit, "JUnit report", &options.junit, JUNIT),
            (Report::Json, "JSON report", &options.json, JSON),
            (
                Report::Markdown,
                "Markdown report",
                &options.markdown,
                MARKDOWN,
            ),
            (Report::Html, "HTML report", &options.html, HTML),
        ] {
            let usual = directory.map(|directory| directory.join(name));
            if let Some(path) = given.as_ref().or(usual.as_ref()) {
                outputs.reports.push((report, Draft::open(what, path)?));
            }
        }
        let expectations = options.write_expectations.as_ref();
        let new = |path: &PathBuf| Draft::open_new("expectation file", path);
        outputs.expectations = expectations.map(new).transpose()?;
        outputs.differ()?;
        Ok(outputs)
    }

    /// Opens the history of the run as well: a file, or the usual one in the directory of reports.
    pub(super) fn with_history(
        mut self,
        given: Option<&Path>,
        options: &ReportOptions,
    ) -> Result<Self, OutputError> {
        let usual = options.report_dir.as_ref().map(|it| it.join(HISTORY));
        self.history_path = given.map(Path::to_owned).or(usual);
        let path = self.history_path.as_deref();
        let draft = path.map(|path| Draft::open("history", path));
        self.history = draft.transpose()?;
        self.differ()?;
        Ok(self)
    }

    fn differ(&self) -> Result<(), OutputError> {
        let reports = self.reports.iter().map(|(_, draft)| draft);
        let others = self.expectations.iter().chain(&self.history);
        let drafts: Vec<&Draft> = reports.chain(others).collect();
        for (place, draft) in drafts.iter().enumerate() {
            for before in &drafts[..place] {
                draft.differs_from(before.what(), before.path())?;
            }
        }
        Ok(())
    }

    /// The path of the JSON report, where that of an earlier run may still be.
    pub(super) fn json(&self) -> Option<&Path> {
        let mut reports = self.reports.iter();
        let (_, draft) = reports.find(|(report, _)| *report == Report::Json)?;
        Some(draft.path())
    }

    pub(super) fn history(&self) -> Option<&Path> {
        self.history_path.as_deref()
    }

    /// Begins the history file of the run.
    pub(super) fn begin_history(&mut self) -> Result<Option<Output>, OutputError> {
        self.history.take().map(Draft::begin).transpose()
    }

    /// Records the error of the history file, if any, at the end of the run.
    pub(super) fn history_ended(&mut self, fault: Option<String>) -> Option<String> {
        self.history_is_cut = fault.is_some();
        fault
    }

    pub(super) fn history_is_whole(&self) -> bool {
        !self.history_is_cut
    }

    /// Writes the reports on a run that was refused for this reason, and prints their paths.
    pub(super) fn write_refusal(self, reason: String) {
        let mut verdicts = Verdicts::new(Scope::default());
        let end = RunEnd {
            removed: true,
            faults: vec![reason],
            ..RunEnd::default()
        };
        let (seq, at) = (Seq::default(), host::now());
        for body in [
            Body::RunBegan(self.info.clone().into()),
            Body::RunEnded(end),
        ] {
            verdicts.push(&Arc::new(Entry { seq, at, body }));
        }
        let refused = Self {
            expectations: None,
            ..self
        };
        let written = refused.write(&[verdicts.report(None)], &Known::default());
        for line in written.lines {
            terminal::say(&line);
        }
        for fault in written.faults {
            terminal::say(&format!("error: {fault}"));
        }
    }

    /// Writes the reports on the first run, and the expectation file of all runs, as far as
    /// possible. `known` are the failures that were accepted.
    pub(super) fn write(self, reports: &[RunReport], known: &Known) -> Written {
        let report = &reports[0];
        let mut written = Written::default();
        for (kind, draft) in self.reports {
            written.add(Some(draft), |out| match kind {
                Report::Junit => report::junit::write(report, out),
                Report::Json => report::json::write(report, out),
                Report::Markdown => out.write_all(report::page(report).as_bytes()),
                Report::Html => {
                    let requirements = load::requirements(self.cases.as_deref());
                    let requirements = requirements.map_err(io::Error::other)?;
                    out.write_all(html::page(report, &requirements).as_bytes())
                }
            });
        }
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

/// The output at the end besides the reports.
#[derive(Debug)]
pub(super) struct Conclusion {
    pub(super) look: Look,
    /// The first line; omitted if empty.
    pub(super) head: String,
    /// The history that was written or judged.
    pub(super) history: Option<String>,
    /// The exit code, if all reports can be written.
    pub(super) exit: Exit,
}

/// The command that shows more of a failure that is not known of the runtime, or the page about one
/// that is.
fn next(report: &RunReport, history: Option<&str>) -> Option<String> {
    let Some(unknown) = report::clearest(&report.outcomes) else {
        let mut failed = report.outcomes.iter();
        let page = failed.find_map(|outcome| outcome.pages.first())?;
        let page = report::printable(page);
        return Some(format!("cri-event-conformance explain {page}"));
    };
    Some(match history {
        Some(history) => {
            format!(
                "cri-event-conformance check {history} {} --verbose",
                unknown.id
            )
        }
        None => "--history FILE keeps the evidence, and --html FILE draws it".to_owned(),
    })
}

/// Writes the reports, prints the summary, and returns the exit code, even if a report cannot be
/// written.
pub(super) fn conclude(
    outputs: Outputs,
    reports: &[RunReport],
    known: &Known,
    conclusion: Conclusion,
) -> Exit {
    let Conclusion {
        look,
        head,
        history,
        exit,
    } = conclusion;
    let report = &reports[0];
    let written = outputs.write(reports, known);
    let columns = terminal::columns().unwrap_or(COLUMNS);
    let head = head
        .lines()
        .map(|line| report::wrapped(line, columns) + "\n");
    let mut summary = head.collect::<String>() + &report::summary(report, look.verbose, columns);
    for line in written.lines {
        summary.push_str(&line);
        summary.push('\n');
    }
    if let Some(history) = &history {
        summary.extend(["history: ", history, "\n"]);
    }
    if let Some(next) = next(report, history.as_deref()) {
        summary.extend(["next: ", &next, "\n"]);
    }
    let exit = match exit {
        Exit::Conformant if !written.faults.is_empty() => Exit::Undecided,
        exit => exit,
    };
    summary.push_str(&report::wrapped(&exit.describe(report), columns));
    summary.push('\n');
    // The report already contains a closed output as a fault.
    let _ = match look.format {
        Format::Json => {
            terminal::say(summary.trim_end());
            Ok(())
        }
        Format::Pretty | Format::Terse => terminal::print(&summary),
        Format::Github => {
            let token = uuid::Uuid::new_v4().to_string();
            let summary = github::without_commands(&summary, &token);
            terminal::print(&(summary + &github::annotations(report)))
        }
    };
    for fault in &written.faults {
        terminal::say(&format!("error: {fault}"));
    }
    exit
}
