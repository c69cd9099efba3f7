//! The options, as clap reads them. Names and environment variables are those of crictl and
//! critest where they have the same meaning, and libtest's for selecting and printing.

#![expect(
    clippy::doc_markdown,
    reason = "doc comments are help texts here, shown as they stand"
)]

mod unheeded;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use super::reports::{CompareArgs, SchemaArg};
use crate::limits::duration;
use crate::matrix::MatrixOptions;
use crate::model::{NamedFault, fault_named, faults};
use crate::run::{CheckOptions, EXIT_CODES, RunOptions};
use crate::watch::WatchOptions;

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
    pub(super) run: RunOptions,
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
    Check(CheckOptions),
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
    Watch(WatchOptions),
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
    Matrix(MatrixOptions),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
        unheeded::hide(Cli::command()).debug_assert();
    }
}
