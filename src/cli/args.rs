//! The command-line arguments. Options and environment variables are named as in crictl and critest
//! where they mean the same, and as in libtest for selection and output.

#![expect(
    clippy::doc_markdown,
    reason = "doc comments are help texts here, shown as they stand"
)]

use std::ffi::{OsStr, OsString};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::{PossibleValuesParser, StyledStr};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use super::mistakes;
use super::reports::{CompareArgs, GateArgs, MatrixReportArgs, SchemaArg};
use super::sonobuoy::SonobuoyArgs;
use crate::case::did_you_mean;
use crate::catalogue::Catalogue;
use crate::doctor::DoctorOptions;
use crate::explore::ExploreOptions;
use crate::history::StatusCode;
use crate::history::messages::METHODS;
use crate::limits::duration;
use crate::matrix::MatrixOptions;
use crate::measure::MeasureOptions;
use crate::model::{Effect, FaultyCalls, NamedFault, fault_named, faults};
use crate::run::{CheckOptions, EXIT_CODES, RunOptions};
use crate::watch::WatchOptions;
use crate::workload::LINKS;

/// Conformance tests for a container runtime's event stream, the CRI's GetContainerEvents.
///
/// Runs the cases that match a FILTER, or all cases, against a real runtime.
/// Needs access to the runtime's socket; creates its own host-network pods and removes them.
#[derive(Debug, Parser)]
#[command(name = "cri-event-conformance", version = crate::VERSION)]
#[command(after_help = EXIT_CODES, subcommand_negates_reqs = true)]
#[command(disable_help_subcommand = true, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub(super) command: Option<Command>,
    #[command(flatten)]
    pub(super) connection: ConnectionArgs,
    #[command(flatten)]
    pub(super) run: RunOptions,
    /// Whether an output is `-`, so that texts go to standard error.
    #[arg(skip)]
    pub(super) leaves_stdout: bool,
}

impl Cli {
    /// Parses the arguments of this process. Exits if they are invalid; returns the help or the
    /// version if they ask for it.
    pub fn parse_args() -> Result<Self, StyledStr> {
        let mut args: Vec<_> = std::env::args_os().collect();
        let name = args.first().and_then(|path| Path::new(path).file_name());
        // `kubectl debug` replaces the entry point of an image by the command.
        let command = LINKS
            .into_iter()
            .find(|link| name == Some(OsStr::new(link)));
        if let Some(command) = command {
            args.insert(1, command.into());
        }
        Self::parse_from_args(args).map_err(|fault| {
            if fault.exit_code() != 0 {
                fault.exit()
            }
            fault.render()
        })
    }

    /// The command line as help, completions and manual pages show it.
    pub(super) fn shown() -> clap::Command {
        mistakes::hide(Self::command())
    }

    /// The command line for completions: with the ids and names that its arguments accept.
    pub(super) fn completed(catalogue: &Catalogue) -> clap::Command {
        fn complete(command: clap::Command, catalogue: &Catalogue) -> clap::Command {
            let command = command.mut_args(|argument| {
                let values: Vec<String> = match argument.get_id().as_str() {
                    "filter" | "filters" | "skip" => {
                        catalogue.checkers().map(|it| it.id.to_owned()).collect()
                    }
                    "id" => catalogue.known(),
                    "defect" => faults().map(|it| it.name.to_owned()).collect(),
                    _ => return argument,
                };
                argument.value_parser(PossibleValuesParser::new(values))
            });
            command.mut_subcommands(|command| complete(command, catalogue))
        }
        complete(Self::shown(), catalogue)
    }

    /// Parses arguments that begin with the name of the program.
    pub fn parse_from_args(
        args: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    ) -> Result<Self, clap::Error> {
        let mut command = Self::shown();
        let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
        mistakes::refuse_help_of_nothing(&mut command, &args)?;
        let matches = command.try_get_matches_from_mut(mistakes::as_options(args))?;
        mistakes::refuse(&mut command, &matches)?;
        mistakes::refuse_to_overwrite(&mut command, &matches)?;
        let leaves_stdout = mistakes::use_stdout(&mut command, &matches)?;
        Ok(Self {
            leaves_stdout,
            ..Self::from_arg_matches(&matches)?
        })
    }
}

