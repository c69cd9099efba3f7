//! What the user has beyond the runtime's socket, for the cases that need it.

use clap::Args;

use crate::drive::{Offered, RuntimeCommands};

/// What only the user can provide.
#[derive(Debug, Args)]
pub(super) struct OfferedArgs {
    /// A command for `sh -c` that makes a container outside the CRI, waits for its end and removes
    /// it, such as 'ctr --namespace beside run --rm --null-io IMAGE outsider COMMAND'
    #[arg(
        long,
        value_name = "COMMAND",
        env = "CRI_EVENT_CONFORMANCE_OUTSIDE_CRI",
        hide_short_help = true,
        help_heading = "Execution"
    )]
    outside_cri: Option<String>,
    /// A runtime handler whose low-level runtime dies when a container's environment tells it to,
    /// as ci/lib/faulty-runtime does
    #[arg(
        long,
        value_name = "NAME",
        env = "CRI_EVENT_CONFORMANCE_FAULTY_HANDLER",
        hide_short_help = true,
        help_heading = "Execution"
    )]
    faulty_handler: Option<String>,
    /// A command for `sh -c` that stops the runtime and returns once it has ended
    #[arg(
        long,
        value_name = "COMMAND",
        env = "CRI_EVENT_CONFORMANCE_RUNTIME_STOP_CMD",
        requires = "runtime_start_cmd",
        hide_short_help = true,
        help_heading = "Execution"
    )]
    runtime_stop_cmd: Option<String>,
    /// A command for `sh -c` that starts the runtime again and returns
    #[arg(
        long,
        value_name = "COMMAND",
        env = "CRI_EVENT_CONFORMANCE_RUNTIME_START_CMD",
        requires = "runtime_stop_cmd",
        hide_short_help = true,
        help_heading = "Execution"
    )]
    runtime_start_cmd: Option<String>,
    /// The systemd unit of the runtime, such as containerd, to stop and start it by `systemctl`
    #[arg(
        long,
        value_name = "UNIT",
        value_parser = unit,
        conflicts_with_all = ["runtime_stop_cmd", "runtime_start_cmd"],
        hide_short_help = true,
        help_heading = "Execution"
    )]
    runtime_unit: Option<String>,
}

/// The name of a systemd unit: nothing that a shell would take for anything else.
fn unit(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.@:-".contains(c);
    if text.is_empty() || text.starts_with('-') || !text.chars().all(is_plain) {
        return Err("a unit's name has letters, digits and `_.@:-`, as in containerd".to_owned());
    }
    Ok(text.to_owned())
}

impl OfferedArgs {
    fn runtime_commands(&self) -> Option<RuntimeCommands> {
        let by_unit = |verb: &str| {
            let unit = self.runtime_unit.as_ref()?;
            Some(format!("systemctl {verb} {unit}"))
        };
        Some(RuntimeCommands {
            stop: by_unit("stop").or_else(|| given(self.runtime_stop_cmd.as_ref()))?,
            start: by_unit("start").or_else(|| given(self.runtime_start_cmd.as_ref()))?,
        })
    }

    /// What was given.
    pub(super) fn offered(&self) -> Offered {
        Offered {
            outside_cri: given(self.outside_cri.as_ref()),
            faulty_handler: given(self.faulty_handler.as_ref()),
            runtime_commands: self.runtime_commands(),
        }
    }
}

/// What was given; an empty variable is one that is not set.
fn given(text: Option<&String>) -> Option<String> {
    text.cloned().filter(|text| !text.trim().is_empty())
}
