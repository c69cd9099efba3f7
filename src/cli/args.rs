//! The options, as clap reads them. Names and environment variables are those of crictl and
//! critest where they have the same meaning, and libtest's for selecting and printing.

#![expect(
    clippy::doc_markdown,
    reason = "doc comments are help texts here, shown as they stand"
)]

mod run;
mod unheeded;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use super::reports::{CompareArgs, SchemaArg};
use crate::limits;
use crate::model::{NamedFault, fault_named, faults};
use crate::run::EXIT_CODES;

pub(super) use run::{
    AllowArg, ColorArg, FormatArg, ProfileArg, ReportArgs, RunArgs, SelectionArgs, TierArg,
};

/// Conformance tests for a container runtime's event stream, the CRI's GetContainerEvents.
///
/// Runs the cases that a FILTER takes, or all, against a real runtime.
/// Needs access to the runtime's socket; makes host-network pods of its own, and removes them.
#[derive(Debug, Parser)]
#[command(
    name = "cri-event-conformance",
    version = crate::VERSION,
    after_help = EXIT_CODES,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub struct Cli {
    #[command(subcommand)]
    pub(super) command: Option<Command>,
    #[command(flatten)]
    pub(super) connection: ConnectionArgs,
    #[command(flatten)]
    pub(super) run: RunArgs,
}

impl Cli {
    /// What this process was told. Ends it if that is wrong, or asks for help.
    #[must_use]
    pub fn told() -> Self {
        let mut command = unheeded::hide(Self::command());
        let told = command.get_matches_mut();
        let heeded = unheeded::refuse(&mut command, &told);
        let cli = heeded.and_then(|()| Self::from_arg_matches(&told));
        cli.unwrap_or_else(|fault| fault.exit())
    }
}

/// What to do instead of running cases.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Remove what runs have left at the runtime: pods, containers, images
    Cleanup {
        /// Only those of this run, even if it still goes on
        #[arg(long, value_name = "ID")]
        run_id: Option<String>,
        /// Where those runs made their log directories, if they were given --log-dir
        #[arg(long, value_name = "DIR")]
        log_dir: Option<PathBuf>,
    },
    /// Write the image that containers run, to import where it cannot be pulled
    Image {
        /// The file to write
        #[arg(long, value_name = "FILE")]
        output: PathBuf,
        /// The archive's format
        #[arg(long, value_enum, default_value_t = ArchiveFormat::OciArchive)]
        format: ArchiveFormat,
        /// A name for the image; may be repeated [default: the name that a run looks for]
        #[arg(long, value_name = "REF")]
        tag: Vec<String>,
    },
    /// Judge a recorded run again, from its history alone: same verdicts, same reports
    Check(CheckArgs),
    /// Show a recorded history as a timeline
    Show {
        /// A file that --history wrote
        history: PathBuf,
    },
    /// Tell all about a case, an invariant, a requirement or a defect.
    ///
    /// Such as ORD-02, INV-15, R17 or drop-stopped.
    Explain {
        /// Its id or name
        id: String,
    },
    /// Show what happens on a node now: each event, its lag, what a kubelet makes of it.
    ///
    /// Only reads, and shows the pods of others, too. Ctrl-C ends it with a summary.
    Watch(WatchArgs),
    /// Serve the model runtime, which makes no real containers, to any client of the CRI
    Model {
        /// The socket to make, such as unix:///tmp/model.sock
        #[arg(long, value_name = "ENDPOINT")]
        listen: String,
    },
    /// List the defects that the model can be given
    Defects,
    /// Prove that every defect is noticed, that every case can fail, and that none does without.
    ///
    /// On the model; with --runtime-endpoint on a real runtime behind a relay that has the defects.
    Matrix(MatrixArgs),
    /// Measure the suite itself
    Bench {
        #[command(subcommand)]
        what: BenchCommand,
    },
    /// Compare two JSON reports: what got worse, what got better, what is new or gone
    ///
    /// Ends with exit code 1 if anything got worse.
    Compare(CompareArgs),
    /// Print the JSON Schema of a file that this suite reads or writes
    Schema {
        /// Which file
        of: SchemaArg,
    },
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// A file that --history wrote
    pub(super) history: PathBuf,
    /// Another recorded run of the runtime that --write-expectations is to be made of as well; may
    /// be repeated
    #[arg(
        long,
        value_name = "HISTORY",
        requires = "write_expectations",
        help_heading = "Verdict"
    )]
    pub(super) also: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) selection: SelectionArgs,
    #[command(flatten)]
    pub(super) report: ReportArgs,
}

#[derive(Debug, Args)]
pub(super) struct MatrixArgs {
    /// Try each defect on all cases, not only on those that it names
    #[arg(long)]
    pub(super) all_cases: bool,
    /// How often to try the model without a defect, in each permitted variation
    #[arg(
        long,
        value_name = "N",
        default_value_t = 2,
        value_parser = clap::value_parser!(u64).range(1..=1_000)
    )]
    pub(super) clean_runs: u64,
    /// Stretch every bound on time by this factor, and all that the model does late
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = percent)]
    pub(super) timeout_scale: u32,
    /// Failures that are known of the real runtime: the run without a defect may have them
    #[arg(long, value_name = "FILE")]
    pub(super) expectations: Option<PathBuf>,
    /// Write the table as Markdown
    #[arg(long, value_name = "FILE")]
    pub(super) markdown: Option<PathBuf>,
    /// Write the table as JSON
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct WatchArgs {
    /// How to print; json is one object a line
    #[arg(long, short, value_enum, default_value_t = OutputArg::Text)]
    pub(super) output: OutputArg,
    /// How late an event may be before it counts as missed, and how quiet a pod has to be before
    /// what relists and what events tell of it is compared
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration)]
    pub(super) within: Duration,
    /// Serve metrics at this address, such as 127.0.0.1:9101
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(super) metrics_address: Option<SocketAddr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputArg {
    Text,
    Json,
}