/// A command; without one, cases are run.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run cases, as without a command.
    ///
    /// Runs the cases that match a FILTER, or all cases.
    Run(Box<RunOptions>),
    /// Remove pods, containers and images that earlier runs left behind
    Cleanup {
        /// Only those of this run, even if it is still in progress
        #[arg(long, value_name = "ID")]
        run_id: Option<String>,
        /// The parent of the runs' log directories, if they used --log-dir
        #[arg(long, value_name = "DIR")]
        log_dir: Option<PathBuf>,
    },
    /// Write the test image to a file, for import into a runtime that cannot pull it.
    ///
    /// With --suite, the image of this program, to run the suite in a pod.
    Image {
        /// The file to write
        #[arg(long, value_name = "FILE")]
        output: PathBuf,
        /// The archive's format
        #[arg(long, value_enum, default_value_t = ArchiveFormat::OciArchive)]
        format: ArchiveFormat,
        /// A name for the image; may be repeated [default: the name that a run expects]
        #[arg(long, value_name = "REF")]
        tag: Vec<String>,
        /// Write the image of this program instead, which has to be linked statically
        #[arg(long)]
        suite: bool,
    },
    /// Judge a recorded run again from its history, with the same verdicts and reports
    Check(CheckOptions),
    /// Show a recorded history, or some of its cases, as a timeline
    Show {
        /// A file written by --history
        history: PathBuf,
        /// Cases to show [default: the whole history]: as for `check`
        #[arg(value_name = "FILTER")]
        filters: Vec<String>,
        /// Write it as a trace instead, to be opened at `https://ui.perfetto.dev`
        #[arg(long, value_name = "FILE")]
        perfetto: Option<PathBuf>,
    },
    /// Explain what the output names: a case, rule, guarantee, finding or page.
    ///
    /// For example ORD-02, INV-15, R17, Complete, missing-stopped, cache, order or drop-stopped; or
    /// a page about a defect of a runtime, as an issue of its project.
    Explain(ExplainArgs),
    /// Stream a node's pod events, the lifecycle events a kubelet derives from them, and the rules
    /// they break.
    ///
    /// Read-only; shows all pods of the node. Ctrl-C ends it with a summary; with --for it ends
    /// with the verdict and the exit code of a run.
    Watch(WatchOptions),
    /// Run cases as a plugin of Sonobuoy: hand the reports over, then wait for a signal.
    ///
    /// Takes the arguments of a run.
    Sonobuoy(Box<SonobuoyArgs>),
    /// Measure the latency and the cost of events, and a kubelet's savings by them.
    ///
    /// Creates its own pods, as a run does, and removes them. Takes some minutes.
    Measure(MeasureOptions),
    /// Report whether this node is fit for Evented PLEG, and has it enabled at both ends.
    ///
    /// Read-only. Exit codes: 0 ready, 1 not ready, 3 cannot tell.
    Doctor(DoctorOptions),
    /// Serve the model runtime, which runs no real containers, to any CRI client
    Model {
        /// The socket to create, such as unix:///tmp/model.sock
        #[arg(long, value_name = "ENDPOINT")]
        listen: String,
    },
    /// Put a faulty runtime before a kubelet or another consumer.
    ///
    /// Serves a socket, and passes all calls to the runtime unchanged, but those that --defect or
    /// --call changes.
    Relay(RelayArgs),
    /// List the defects that the model can simulate
    Defects,
    /// Verify that every defect is detected, and every case can fail.
    ///
    ///  On the model; with --runtime-endpoint, on a real runtime behind a relay that injects
    /// defects.
    Matrix(MatrixOptions),
    /// Take random walks, judge them like cases, and shrink each failure to a case.
    ///
    /// A walk is a plan of legal operations by several clients, made from a seed.
    Explore(Box<ExploreOptions>),
    /// Compare two JSON reports: regressions, improvements, new and removed cases
    ///
    /// The exit code is 1 if anything got worse.
    Compare(CompareArgs),
    /// Judge JSON reports by a policy: one verdict, one exit code.
    ///
    /// For a pipeline or a roll-out; see ci/policies. The exit code is 0 if all rules of the policy
    /// pass, 1 if one fails, and 3 if one cannot be decided.
    Gate(GateArgs),
    /// Print many JSON reports side by side, as one page of Markdown.
    ///
    /// A row for each case, a column for each report: of many nodes, runtimes or versions.
    MatrixReport(MatrixReportArgs),
    /// Print the JSON Schema of a file that the suite reads or writes
    Schema {
        /// Which file
        #[arg(value_name = "case|expectations|policy|report|doctor")]
        of: SchemaArg,
    },
    /// Print how fast the counts grow that ci/soak has sampled
    #[command(hide = true)]
    Growth {
        /// Lines of seconds, count, life and number, separated by tabs
        samples: PathBuf,
    },
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages, one for the program and one for each command
    Man {
        /// The directory to write them to
        #[arg(long, value_name = "DIR")]
        output_dir: PathBuf,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ArchiveFormat {
    /// For ctr, skopeo, podman
    OciArchive,
    /// For ctr, docker, podman
    DockerArchive,
}

/// What to explain, and where.
#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// Its id or name
    #[arg(required_unless_present = "pages")]
    pub(super) id: Option<String>,
    /// Cases of a file or directory instead of the built-in ones
    #[arg(long, value_name = "PATH")]
    pub(super) cases: Option<PathBuf>,
    /// Write all that can be explained to a directory, as Markdown pages of an mdBook
    #[arg(long, value_name = "DIR", conflicts_with = "id")]
    pub(super) pages: Option<PathBuf>,
    /// Print a page about a defect of one runtime alone, to be filed as an issue
    #[arg(long, conflicts_with = "pages")]
    pub(super) issue: bool,
}

