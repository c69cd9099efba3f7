//! The options of a run that its session goes by: how it treats the node, and what it makes pods
//! with.

#![expect(
    clippy::doc_markdown,
    reason = "doc comments are help texts here, shown as they stand"
)]

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::sabotage::Sabotage;
use super::user_hooks::UserHooks;
use crate::limits::TimeoutScale;

// Comments of fields are the help of options.
/// What a session goes by.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct DriveOptions {
    /// Multiply all timeouts by this factor, for slow machines
    #[arg(
        long,
        value_name = "FACTOR",
        default_value = "1",
        hide_short_help = true,
        help_heading = "Execution"
    )]
    pub timeout_scale: TimeoutScale,
    /// Allow what a node may not bear, and cases that need it
    #[arg(
        long,
        value_name = "WHAT",
        value_delimiter = ',',
        hide_short_help = true,
        help_heading = "Execution"
    )]
    pub allow: Vec<Allowance>,
    /// How pods are made.
    #[command(flatten)]
    pub pods: PodOptions,
    /// What the user provides for the cases that need it.
    #[command(flatten)]
    pub hooks: UserHooks,
    /// Where this suite shall fail, for its own tests.
    #[arg(skip = Sabotage::from_environment())]
    pub sabotage: Sabotage,
}

// Comments of fields are the help of options.
/// How pods are made, for every command that makes some.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct PodOptions {
    /// Make the directory for the logs of containers below this one [default: /var/log]
    #[arg(
        long,
        value_name = "DIR",
        hide_short_help = true,
        help_heading = "Execution"
    )]
    pub log_dir: Option<PathBuf>,
    /// Give pods this parent cgroup, such as test.slice where systemd makes cgroups
    /// [default: system.slice there, else the runtime's own]
    #[arg(
        long,
        value_name = "CGROUP",
        value_parser = cgroup,
        hide_short_help = true,
        help_heading = "Execution"
    )]
    pub cgroup_parent: Option<String>,
    /// Run this image, which must hold the workload program, instead of the suite's own
    #[arg(
        long,
        value_name = "REF",
        hide_short_help = true,
        help_heading = "Execution"
    )]
    pub image: Option<String>,
    /// The runtime handler (RuntimeClass handler) to run pods with
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true,
        hide_short_help = true,
        help_heading = "Execution"
    )]
    pub runtime_handler: String,
}

/// Something that a node may not bear.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Allowance {
    /// Running where a kubelet lives, which removes pods that it does not know
    Kubelet,
    /// Setting the host's wall clock, by 10 s and for seconds
    ClockSteps,
    /// Stopping and starting the runtime, where no pods of others are
    Disruption,
    /// Stopping and starting the runtime under pods of others, too
    DisruptionWithForeignPods,
}

/// A parent cgroup, which cannot lead out of the hierarchy; empty for the runtime's own.
fn cgroup(text: &str) -> Result<String, String> {
    let is_plain =
        |name: &str| !matches!(name, "" | "." | "..") && !name.contains(|it: char| it.is_control());
    let is_slice = text.strip_suffix(".slice").is_some() && !text.contains('/') && is_plain(text);
    let path = text.strip_prefix('/');
    if text.is_empty() || is_slice || path.is_some_and(|path| path.split('/').all(is_plain)) {
        return Ok(text.to_owned());
    }
    Err("it must be a slice, as test.slice, or an absolute path without `..`, as /test".to_owned())
}
