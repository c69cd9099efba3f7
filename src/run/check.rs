//! The commands that judge a history without running cases: `check` judges a recorded run again,
//! `show --perfetto` turns it, or some of its cases, into a trace with its violations, and
//! `show FILTER` prints the timeline of some of its cases.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufReader};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use tokio_util::sync::CancellationToken;

use super::console::{self, ConsoleOptions, Trial};
use super::expectations::{self, ExpectationSource};
use super::outputs::{Conclusion, Outputs, conclude};
use super::select::{nothing_recorded, unmatched_invariant};
use super::{Exit, Expectations, Look, ReportOptions, RunError};
use crate::case::load;
use crate::files::{self, Draft};
use crate::history::codec::StreamDecoder;
use crate::history::{Body, Entry, ExpectationFile, RunInfo, Seq};
use crate::outcome::{Outcome, RunReport};
use crate::plan::Selection;
use crate::verdicts::{Accepted, EndedCase, Known, Scope, Verdicts};
use crate::{limits, report, terminal};

/// Bytes per read: larger than most messages, so that they need not be copied.
const BUFFER: usize = 1 << 17;

// Doc comments of fields are the help of options.
/// The options of `check`.
#[derive(Args, Clone, Debug)]
pub struct CheckOptions {
    /// A file written by --history
    pub history: PathBuf,
    /// Another recorded run of the runtime to include in --write-expectations; may be repeated
    #[arg(long, value_name = "HISTORY", requires = "write_expectations")]
    #[arg(help_heading = "Verdict")]
    pub also: Vec<PathBuf>,
    /// The selected cases of the run.
    #[command(flatten)]
    pub selection: Selection,
    /// How verdicts are reported.
    #[command(flatten)]
    pub report: ReportOptions,
}

/// A file that cannot be judged at all.
#[derive(Debug, thiserror::Error)]
#[error("read the history {}: {fault}", path.display())]
pub struct CheckError {
    path: PathBuf,
    fault: String,
}

/// The verdicts of a history, as far as it is readable.
pub(super) struct Replayed {
    pub(super) verdicts: Verdicts,
    pub(super) damage: Option<String>,
}

impl CheckError {
    pub(super) fn new(path: &Path, fault: String) -> Self {
        let path = path.to_owned();
        Self { path, fault }
    }
}

/// The output files of a report, opened, and the failures that it accepts.
#[derive(Debug)]
pub struct Reporting {
    look: Look,
    outputs: Outputs,
    accepted: ExpectationSource,
}

impl Reporting {
    pub fn open(options: &ReportOptions, history: Option<&Path>) -> Result<Self, RunError> {
        let cases = load::embedded().map_err(load::LoadError::from)?;
        Ok(Self {
            look: options.look,
            accepted: ExpectationSource::open(options.expectations.as_ref(), &cases)?,
            outputs: Outputs::open(options)?.with_history(history, options)?,
        })
    }

    /// Begins the history file, if requested; also returns its path.
    pub fn begin_history(&mut self) -> Result<Option<(PathBuf, files::Output)>, RunError> {
        let file = self.outputs.begin_history()?;
        Ok(self.outputs.history().map(Path::to_owned).zip(file))
    }

    /// The expectation file for this runtime; prints a note if there is no built-in one.
    pub fn expectations(&self, info: &RunInfo) -> Result<Option<ExpectationFile>, RunError> {
        Ok(self.accepted.clone().resolve(info)?)
    }

    /// Writes the reports and prints the summary, `head` first. Returns the exit code: `exit`,
    /// unless a report cannot be written.
    pub fn conclude(self, report: RunReport, known: &Known, exit: Exit, head: String) -> Exit {
        let history = self.outputs.history();
        let history = history.map(|path| path.display().to_string());
        let conclusion = Conclusion {
            look: self.look,
            head,
            history,
            exit,
        };
        conclude(self.outputs, &[report], known, conclusion)
    }
}

