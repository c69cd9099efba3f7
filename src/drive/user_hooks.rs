//! What the user provides beyond the runtime's socket, for the cases that need it.

use std::borrow::Cow;

use clap::Args;

use crate::host::RuntimeCommands;

// Comments of fields are the help of options.
/// What only the user can provide. An empty text is none: so is an empty variable.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct UserHooks {
    /// A command for `sh -c` that makes a container outside the CRI, waits for its end and removes
    /// it, such as 'ctr --namespace beside run --rm --null-io IMAGE outsider COMMAND'
    #[arg(
        long,
        value_name = "COMMAND",
        env = "CRI_EVENT_CONFORMANCE_OUTSIDE_CRI",
        hide_short_help = true,
        help_heading = "Execution"
    )]
    pub outside_cri: Option<String>,
    /// A runtime handler whose low-level runtime dies when a container's environment asks for it,
    /// as ci/lib/faulty-runtime does
    #[arg(
        long,
        value_name = "NAME",
        env = "CRI_EVENT_CONFORMANCE_FAULTY_HANDLER",
        hide_short_help = true,
        help_heading = "Execution"
    )]
    pub faulty_handler: Option<String>,
    /// A command for `sh -c` that stops the runtime and returns once it has ended
    #[arg(
        long,
        value_name = "COMMAND",
        env = "CRI_EVENT_CONFORMANCE_RUNTIME_STOP_CMD",
        requires = "runtime_start_cmd",
        hide_short_help = true,
        help_heading = "Execution"
    )]
    pub runtime_stop_cmd: Option<String>,
    /// A command for `sh -c` that starts the runtime again and returns
    #[arg(
        long,
        value_name = "COMMAND",
        env = "CRI_EVENT_CONFORMANCE_RUNTIME_START_CMD",
        requires = "runtime_stop_cmd",
        hide_short_help = true,
        help_heading = "Execution"
    )]
    pub runtime_start_cmd: Option<String>,
    /// A command for `sh -c` that kills the runtime by SIGKILL and returns once it has ended;
    /// without it, the process that serves the socket is killed
    #[arg(
        long,
        value_name = "COMMAND",
        env = "CRI_EVENT_CONFORMANCE_RUNTIME_KILL_CMD",
        requires = "runtime_start_cmd",
        hide_short_help = true,
        help_heading = "Execution"
    )]
    pub runtime_kill_cmd: Option<String>,
    /// A command for `sh -c` that prints the log of the runtime, such as 'cat /var/log/crio.log'
    #[arg(
        long,
        value_name = "COMMAND",
        env = "CRI_EVENT_CONFORMANCE_RUNTIME_LOG_CMD",
        hide_short_help = true,
        help_heading = "Execution"
    )]
    pub runtime_log_cmd: Option<String>,
    /// The systemd unit of the runtime, such as containerd, to stop, kill and start it by
    /// `systemctl`, and to read its log by `journalctl`; it takes precedence over the three
    /// commands
    #[arg(
        long,
        value_name = "UNIT",
        value_parser = unit,
        hide_short_help = true,
        help_heading = "Execution"
    )]
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
}

impl UserHooks {
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
