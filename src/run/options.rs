//! The options of a run, filled by clap.

#![expect(
    clippy::doc_markdown,
    reason = "doc comments are help texts here, shown as they stand"
)]

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ColorChoice, ValueEnum};

use super::Target;
use super::console::ConsoleOptions;
use super::expectations::Expectations;
use crate::drive::{DriveOptions, TeardownPolicy};
use crate::history::RunId;
use crate::limits;
use crate::plan::Selection;

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
    #[arg(
        long,
        value_name = "REPORT",
        hide_short_help = true,
        help_heading = "Selection"
    )]
    pub rerun_failed: Option<PathBuf>,
    /// List the selected cases and exit; no runtime is needed
    ///
    /// With `--format terse` the list is in libtest's format.
    #[arg(long, help_heading = "Selection")]
    pub list: bool,
    /// Read cases from a file or directory instead of the built-in ones
    #[arg(
        long,
        value_name = "PATH",
        hide_short_help = true,
        help_heading = "Selection"
    )]
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
    #[arg(
        long,
        value_name = "N",
        value_parser = threads,
        hide_short_help = true,
        help_heading = "Execution"
    )]
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
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        hide_short_help = true,
        help_heading = "Output"
    )]
    pub metrics_address: Option<SocketAddr>,
    /// Record the run for `check` and `show`, at most 1 GiB before compression
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub history: Option<PathBuf>,
}

/// How verdicts are reported.
#[derive(Args, Clone, Debug, Default)]
pub struct ReportOptions {
    /// Accept known failures of this runtime: those of a YAML file or, with `builtin`, those known
    /// to this suite
    #[arg(
        long,
        value_name = "FILE",
        value_parser = OsStringValueParser::new().map(Expectations::named),
        help_heading = "Verdict"
    )]
    pub expectations: Option<Expectations>,
    /// Write a draft of an expectation file: the failures, and those that --expectations lists and
    /// are not
    /// fixed; never overwrites a file
    #[arg(
        long,
        value_name = "FILE",
        hide_short_help = true,
        help_heading = "Verdict"
    )]
    pub write_expectations: Option<PathBuf>,
    /// How to print results
    #[arg(long, value_enum, default_value_t = Format::Pretty, help_heading = "Output")]
    pub format: Format,
    /// When to use colours; NO_COLOR is respected
    #[arg(
        long,
        value_enum,
        default_value_t = ColorChoice::Auto,
        hide_short_help = true,
        help_heading = "Output"
    )]
    pub color: ColorChoice,
    /// Write a JUnit XML report
    #[arg(
        long,
        value_name = "FILE",
        hide_short_help = true,
        help_heading = "Output"
    )]
    pub junit: Option<PathBuf>,
    /// Write a JSON report
    #[arg(
        long,
        value_name = "FILE",
        hide_short_help = true,
        help_heading = "Output"
    )]
    pub json: Option<PathBuf>,
    /// Write a Markdown summary, as a pull request shows it
    #[arg(
        long,
        value_name = "FILE",
        hide_short_help = true,
        help_heading = "Output"
    )]
    pub markdown: Option<PathBuf>,
    /// Write an HTML report, one file that shows each failure as a sequence diagram
    #[arg(
        long,
        value_name = "FILE",
        hide_short_help = true,
        help_heading = "Output"
    )]
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
            format: self.report.format,
            threads: self.threads() + 1,
        }
    }
}

fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads) if (1..=limits::TEST_THREADS).contains(&threads) => Ok(threads),
        _ => Err(format!("it must be from 1 to {}", limits::TEST_THREADS)),
    }
}