/// Judges a recorded run again and returns the exit code that the run would have.
///
/// A damaged history is judged up to the damage.
pub fn check(options: &CheckOptions) -> Result<Exit, RunError> {
    if let Some(fault) = unmatched_invariant(&options.selection) {
        return Err(fault);
    }
    let scope = Scope {
        selection: options.selection.clone(),
        accepted: accepted(options)?,
    };
    let outputs = Outputs::open(&options.report)?;
    let (report, verdicts, also) = read_all(options, &scope)?;
    let is_of_rules = report.watch.is_some() && options.selection.names_no_case();
    if !verdicts.has_cases() && options.selection.is_partial() && !is_of_rules {
        return Err(nothing_recorded(&options.selection, &options.history));
    }
    if let Some(Expectations::File(path)) = &options.report.expectations {
        expectations::require_runtime(verdicts.known(), path, &report.info)?;
    }
    if options.report.expectations == Some(Expectations::Builtin)
        && verdicts.known().known.is_empty()
    {
        terminal::say(&expectations::none_for(&report.info.runtime.runtime_name));
    }
    show(options, verdicts.outcomes(), &report);
    let history = Some(options.history.display().to_string());
    let mut reports = vec![report];
    reports.extend(also);
    let conclusion = Conclusion {
        look: options.report.look,
        head: String::new(),
        history,
        exit: Exit::from_report(&reports[0]),
    };
    Ok(conclude(outputs, &reports, verdicts.known(), conclusion))
}

fn accepted(options: &CheckOptions) -> Result<Accepted, RunError> {
    match &options.report.expectations {
        None => Ok(Accepted::Recorded),
        Some(Expectations::None) => Ok(Accepted::Listed(Box::default())),
        Some(Expectations::Builtin) => Ok(Accepted::Builtin),
        Some(Expectations::File(path)) => {
            // The history may contain cases of another version of the suite.
            let cases = load::embedded().map_err(load::LoadError::from)?;
            let (_, known) = expectations::read(path, &cases)?;
            Ok(Accepted::Listed(Box::new(known)))
        }
    }
}

/// The report of the recorded run, and the reports of the further runs.
fn read_all(
    options: &CheckOptions,
    scope: &Scope,
) -> Result<(RunReport, Verdicts, Vec<RunReport>), CheckError> {
    let (report, verdicts) = read(&options.history, scope)?;
    let runtime = &report.info.runtime.runtime_name;
    let mut also = Vec::new();
    for path in &options.also {
        let (other, _) = read(path, scope)?;
        let found = &other.info.runtime.runtime_name;
        if found != runtime {
            let fault = format!(
                "it is a run of {}, but an expectation file is for one runtime, here {}",
                report::printable(found),
                report::printable(runtime)
            );
            return Err(CheckError::new(path, fault));
        }
        also.push(other);
    }
    Ok((report, verdicts, also))
}

/// The report of a recorded run; prints the position of any damage.
fn read(path: &Path, scope: &Scope) -> Result<(RunReport, Verdicts), CheckError> {
    let unusable = |fault: String| CheckError::new(path, fault);
    let judged =
        open(path).and_then(|file| replay(scope.clone(), file, |_, _| ControlFlow::Continue(())));
    let Replayed {
        mut verdicts,
        damage,
    } = judged.map_err(unusable)?;
    if let Some(damage) = &damage {
        terminal::say(&format!("error: {}", unusable(damage.clone())));
    }
    Ok((verdicts.report(damage), verdicts))
}

pub(super) fn open(path: &Path) -> Result<File, String> {
    files::open(path).map_err(|fault| fault.to_string())
}

/// Prints a line for each outcome, and details of those that did not pass.
fn show(options: &CheckOptions, outcomes: Vec<Outcome>, report: &RunReport) {
    let info = &report.info;
    terminal::say(&format!(
        "judging run {} of {} {} again, recorded by suite {}",
        report::printable(info.run.as_str()),
        report::printable(&info.runtime.runtime_name),
        report::printable(&info.runtime.runtime_version),
        report::printable(&info.suite),
    ));
    let trial = |outcome: Outcome| {
        let name = console::name(&outcome.id, &outcome.name, outcome.repetition);
        if outcome.is_invariant() {
            Trial::invariant(name, move || outcome)
        } else {
            Trial::case(name, move || outcome)
        }
    };
    let look = ConsoleOptions {
        look: options.report.look,
        threads: 1,
    };
    let trials = outcomes.into_iter().map(trial).collect();
    // There is nothing to stop when the output is closed.
    let _ = console::present(look, trials, &CancellationToken::new());
}

