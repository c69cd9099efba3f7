//! The options of a run, filled by clap, and its exit codes.
#![expect(
    clippy::doc_markdown,
    reason = "doc comments are help texts here, shown as they stand"
)]

use std::ffi::OsStr;
use std::fmt::{self, Display};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::{EnumValueParser, OsStringValueParser, Resettable, TypedValueParser};
use clap::builder::{PossibleValue, StyledStr};
use clap::error::{ContextKind, ContextValue, Error};
use clap::{Arg, Args, ColorChoice, Command, ValueEnum};

use super::Target;
use super::console::ConsoleOptions;
use super::expectations::Expectations;
use crate::drive::{DriveOptions, TeardownPolicy};
use crate::history::RunId;
use crate::limits;
use crate::outcome::{RunReport, Verdict};
use crate::plan::Selection;

/// The exit codes as `--help` prints them.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  conformant: no MUST of a selected profile is broken, except as --expectations allows
  1  non-conformant: the runtime broke such a MUST, or an expected failure passed
  2  wrong usage, an invalid case file, or not a history; nothing was run
  3  undecided: the runtime could not be reached or was lost, it has no events, the run was
     interrupted or disturbed by a kubelet, every case was inconclusive, a recorded history is
     incomplete, or a report could not be written; or something that the run made could not be
     removed, though all is decided
  4  nothing ran: no case was selected, or all were skipped";

impl Exit {
    /// The exit code for a finished run. A broken rule takes precedence over an undecided case,
    /// unless the run was disturbed.
    pub fn from_report(report: &RunReport) -> Self {
        let any = |verdict| report.count(verdict) > 0;
        let mut cases = report.outcomes.iter().filter(|it| !it.is_invariant());
        if report.undecided().is_some() {
            Self::Undecided
        } else if any(Verdict::Fail) || any(Verdict::UnexpectedPass) {
            Self::NonConformant
        } else if let Some(watch) = &report.watch {
            match watch.nothing() {
                Some(_) => Self::NothingRan,
                None => Self::Conformant,
            }
        } else if cases.all(|case| case.verdict == Verdict::Skip) {
            Self::NothingRan
        } else {
            Self::Conformant
        }
    }

    /// The last line of the summary.
    pub(super) fn describe(self, report: &RunReport) -> String {
        let known = report.count(Verdict::Known);
        let meaning = match self {
            // As with `--fail-on` of a watch.
            Self::Conformant if report.count(Verdict::Fail) > 0 => {
                "a MUST is broken, which --fail-on leaves out".to_owned()
            }
            Self::Conformant if known == 0 => "no MUST is broken".to_owned(),
            Self::Conformant => format!("no MUST is broken, except {known} known to fail"),
            Self::NonConformant if report.count(Verdict::Fail) > 0 => {
                let mut faults = report.faults.iter();
                let interrupted = faults.find(|fault| fault.starts_with("interrupted by "));
                let interrupted = interrupted.map(|fault| format!("; {fault}"));
                "a MUST is broken".to_owned()
                    + &all_known(report)
                    + &interrupted.unwrap_or_default()
            }
            Self::NonConformant => "an expected failure passed".to_owned(),
            Self::Usage => "wrong usage".to_owned(),
            Self::Undecided => {
                let why = report.undecided();
                format!(
                    "{}, see above",
                    why.unwrap_or("a report could not be written")
                )
            }
            Self::NothingRan if report.watch.is_some() => {
                "no pod changed, so that nothing was judged".to_owned()
            }
            Self::NothingRan => "nothing ran".to_owned(),
        };
        format!("exit code {}: {meaning}", self as u8)
    }
}

/// How to accept the failures, if all are known for the runtime.
fn all_known(report: &RunReport) -> String {
    let failed = report.outcomes.iter();
    let mut failed = failed.filter(|outcome| outcome.verdict == Verdict::Fail);
    if failed.all(|outcome| outcome.hint.is_some()) {
        "; all failures are known: --expectations builtin accepts them".to_owned()
    } else {
        String::new()
    }
}

/// The format of a text that is not the result of a run. The help of the option lists only the
/// values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Lines for people.
    #[value(help = Resettable::Reset)]
    #[default]
    Text,
    /// JSON.
    #[value(help = Resettable::Reset)]
    Json,
}

