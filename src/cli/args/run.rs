//! What a run can be told: which cases, how they are run, and what is told of them.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{percent, threads};
use crate::cli::offered::OfferedArgs;
use crate::limits;

/// What to run and how to tell it.
#[derive(Debug, Args)]
pub(in crate::cli) struct RunArgs {
    #[command(flatten)]
    pub(in crate::cli) selection: SelectionArgs,
    /// Only cases that failed or were not decided in a run, by its JSON or JUnit report; also those
    /// in which an invariant was broken
    #[arg(
        long,
        value_name = "REPORT",
        hide_short_help = true,
        help_heading = "Selection"
    )]
    pub(in crate::cli) rerun_failed: Option<PathBuf>,
    /// List the selected cases and stop; no runtime is needed
    ///
    /// With `--format terse` the list is in libtest's format.
    #[arg(long, help_heading = "Selection")]
    pub(in crate::cli) list: bool,
    /// Panic after the first step of this case; for the suite's own tests
    #[arg(long, value_name = "ID", hide = true)]
    pub(in crate::cli) panic_in: Option<String>,
    /// Panic when this case is judged; for the suite's own tests
    #[arg(long, value_name = "ID", hide = true)]
    pub(in crate::cli) panic_judging: Option<String>,
    /// Read cases from a file or folder instead of the built-in ones
    #[arg(
        long,
        value_name = "PATH",
        hide_short_help = true,
        help_heading = "Selection"
    )]
    pub(in crate::cli) cases: Option<PathBuf>,
    /// Run each case so many times
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(limits::REPETITIONS)),
        help_heading = "Execution"
    )]
    pub(in crate::cli) repeat: u32,
    /// How many cases may run at once [default: twice the processors, at most 8]
    #[arg(
        long,
        value_name = "N",
        value_parser = threads,
        hide_short_help = true,
        help_heading = "Execution"
    )]
    pub(in crate::cli) test_threads: Option<usize>,
    /// Start no further case once one has failed
    #[arg(long, help_heading = "Execution")]
    pub(in crate::cli) fail_fast: bool,
    /// Leave the pods of failed cases for a look
    #[arg(long, help_heading = "Execution")]
    pub(in crate::cli) keep: bool,
    /// Stretch every bound on time by this factor, for slow machines
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = percent,
          hide_short_help = true, help_heading = "Execution")]
    pub(in crate::cli) timeout_scale: u32,
    /// Allow what a node may not bear, and cases that need it
    #[arg(
        long,
        value_name = "WHAT",
        value_delimiter = ',',
        hide_short_help = true,
        help_heading = "Execution"
    )]
    pub(in crate::cli) allow: Vec<AllowArg>,
    /// Make the directory for the logs of containers below this one [default: /var/log]
    #[arg(
        long,
        value_name = "DIR",
        hide_short_help = true,
        help_heading = "Execution"
    )]
    pub(in crate::cli) log_dir: Option<PathBuf>,
    /// Give pods this parent cgroup, such as test.slice where systemd makes cgroups
    /// [default: system.slice there, else the runtime's own]
    #[arg(
        long,
        value_name = "CGROUP",
        hide_short_help = true,
        help_heading = "Execution"
    )]
    pub(in crate::cli) cgroup_parent: Option<String>,
    /// Run this image, which must hold the workload program, instead of the suite's own
    #[arg(
        long,
        value_name = "REF",
        hide_short_help = true,
        help_heading = "Execution"
    )]
    pub(in crate::cli) image: Option<String>,
    /// The runtime handler (RuntimeClass handler) to run pods with
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true,
        hide_short_help = true,
        help_heading = "Execution"
    )]
    pub(in crate::cli) runtime_handler: String,
    #[command(flatten)]
    pub(in crate::cli) offered: OfferedArgs,
    #[command(flatten)]
    pub(in crate::cli) report: ReportArgs,
    /// Serve metrics as a kubelet's during the run, at an address such as 127.0.0.1:9101
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        hide_short_help = true,
        help_heading = "Output"
    )]
    pub(in crate::cli) metrics_address: Option<SocketAddr>,
    /// Write all that was seen and done, 1 GiB at most, for `check` and `show`
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(in crate::cli) history: Option<PathBuf>,
}

