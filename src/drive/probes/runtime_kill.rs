//! Whether the runtime can be killed.

use super::Unavailable;
use crate::drive::session::Session;

pub(super) fn probe_runtime_kill(session: &Session) -> Result<(), Unavailable> {
    let options = session.options();
    let commands = options.asked.hooks.runtime_commands();
    if options.kernel.is_simulated() || commands.is_some_and(|commands| commands.kill.is_some()) {
        return Ok(());
    }
    Err(Unavailable::because(
        "the runtime has to be killed: say how by --runtime-kill-cmd",
    ))
}
