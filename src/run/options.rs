//! The options of a run, as clap fills them.

#![expect(
    clippy::doc_markdown,
    reason = "doc comments are help texts here, shown as they stand"
)]

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ColorChoice, ValueEnum};

use super::Tested;
use super::console::Look;
use super::known::Expectations;
use crate::drive::{DriveOptions, TeardownPolicy};
use crate::limits;
use crate::plan::Selection;

/// How the console shows a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A line for each case
    #[default]
    Pretty,
    /// libtest's terse format: a character for each case
    Terse,
    /// libtest's JSON events
    Json,
}

// Comments of fields are the help of options.
/// What to run and how to report it.
#[derive(Args, Clone, Debug, Default)]
pub struct RunOptions {
    /// The runtime.
    #[arg(skip)]
    pub tested: Tested,
    /// The cases that are wanted.
    #[command(flatten)]
    pub selection: Selection,
    /// Only cases that failed or were not decided in a run, by its JSON or JUnit report; also those
    /// in which an invariant was broken
    #[arg(
        long,
        value_name = "REPORT",
        hide_short_help = true,
        help_heading = "Selection"
    )]
    pub rerun_failed: Option<PathBuf>,
    /// List the selected cases and stop; no runtime is needed
    ///
    /// With `--format terse` the list is in libtest's format.
    #[arg(long, help_heading = "Selection")]
    pub list: bool,
    /// Read cases from a file or folder instead of the built-in ones
    #[arg(
        long,
        value_name = "PATH",
        hide_short_help = true,
        help_heading = "Selection"
    )]
    pub cases: Option<PathBuf>,
    /// Run each case so many times
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(limits::REPETITIONS)),
        help_heading = "Execution"
    )]
    pub repeat: u32,
    /// How many cases may run at once [default: twice the processors, at most 8]
    #[arg(
        long,
        value_name = "N",
        value_parser = threads,
        hide_short_help = true,
        help_heading = "Execution"
    )]
    pub test_threads: Option<usize>,
    /// Start no further case once one has failed
    #[arg(long, help_heading = "Execution")]
    pub fail_fast: bool,
    /// Leave the pods of failed cases for a look
    #[arg(long, help_heading = "Execution")]
    pub keep: bool,
    /// What the driver goes by.
    #[command(flatten)]
    pub drive: DriveOptions,
    /// How verdicts are reported.
    #[command(flatten)]
    pub report: ReportOptions,
    /// Serve metrics as a kubelet's during the run, at an address such as 127.0.0.1:9101
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        hide_short_help = true,
        help_heading = "Output"
    )]
    pub metrics_address: Option<SocketAddr>,
    /// Write all that was seen and done, 1 GiB at most, for `check` and `show`
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub history: Option<PathBuf>,
}

/// How verdicts are reported.
#[derive(Args, Clone, Debug, Default)]
pub struct ReportOptions {
    /// Accept the failures that are known of this runtime: those of a YAML file or, with `builtin`,
    /// those that this suite knows of it
    #[arg(
        long,
        value_name = "FILE",
        value_parser = OsStringValueParser::new().map(expectations),
        help_heading = "Verdict"
    )]
    pub expectations: Option<Expectations>,
    /// Write a file of known failures to finish: what failed, and what --expectations lists and is
    /// not mended; never over a file that is there
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
    /// When to colour them; NO_COLOR is obeyed
    #[arg(
        long,
        value_enum,
        default_value_t = ColorChoice::Auto,
        hide_short_help = true,
        help_heading = "Output"
    )]
    pub color: ColorChoice,
    /// Write a JUnit XML report
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub junit: Option<PathBuf>,
    /// Write a JSON report
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub json: Option<PathBuf>,
}

impl RunOptions {
    /// How many cases may run at once.
    #[must_use]
    pub fn threads(&self) -> usize {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        self.test_threads.unwrap_or((2 * processors).min(8))
    }

    /// What to do with the pods of a failed case.
    pub(super) fn teardown(&self) -> TeardownPolicy {
        if self.keep {
            TeardownPolicy::KeepFailed
        } else {
            TeardownPolicy::Remove
        }
    }

    pub(super) fn look(&self) -> Look {
        Look {
            format: self.report.format,
            threads: self.threads(),
        }
    }
}

fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads) if (1..=limits::TEST_THREADS).contains(&threads) => Ok(threads),
        _ => Err(format!("it must be from 1 to {}", limits::TEST_THREADS)),
    }
}

/// The built-in expectations by their name, or those of a file.
fn expectations(named: OsString) -> Expectations {
    if named == "builtin" {
        Expectations::Builtin
    } else {
        Expectations::File(named.into())
    }
}
