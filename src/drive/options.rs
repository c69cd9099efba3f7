//! The options of a session: how it treats the node, how it makes pods, the commands of the user,
//! and failures that the tests of this suite provoke.

#![expect(
    clippy::doc_markdown,
    reason = "doc comments are help texts here, shown as they stand"
)]

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::host::RuntimeCommands;
use crate::limits::TimeoutScale;

// Comments of fields are the help of options.
/// The options of a session.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(next_help_heading = "Execution")]
pub struct DriveOptions {
    /// Multiply all timeouts by this factor, for slow machines
    #[arg(
        long,
        value_name = "FACTOR",
        default_value = "1",
        allow_negative_numbers = true
    )]
    #[arg(hide_short_help = true)]
    pub timeout_scale: TimeoutScale,
    /// Permit actions that can disturb the node, and the cases that need them
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    #[arg(hide_short_help = true)]
    pub allow: Vec<Allowance>,
    /// Whether lists are streamed, as by a kubelet with the feature gate CRIListStreaming (1.36 and
    /// later); a runtime without such calls is asked for whole lists
    #[arg(long, value_enum, value_name = "HOW", default_value_t = ListStreaming::Off)]
    #[arg(hide_short_help = true)]
    pub list_streaming: ListStreaming,
    /// How pods are made.
    #[command(flatten)]
    pub pods: PodOptions,
    /// Commands and handlers of the user, for the cases that need them.
    #[command(flatten)]
    pub hooks: UserHooks,
    /// Where this suite shall fail, for its own tests.
    #[arg(skip = Sabotage::from_environment())]
    pub sabotage: Sabotage,
}

// Comments of fields are the help of options.
/// How pods are made, for every command that makes some.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(next_help_heading = "Execution")]
pub struct PodOptions {
    /// Make the directory for the logs of containers below this one [default: /var/log]
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    pub log_dir: Option<PathBuf>,
    /// Give pods this parent cgroup, such as test.slice where systemd makes cgroups
    /// [default: system.slice there, else the runtime's own]
    #[arg(long, value_name = "CGROUP", value_parser = cgroup)]
    #[arg(hide_short_help = true)]
    pub cgroup_parent: Option<String>,
    /// Run this image, which must hold the workload program, instead of the suite's own
    #[arg(long, value_name = "REF", hide_short_help = true)]
    pub image: Option<String>,
    /// The runtime handler (RuntimeClass handler) to run pods with
    #[arg(long, value_name = "NAME", default_value = "")]
    #[arg(hide_default_value = true, hide_short_help = true)]
    pub runtime_handler: String,
}

/// An action that can disturb the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Allowance {
    /// Running where a kubelet lives, which removes pods that it does not know
    Kubelet,
    /// Setting the host's wall clock, by 10 s and for seconds
    ClockSteps,
    /// Stopping and starting the runtime, where no foreign pods are
    Disruption,
    /// Stopping and starting the runtime under foreign pods, too
    DisruptionWithForeignPods,
}

/// Whether lists are streamed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ListStreaming {
    /// ListPodSandbox and ListContainers
    #[default]
    Off,
    /// StreamPodSandboxes and StreamContainers
    On,
    /// Each list both ways, to compare the answers
    Both,
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

// Comments of fields are the help of options.
/// Commands and handlers that only the user can provide. An empty text or variable is none.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(next_help_heading = "Execution")]
pub struct UserHooks {
    /// A command for `sh -c` that makes a container outside the CRI, waits for its end and removes
    /// it, such as 'ctr --namespace beside run --rm --null-io IMAGE outsider COMMAND'
    #[arg(long, value_name = "COMMAND")]
    #[arg(env = "CRI_EVENT_CONFORMANCE_OUTSIDE_CRI", hide_short_help = true)]
    pub outside_cri: Option<String>,
    /// A runtime handler whose low-level runtime dies when a container's environment asks for it,
    /// as ci/lib/faulty-runtime does
    #[arg(long, value_name = "NAME")]
    #[arg(env = "CRI_EVENT_CONFORMANCE_FAULTY_HANDLER", hide_short_help = true)]
    pub faulty_handler: Option<String>,
    /// A command for `sh -c` that stops the runtime and returns once it has ended
    #[arg(long, value_name = "COMMAND")]
    #[arg(env = "CRI_EVENT_CONFORMANCE_RUNTIME_STOP_CMD")]
    #[arg(requires = "runtime_start_cmd", hide_short_help = true)]
    pub runtime_stop_cmd: Option<String>,
    /// A command for `sh -c` that starts the runtime again and returns
    #[arg(long, value_name = "COMMAND")]
    #[arg(env = "CRI_EVENT_CONFORMANCE_RUNTIME_START_CMD")]
    #[arg(requires = "runtime_stop_cmd", hide_short_help = true)]
    pub runtime_start_cmd: Option<String>,
    /// A command for `sh -c` that kills the runtime by SIGKILL and returns once it has ended;
    /// without it, the process that serves the socket is killed
    #[arg(long, value_name = "COMMAND")]
    #[arg(env = "CRI_EVENT_CONFORMANCE_RUNTIME_KILL_CMD")]
    #[arg(requires = "runtime_start_cmd", hide_short_help = true)]
    pub runtime_kill_cmd: Option<String>,
    /// A command for `sh -c` that prints the log of the runtime, such as 'cat /var/log/crio.log'
    #[arg(long, value_name = "COMMAND")]
    #[arg(env = "CRI_EVENT_CONFORMANCE_RUNTIME_LOG_CMD", hide_short_help = true)]
    pub runtime_log_cmd: Option<String>,
    /// The systemd unit of the runtime, such as containerd, to stop, kill and start it by
    /// `systemctl`, and to read its log by `journalctl`; it takes precedence over the three
    /// commands
    #[arg(long, value_name = "UNIT", value_parser = unit, hide_short_help = true)]
    pub runtime_unit: Option<String>,
}

