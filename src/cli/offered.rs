//! What the user has beyond the runtime's socket, for the cases that need it.

use clap::Args;

use crate::drive::Offered;

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
}

impl OfferedArgs {
    /// What was given; an empty variable is one that is not set.
    pub(super) fn offered(&self) -> Offered {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
        Offered {
            outside_cri: given(&self.outside_cri),
            faulty_handler: given(&self.faulty_handler),
        }
    }
}