/// The format of results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One line per case
    #[default]
    Pretty,
    /// libtest's terse format: one character per case
    Terse,
    /// libtest's JSON events
    Json,
    /// One line per case, and annotations of a GitHub workflow for new failures
    Github,
}

impl Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.write_str(value.as_ref().map_or("", PossibleValue::get_name))
    }
}

/// Parses a [`Format`]; for the name of a report it names the option that writes that report.
#[derive(Clone)]
struct FormatParser;

impl TypedValueParser for FormatParser {
    type Value = Format;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Format, Error> {
        let parser = EnumValueParser::<Format>::new();
        parser
            .parse_ref(command, argument, value)
            .map_err(|mut fault| {
                let option = match value.to_str() {
                    Some("junit" | "xml") => "--junit",
                    Some("html") => "--html",
                    Some("markdown" | "md") => "--markdown",
                    _ => return fault,
                };
                let tip = format!("`{option} FILE` writes this report; `-` is standard output");
                let tip = ContextValue::StyledStrs(vec![StyledStr::from(tip)]);
                fault.insert(ContextKind::Suggested, tip);
                fault
            })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let values = Format::value_variants().iter();
        Some(Box::new(values.filter_map(ValueEnum::to_possible_value)))
    }
}

// Doc comments of fields are the help of options.
/// The cases to run, and the reports.
#[derive(Args, Clone, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub struct RunOptions {
    #[arg(skip)]
    pub target: Target,
    /// The selected cases.
    #[command(flatten)]
    pub selection: Selection,
    /// Run only cases that failed or were undecided in a run, or in which an invariant was broken,
    /// by its JSON or JUnit report
    #[arg(long, value_name = "REPORT", hide_short_help = true)]
    #[arg(help_heading = "Selection")]
    pub rerun_failed: Option<PathBuf>,
    /// List the selected cases and exit; no runtime is needed
    ///
    /// With `--format terse` the list is in libtest's format.
    #[arg(long, help_heading = "Selection")]
    pub list: bool,
    /// Read cases from a file or directory instead of the built-in ones
    #[arg(long, value_name = "PATH", hide_short_help = true)]
    #[arg(help_heading = "Selection")]
    pub cases: Option<PathBuf>,
    /// Run each case N times
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(limits::REPETITIONS)),
        help_heading = "Execution"
    )]
    pub repeat: u32,
    /// The maximum number of parallel cases [default: twice the processors, at most 8]
    #[arg(long, value_name = "N", value_parser = threads, hide_short_help = true)]
    #[arg(help_heading = "Execution")]
    pub test_threads: Option<usize>,
    /// Start no further case after one has failed
    #[arg(long, help_heading = "Execution")]
    pub fail_fast: bool,
    /// Keep the pods of failed cases for inspection
    #[arg(long, conflicts_with = "pause_kubelet", help_heading = "Execution")]
    pub keep: bool,
    /// Stop the systemd unit of a kubelet that uses the runtime, and start it again however the run
    /// ends; needs --tier smoke, which ends before the node is not ready, or core, which does not
    #[arg(long, hide_short_help = true, help_heading = "Execution")]
    pub pause_kubelet: bool,
    /// The options of the driver.
    #[command(flatten)]
    pub drive: DriveOptions,
    /// How verdicts are reported.
    #[command(flatten)]
    pub report: ReportOptions,
    /// Serve a kubelet's PLEG metrics during the run, at an address such as 127.0.0.1:9101
    #[arg(long, value_name = "ADDRESS:PORT", hide_short_help = true)]
    #[arg(help_heading = "Output")]
    pub metrics_address: Option<SocketAddr>,
    /// Record the run for `check` and `show`, at most 1 GiB before compression
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub history: Option<PathBuf>,
}

/// How results are printed.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Look {
    /// How to print results
    #[arg(long, default_value_t = Format::Pretty, help_heading = "Output")]
    #[arg(value_parser = FormatParser)]
    pub format: Format,
    /// Show each failure and advice in full, not one failure of each cause
    #[arg(long, short, help_heading = "Output")]
    pub verbose: bool,
    /// List only the cases that failed or are undecided
    #[arg(long, short, help_heading = "Output", conflicts_with = "verbose")]
    pub quiet: bool,
}