/// Judges the entries of a source, passing each to `see`, with the selected case that ends with it,
/// until it breaks with a reason. An error concerns the source as a whole.
pub(super) fn replay(
    scope: Scope,
    source: impl io::Read,
    mut see: impl FnMut(&Arc<Entry>, Option<&EndedCase>) -> ControlFlow<String>,
) -> Result<Replayed, String> {
    let mut verdicts = Verdicts::new(scope);
    let mut next = 0;
    let mut damage = None;
    for entry in StreamDecoder::new(BufReader::with_capacity(BUFFER, source)) {
        match entry {
            Ok(entry) if entry.seq == Seq(next) => {
                next += 1;
                let entry = Arc::new(entry);
                let ended = verdicts.push(&entry);
                if let ControlFlow::Break(reason) = see(&entry, ended.as_ref()) {
                    damage = Some(reason);
                    break;
                }
                if let Some(ended) = ended {
                    judge(&mut verdicts, &entry, ended);
                }
            }
            Ok(entry) => {
                damage = Some(format!(
                    "entry #{next} is missing: #{} is in its place; later entries are not judged",
                    entry.seq
                ));
                break;
            }
            Err(fault) if next == 0 => return Err(fault.to_string()),
            Err(fault) => {
                damage = Some(fault.to_string());
                break;
            }
        }
    }
    if next == 0 {
        return Err("it is empty".to_owned());
    }
    Ok(Replayed { verdicts, damage })
}

/// Judges the case that ends with an entry.
fn judge(verdicts: &mut Verdicts, entry: &Arc<Entry>, ended: EndedCase) {
    let run = ended.run();
    if let Ok(judged) = catch_unwind(AssertUnwindSafe(|| ended.judge())) {
        verdicts.settle(judged);
    } else {
        // A panic is this case's error and affects no other case, as in a run.
        let body = Body::Unjudged {
            case: run,
            skipped: false,
            reason: "the suite itself failed: it panicked when it judged the case".to_owned(),
        };
        let (seq, at) = (entry.seq, entry.at);
        verdicts.push(&Arc::new(Entry { seq, at, body }));
    }
}

/// Writes the trace of a history, or of its selected cases, up to any damage, and returns the text
/// to print.
pub fn trace(history: &Path, filters: &[String], output: &Path) -> Result<String, RunError> {
    let draft = Draft::open("Perfetto trace", output)?;
    let shown = shown(history, &of_cases(filters))?;
    let trace = report::perfetto(&shown.entries, &shown.report.outcomes);
    let line = format!("{}: {}\n", draft.what(), draft.path().display());
    draft.complete(|out| out.write_all(&trace))?;
    match shown.damage {
        Some(damage) => Err(damage.into()),
        None => Ok(line),
    }
}

/// The timeline of the selected cases in a history, each entry once, and its end if it is damaged.
pub fn timeline(
    history: &Path,
    filters: &[String],
) -> Result<(String, Option<CheckError>), RunError> {
    let mut selection = of_cases(filters);
    if filters.is_empty() {
        // The timeline of the whole needs no verdict.
        selection.only = Some(BTreeSet::new());
    }
    let shown = shown(history, &selection)?;
    let entries = shown.entries.iter().map(|entry| &**entry);
    let lines = report::timeline(shown.report.began, entries, &[]);
    Ok((lines.join("\n") + "\n", shown.damage))
}

/// The entries to show, and the report about them.
struct Shown {
    entries: Vec<Arc<Entry>>,
    report: RunReport,
    damage: Option<CheckError>,
}

fn of_cases(filters: &[String]) -> Selection {
    Selection {
        filters: filters.to_vec(),
        ..Selection::default()
    }
}

/// The entries of the selected cases, or all without filters, up to the limit.
fn shown(history: &Path, selection: &Selection) -> Result<Shown, RunError> {
    let unusable = |fault| CheckError::new(history, fault);
    let scope = Scope {
        selection: selection.clone(),
        ..Scope::default()
    };
    let (mut entries, mut room) = (BTreeMap::new(), limits::HISTORY_BYTES);
    let mut keep = |entry: &Arc<Entry>| match room.checked_sub(entry.approximate_bytes()) {
        Some(left) => {
            room = left;
            entries.insert(entry.seq, entry.clone());
            ControlFlow::Continue(())
        }
        None => ControlFlow::Break(too_long_to_show()),
    };
    let source = open(history).map_err(unusable)?;
    let replayed = replay(scope, source, |entry, ended| match ended {
        _ if selection.filters.is_empty() => keep(entry),
        Some(ended) => ended.entries().iter().try_for_each(&mut keep),
        None => ControlFlow::Continue(()),
    });
    let Replayed {
        mut verdicts,
        damage,
    } = replayed.map_err(unusable)?;
    if entries.is_empty() {
        return Err(nothing_recorded(selection, history));
    }
    Ok(Shown {
        entries: entries.into_values().collect(),
        report: verdicts.report(damage.clone()),
        damage: damage.map(unusable),
    })
}

/// The reason why only the beginning of a history is shown.
fn too_long_to_show() -> String {
    format!(
        "only the first {} MiB of it can be shown at once; name the cases to show, as \
         `show HISTORY FILTER` does",
        limits::HISTORY_BYTES >> 20
    )
}