/// The socket of a relay, and its faults beside defects.
#[derive(Debug, Args)]
pub(super) struct RelayArgs {
    /// The socket to create, such as unix:///tmp/relay.sock
    #[arg(long, value_name = "ENDPOINT")]
    pub(super) listen: String,
    /// Let calls of these methods be late, fail or hang, such as ListContainers
    #[arg(
        long,
        value_name = "METHOD",
        value_delimiter = ',',
        requires = "effect"
    )]
    #[arg(value_parser = method)]
    call: Vec<String>,
    /// Pass their answers on later by this time, such as 5s; a plain number is seconds
    #[arg(long, value_parser = duration, allow_negative_numbers = true)]
    #[arg(group = "effect", requires = "call")]
    delay: Option<Duration>,
    /// Answer them with this gRPC code, such as UNAVAILABLE; the runtime does not get them
    #[arg(long, value_name = "CODE", value_parser = code, group = "effect", requires = "call")]
    fail: Option<StatusCode>,
    /// Never answer them; the runtime does not get them
    #[arg(long, group = "effect", requires = "call")]
    hang: bool,
    /// Only the N-th, 2N-th and further calls of each method [default: 1/1]
    #[arg(long, value_name = "1/N", value_parser = rate, requires = "call")]
    rate: Option<NonZeroU64>,
}

impl RelayArgs {
    pub(super) fn faulty(&self) -> Option<FaultyCalls> {
        let effect = match (self.delay, self.fail) {
            (Some(delay), _) => Effect::Delay(delay),
            (_, Some(code)) => Effect::Fail(code),
            (None, None) if self.hang => Effect::Hang,
            (None, None) => return None,
        };
        let every = self.rate.unwrap_or(NonZeroU64::MIN);
        Some(FaultyCalls::new(&self.call, effect, every))
    }
}

fn method(name: &str) -> Result<String, String> {
    let mut methods = METHODS.split(' ');
    if methods.any(|known| known == name) {
        return Ok(name.to_owned());
    }
    let hint = did_you_mean(name, METHODS.split(' '));
    Err(hint.unwrap_or_else(|| "it is no method of the CRI, such as ContainerStatus".to_owned()))
}