impl UserHooks {
    /// A command that makes a container which no call of the CRI makes.
    pub fn outside_cri(&self) -> Option<&str> {
        given(self.outside_cri.as_ref())
    }

    /// The runtime handler whose low-level runtime dies on demand.
    pub fn faulty_handler(&self) -> Option<&str> {
        given(self.faulty_handler.as_ref())
    }

    /// The commands that stop, kill and start the runtime.
    pub fn runtime_commands(&self) -> Option<RuntimeCommands> {
        if let Some(unit) = &self.runtime_unit {
            return Some(commands_of_unit(unit));
        }
        let by = |command| given(command).map(str::to_owned);
        Some(RuntimeCommands {
            stop: by(self.runtime_stop_cmd.as_ref())?,
            kill: by(self.runtime_kill_cmd.as_ref()),
            start: by(self.runtime_start_cmd.as_ref())?,
        })
    }

    /// The command that prints the runtime's log.
    pub fn runtime_log(&self) -> Option<Cow<'_, str>> {
        let given = given(self.runtime_log_cmd.as_ref()).map(Cow::from);
        let unit = self.runtime_unit.as_ref();
        given.or_else(|| {
            unit.map(|unit| format!("journalctl --quiet --output cat --unit {unit}").into())
        })
    }
}

/// The commands for a runtime that systemd runs. A unit that has been killed is stopped as well, or
/// systemd would start it again before it is asked to.
fn commands_of_unit(unit: &str) -> RuntimeCommands {
    RuntimeCommands {
        stop: format!("systemctl stop {unit}"),
        kill: Some(format!(
            "pid=$(systemctl show --property MainPID --value {unit}) && [ \"$pid\" -gt 1 ] && \
             kill -KILL \"$pid\" && systemctl stop {unit}"
        )),
        start: format!("systemctl start {unit}"),
    }
}

/// The name of a systemd unit: nothing that a shell would take for anything else.
fn unit(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.@:-".contains(c);
    if text.is_empty() || text.starts_with('-') || !text.chars().all(is_plain) {
        return Err("a unit's name has letters, digits and `_.@:-`, as in containerd".to_owned());
    }
    Ok(text.to_owned())
}

/// The text unless it is blank.
fn given(text: Option<&String>) -> Option<&str> {
    let text = text.map(String::as_str);
    text.filter(|text| !text.trim().is_empty())
}

/// The variable that names the case whose steps panic.
pub const PANIC_IN: &str = "CRI_EVENT_CONFORMANCE_PANIC_IN";
/// The variable that names the case whose judging panics.
pub const PANIC_JUDGING: &str = "CRI_EVENT_CONFORMANCE_PANIC_JUDGING";

/// Cases in which this suite itself shall fail, for its own tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sabotage {
    /// Panic after the first step of this case.
    pub steps_of: Option<String>,
    /// Panic when this case is judged.
    pub verdict_of: Option<String>,
    /// Hold up all that it does, so often and for so long, in simulated time.
    pub hold_up: Option<(Duration, Duration)>,
}

impl Sabotage {
    /// The failures that the environment asks for. Release builds ignore it.
    pub fn from_environment() -> Self {
        let named = |variable| std::env::var(variable).ok();
        if cfg!(debug_assertions) {
            Self {
                steps_of: named(PANIC_IN),
                verdict_of: named(PANIC_JUDGING),
                hold_up: None,
            }
        } else {
            Self::default()
        }
    }

    /// Panics if the case is the one.
    pub fn strike(wanted: Option<&str>, case: &str) {
        assert!(wanted != Some(case), "as the environment asked for");
    }
}