/// How verdicts are reported.
#[derive(Args, Clone, Debug, Default)]
pub struct ReportOptions {
    /// Accept known failures of this runtime: those of a YAML file or, with `builtin`, those known
    /// to this suite
    ///
    /// `none` accepts none, not even those that a recorded run accepted.
    #[arg(long, value_name = "FILE")]
    #[arg(value_parser = OsStringValueParser::new().map(Expectations::named))]
    #[arg(help_heading = "Verdict")]
    pub expectations: Option<Expectations>,
    /// Write a draft of an expectation file: the failures, and those that --expectations lists and
    /// are not
    /// fixed; never overwrites a file
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    #[arg(help_heading = "Verdict")]
    pub write_expectations: Option<PathBuf>,
    /// How results are printed.
    #[command(flatten)]
    pub look: Look,
    /// When to use colours; NO_COLOR is respected
    #[arg(long, value_enum, default_value_t = ColorChoice::Auto)]
    #[arg(hide_short_help = true, help_heading = "Output")]
    pub color: ColorChoice,
    /// Write a JUnit XML report
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    #[arg(help_heading = "Output")]
    pub junit: Option<PathBuf>,
    /// Write a JSON report
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    #[arg(help_heading = "Output")]
    pub json: Option<PathBuf>,
    /// Write a Markdown summary, as a pull request shows it
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    #[arg(help_heading = "Output")]
    pub markdown: Option<PathBuf>,
    /// Write an HTML report, one file that shows each failure as a sequence diagram
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    #[arg(help_heading = "Output")]
    pub html: Option<PathBuf>,
    /// Write all reports to a directory
    ///
    /// The files are junit_cri_events.xml, report.json, summary.md, report.html and, for a run,
    /// history.binpb.
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub report_dir: Option<PathBuf>,
}

impl RunOptions {
    /// The number of cases that may run in parallel.
    pub fn threads(&self) -> usize {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        self.test_threads.unwrap_or((2 * processors).min(8))
    }

    /// The command that removes the leftovers of a run with these options.
    pub(super) fn clean_up_command(&self, run: &RunId) -> String {
        let logs = self.drive.pods.log_dir.as_deref();
        self.target.clean_up_command(run, logs)
    }

    /// Whether the pods of failed cases are removed.
    pub(super) fn teardown(&self) -> TeardownPolicy {
        if self.keep {
            TeardownPolicy::KeepFailed
        } else {
            TeardownPolicy::Remove
        }
    }