#[derive(Debug, Subcommand)]
pub(super) enum BenchCommand {
    /// How much longer a run takes than its bare RPCs, sent back to back at the same concurrency
    Overhead,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ArchiveFormat {
    /// For ctr, skopeo, podman
    OciArchive,
    /// For ctr, docker, podman
    DockerArchive,
}

/// How to reach the runtime.
#[derive(Debug, Args)]
pub(super) struct ConnectionArgs {
    /// The runtime's socket, such as unix:///run/containerd/containerd.sock; or `model`, for the
    /// model runtime within the suite, which needs no root and makes no real containers
    /// [default: from --config, else the first usual one that is there]
    #[arg(
        long,
        short,
        global = true,
        value_name = "ENDPOINT",
        env = "CONTAINER_RUNTIME_ENDPOINT",
        help_heading = "Runtime"
    )]
    pub(super) runtime_endpoint: Option<String>,
    /// The image service's socket [default: the runtime's]
    #[arg(
        long,
        short,
        global = true,
        value_name = "ENDPOINT",
        env = "IMAGE_SERVICE_ENDPOINT",
        hide_short_help = true,
        help_heading = "Runtime"
    )]
    pub(super) image_endpoint: Option<String>,
    /// Give the model these defects, by name; `defects` lists them
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        value_delimiter = ',',
        value_parser = defect,
        hide_short_help = true, help_heading = "Runtime"
    )]
    pub(super) defect: Vec<NamedFault>,
    /// Put a relay before the runtime that has these defects, `none` for a relay without any
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        value_delimiter = ',',
        value_parser = injected,
        hide_short_help = true, help_heading = "Runtime"
    )]
    pub(super) inject: Vec<Injected>,
    /// The deadline of each call, such as 30s; a bare number is seconds [default: 30s, times
    /// --timeout-scale]
    #[arg(
        long,
        short,
        global = true,
        value_parser = duration,
        hide_short_help = true,
        help_heading = "Runtime"
    )]
    pub(super) timeout: Option<Duration>,
    /// crictl's configuration file [default: /etc/crictl.yaml, if it is there]
    #[arg(
        long,
        short,
        global = true,
        value_name = "FILE",
        env = "CRI_CONFIG_FILE",
        hide_short_help = true,
        help_heading = "Runtime"
    )]
    pub(super) config: Option<PathBuf>,
}

/// A defect that a relay can have, or none.
pub(super) type Injected = Option<NamedFault>;

fn injected(name: &str) -> Result<Injected, String> {
    if name == "none" {
        return Ok(None);
    }
    let defect = defect(name)?;
    if defect.fault.is_on_the_way() {
        return Ok(Some(defect));
    }
    Err(
        "it is what a runtime does, not what happens to its answers and events; \
         only the model can have it, by --defect"
            .to_owned(),
    )
}

/// The defect of this name.
fn defect(name: &str) -> Result<NamedFault, String> {
    if let Some(defect) = fault_named(name) {
        return Ok(defect);
    }
    let close = |defect: &NamedFault| strsim::jaro_winkler(defect.name, name);
    let closest = faults().max_by(|a, b| close(a).total_cmp(&close(b)));
    let hint = closest.filter(|defect| close(defect) > 0.8);
    let hint = hint.map_or_else(String::new, |defect| format!("; is it `{}`?", defect.name));
    Err(format!(
        "there is no such defect{hint} `cri-event-conformance defects` lists all"
    ))
}

/// `30s`, `1m 30s`, or `30` as crictl takes it.
fn duration(text: &str) -> Result<Duration, String> {
    const LONGEST: Duration = Duration::from_secs(3600);
    let parsed = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => humantime::parse_duration(text)
            .map_err(|fault| format!("{fault}; write it as 30s, or as a number of seconds"))?,
    };
    if parsed.is_zero() || parsed > LONGEST {
        return Err("it must be more than nothing and at most an hour".to_owned());
    }
    Ok(parsed)
}

fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads) if (1..=limits::TEST_THREADS).contains(&threads) => Ok(threads),
        _ => Err(format!("it must be from 1 to {}", limits::TEST_THREADS)),
    }
}

/// A factor such as `2` or `0.5`, in percent.
fn percent(text: &str) -> Result<u32, String> {
    let parsed = text
        .parse::<f64>()
        .ok()
        .filter(|factor| (0.1..=100.0).contains(factor));
    let factor = parsed.ok_or("it must be a number from 0.1 to 100")?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 10 to 10,000, by the filter above"
    )]
    let percent = (factor * 100.0).round() as u32;
    Ok(percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
        unheeded::hide(Cli::command()).debug_assert();
    }

    #[test]
    fn durations_are_seconds_or_have_a_unit() {
        assert_eq!(duration("2"), Ok(Duration::from_secs(2)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert!(duration("0").is_err());
        assert!(duration("2 hours").is_err());
        assert!(duration("soon").is_err());
    }

    #[test]
    fn factors_are_bounded() {
        assert_eq!(percent("1"), Ok(100));
        assert_eq!(percent("0.5"), Ok(50));
        assert!(percent("0").is_err());
        assert!(percent("NaN").is_err());
        assert!(percent("1000").is_err());
    }
}