fn code(name: &str) -> Result<StatusCode, String> {
    let code = StatusCode::named(name).filter(|code| *code != StatusCode::OK);
    code.ok_or_else(|| "it is no code of a failure in gRPC, such as NOT_FOUND".to_owned())
}

fn rate(text: &str) -> Result<NonZeroU64, &'static str> {
    let number = text
        .strip_prefix("1/")
        .and_then(|number| number.parse().ok());
    number.ok_or("write it as 1/20, for each twentieth call")
}

/// How to reach the runtime.
#[derive(Clone, Debug, Args)]
pub(super) struct ConnectionArgs {
    /// The runtime's socket, such as unix:///run/containerd/containerd.sock; or `model` for the
    /// built-in model runtime, which needs no root and runs no real containers
    /// [default: from --config, else the first usual socket that exists]
    #[arg(long, short, global = true, value_name = "ENDPOINT", aliases = ["endpoint", "runtime"])]
    #[arg(env = "CONTAINER_RUNTIME_ENDPOINT", help_heading = "Runtime")]
    pub(super) runtime_endpoint: Option<String>,
    /// The image service's socket [default: the runtime's]
    #[arg(long, short, global = true, value_name = "ENDPOINT")]
    #[arg(env = "IMAGE_SERVICE_ENDPOINT", hide_short_help = true)]
    #[arg(help_heading = "Runtime")]
    pub(super) image_endpoint: Option<String>,
    /// Give the model, or `relay`, these defects; `defects` lists them
    #[arg(long, global = true, value_name = "NAME", value_delimiter = ',')]
    #[arg(value_parser = defect, hide_short_help = true)]
    #[arg(help_heading = "Runtime")]
    pub(super) defect: Vec<NamedFault>,
    /// Put a relay in front of the runtime that injects these defects; `none` for a relay without
    /// any
    #[arg(long, global = true, value_name = "NAME", value_delimiter = ',')]
    #[arg(value_parser = injected, hide_short_help = true)]
    #[arg(help_heading = "Runtime")]
    pub(super) inject: Vec<Injected>,
    /// The deadline of each call, such as 30s; a plain number is seconds [default: 30s, times
    /// --timeout-scale]
    #[arg(long, short, global = true, value_parser = duration, allow_negative_numbers = true)]
    #[arg(hide_short_help = true, help_heading = "Runtime")]
    pub(super) timeout: Option<Duration>,
    /// crictl's configuration file [default: /etc/crictl.yaml, if it exists]
    #[arg(long, short, global = true, value_name = "FILE")]
    #[arg(env = "CRI_CONFIG_FILE", hide_short_help = true)]
    #[arg(help_heading = "Runtime")]
    pub(super) config: Option<PathBuf>,
}

/// A defect that a relay can inject, or none.
pub(super) type Injected = Option<NamedFault>;

pub(super) fn injected(name: &str) -> Result<Injected, String> {
    if name == "none" {
        return Ok(None);
    }
    let defect = defect(name)?;
    if defect.fault.is_relayable() {
        return Ok(Some(defect));
    }
    Err(
        "it changes the behaviour of the runtime, not only its answers and events; \
         only the model can have it, with --defect"
            .to_owned(),
    )
}

fn defect(name: &str) -> Result<NamedFault, String> {
    if let Some(defect) = fault_named(name) {
        return Ok(defect);
    }
    let close = |defect: &NamedFault| strsim::jaro_winkler(defect.name, name);
    let closest = faults().max_by(|a, b| close(a).total_cmp(&close(b)));
    let hint = closest.filter(|defect| close(defect) > 0.8);
    let hint = hint.map_or_else(String::new, |defect| {
        format!(" (did you mean `{}`?)", defect.name)
    });
    Err(format!(
        "there is no such defect{hint}; `cri-event-conformance defects` lists all"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
        Cli::shown().debug_assert();
    }
}