    /// One thread more than the parallel cases, which the execution limits itself: libtest-mimic
    /// starts no thread for a single one.
    pub(super) fn console_options(&self) -> ConsoleOptions {
        ConsoleOptions {
            look: self.report.look,
            threads: self.threads() + 1,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// No MUST of a selected profile is broken, except failures that the expectation file lists.
    Conformant = 0,
    /// The runtime broke a MUST of a selected profile, or an expected failure passed.
    NonConformant = 1,
    /// The command line or a case file is invalid, or a file is not a history. Nothing was run.
    Usage = 2,
    /// There is no verdict: the runtime could not be reached or was lost, it has no events, the run
    /// was interrupted or disturbed by a kubelet, every case was inconclusive, the recorded history
    /// is incomplete, or a report could not be written. Or all is decided, and something that the
    /// run created could not be removed.
    Undecided = 3,
    /// No case ran: the selection is empty, or every case was skipped.
    NothingRan = 4,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads) if (1..=limits::TEST_THREADS).contains(&threads) => Ok(threads),
        _ => Err(format!("it must be from 1 to {}", limits::TEST_THREADS)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Conformance;
    use crate::report;
    use crate::report::fixture::{fixture, outcome};

    #[test]
    fn a_runtime_without_events_is_never_green() {
        let exit = |events, verdict| {
            let mut report = fixture();
            report.faults.clear();
            report.outcomes = vec![outcome("FEA-02", "feature::off", verdict)];
            report.capabilities.events = events;
            Exit::from_report(&report)
        };
        assert_eq!(exit(Some(false), Verdict::Pass), Exit::Undecided);
        assert_eq!(exit(Some(false), Verdict::Fail), Exit::NonConformant);
        assert_eq!(exit(Some(true), Verdict::Pass), Exit::Conformant);
        assert_eq!(exit(None, Verdict::Pass), Exit::Conformant);
        assert_eq!(exit(None, Verdict::Skip), Exit::NothingRan);
    }

    #[test]
    fn a_disturbed_run_reports_no_failure() {
        let exit = |fault: &str| {
            let mut report = fixture();
            report.faults = vec![fault.to_owned()];
            report.outcomes = vec![outcome("NEG-05", "negative::ids", Verdict::Fail)];
            Exit::from_report(&report)
        };
        assert_eq!(exit("disturbed: a kubelet runs"), Exit::Undecided);
        assert_eq!(exit("interrupted by SIGINT"), Exit::NonConformant);
    }

    #[test]
    fn leftovers_change_the_exit_code_and_no_verdict() {
        let end = |faults: &[&str], verdict| {
            let mut report = fixture();
            report.faults = faults.iter().map(ToString::to_string).collect();
            report.outcomes = vec![outcome("SBX-06", "sandbox::removed", verdict)];
            let words = report.standings()[0].verdict;
            (Exit::from_report(&report).describe(&report), words)
        };
        let left = "not removed: container 6f1c: it is in use";
        let reason = "exit code 3: not all is removed, though all is decided, see above".to_owned();
        for fault in [left, "not cleaned up: ListPodSandbox: UNKNOWN"] {
            let ended = end(&[fault], Verdict::Pass);
            assert_eq!(ended, (reason.clone(), Conformance::Conformant));
        }
        let (failed, _) = end(&[left], Verdict::Fail);
        assert_eq!(failed, "exit code 1: a MUST is broken");
        let (undecided, words) = end(&[left, "interrupted by SIGINT"], Verdict::Pass);
        assert_eq!(undecided, "exit code 3: the run has a fault, see above");
        assert_eq!(words, Conformance::Error);
        let (undecided, _) = end(&[left], Verdict::Error);
        assert_eq!(undecided, "exit code 3: not all is decided, see above");
    }

    #[test]
    fn the_reason_of_exit_code_3_is_in_every_report() {
        let texts = |faults: &[&str]| {
            let mut report = fixture();
            report.faults = faults.iter().map(ToString::to_string).collect();
            report.outcomes = vec![outcome("SBX-06", "sandbox::removed", Verdict::Pass)];
            let [mut json, mut junit] = [Vec::new(), Vec::new()];
            report::json::write(&report, &mut json).unwrap();
            report::junit::write(&report, &mut junit).unwrap();
            let pages = [
                report::page(&report),
                report::html::page(&report, &[]),
                report::github::annotations(&report),
            ];
            let written = [json, junit].map(|bytes| String::from_utf8(bytes).unwrap());
            let last = Exit::from_report(&report).describe(&report);
            [&written[..], &pages, &[last]].concat()
        };
        let reason = "not all is removed, though all is decided";
        for text in texts(&["not removed: container 6f1c: it is in use"]) {
            assert!(text.contains(reason), "{text}");
        }
        for text in texts(&[]) {
            assert!(!text.contains(reason), "{text}");
        }
    }

    #[test]
    fn a_run_that_decides_nothing_is_never_green() {
        let exit = |verdicts: &[Verdict]| {
            let mut report = fixture();
            report.faults.clear();
            let case = |verdict: &Verdict| outcome("NEG-08", "negative::outside", *verdict);
            let invariant = outcome("INV-01", "invariant::order", Verdict::Pass);
            report.outcomes = verdicts.iter().map(case).chain([invariant]).collect();
            Exit::from_report(&report)
        };
        let open = Verdict::Inconclusive;
        assert_eq!(exit(&[open]), Exit::Undecided);
        assert_eq!(exit(&[open, Verdict::Skip]), Exit::Undecided);
        assert_eq!(exit(&[open, Verdict::Pass]), Exit::Conformant);
        assert_eq!(exit(&[open, Verdict::Known]), Exit::Conformant);
        assert_eq!(exit(&[open, Verdict::Fail]), Exit::NonConformant);
    }
}