/// Which cases are meant.
#[derive(Debug, Args)]
pub(in crate::cli) struct SelectionArgs {
    /// Which cases [default: all of the tier]: an id or a part of an id or name, such as ORD-01 or
    /// order::
    ///
    /// Also a pattern for the whole, such as 'ORD-*'; tag:WORD; req:ID, by requirement; or
    /// invariants that alone shall judge, such as INV-15. Several filters select what any of them
    /// does.
    #[arg(value_name = "FILTER")]
    pub(in crate::cli) filter: Vec<String>,
    /// How large the run may be; each tier includes the smaller ones [default: extended, but for
    /// `check` all that was run]
    #[arg(long, value_enum, help_heading = "Selection")]
    pub(in crate::cli) tier: Option<TierArg>,
    /// For whom to judge; a broken rule that is a MUST for none of them is advice
    #[arg(
        long,
        value_name = "PROFILE",
        value_enum,
        value_delimiter = ',',
        help_heading = "Verdict"
    )]
    pub(in crate::cli) profile: Vec<ProfileArg>,
    /// Filters are whole ids or names
    #[arg(long, hide_short_help = true, help_heading = "Selection")]
    pub(in crate::cli) exact: bool,
    /// Leave out cases and invariants that this takes; may be repeated
    #[arg(long, value_name = "FILTER", help_heading = "Selection")]
    pub(in crate::cli) skip: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum TierArg {
    /// What no runtime should be without: one or two minutes
    Core,
    /// All that needs no more than the node: three to five minutes
    Extended,
    /// Also what is slow, or needs the node alone: some minutes more
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum ProfileArg {
    /// Kubelet 1.26 to 1.36, which believes what an event carries
    Cache,
    /// Kubelet 1.37 and later, which relists a pod when STOPPED comes
    Hint,
    /// Others, several of which may listen at once
    Observer,
    /// All of them, as by default; for `check`, instead of those of the run
    All,
}

/// How verdicts are told.
#[derive(Debug, Args)]
pub(in crate::cli) struct ReportArgs {
    /// Accept the failures that are known of this runtime: those of a YAML file or, with `builtin`,
    /// those that this suite knows of it
    #[arg(long, value_name = "FILE", help_heading = "Verdict")]
    pub(in crate::cli) expectations: Option<OsString>,
    /// Write a file of known failures to finish: what failed, and what --expectations lists and is
    /// not mended; never over a file that is there
    #[arg(
        long,
        value_name = "FILE",
        hide_short_help = true,
        help_heading = "Verdict"
    )]
    pub(in crate::cli) write_expectations: Option<PathBuf>,
    /// How to print results
    #[arg(long, value_enum, default_value_t = FormatArg::Pretty, help_heading = "Output")]
    pub(in crate::cli) format: FormatArg,
    /// When to colour them; NO_COLOR is obeyed
    #[arg(
        long,
        value_enum,
        default_value_t = ColorArg::Auto,
        hide_short_help = true,
        help_heading = "Output"
    )]
    pub(in crate::cli) color: ColorArg,
    /// Write a JUnit XML report
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(in crate::cli) junit: Option<PathBuf>,
    /// Write a JSON report
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(in crate::cli) json: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum FormatArg {
    /// A line for each case
    Pretty,
    /// libtest's terse format: a character for each case
    Terse,
    /// libtest's JSON events
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum ColorArg {
    Auto,
    Always,
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum AllowArg {
    /// Running where a kubelet lives, which removes pods that it does not know
    Kubelet,
    /// Setting the host's wall clock, by 10 s and for seconds
    ClockSteps,
    /// Stopping and starting the runtime, where no pods of others are
    Disruption,
    /// Stopping and starting the runtime under pods of others, too
    DisruptionWithForeignPods,
}
