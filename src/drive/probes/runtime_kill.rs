//! Whether the runtime can be killed: the user has a command that does, or its process is found.

use super::Unavailable;
use crate::drive::session::Session;
use crate::host::RuntimeProcess;

pub(super) async fn probe_runtime_kill(session: &Session) -> Result<(), Unavailable> {
    let options = session.options();
    let commands = options.asked.hooks.runtime_commands();
    if options.kernel.is_simulated() || commands.is_some_and(|commands| commands.kill.is_some()) {
        return Ok(());
    }
    let missing = match options.endpoint.socket() {
        Some(socket) => match RuntimeProcess::find(socket).await {
            Ok(_) => return Ok(()),
            Err(missing) => missing.to_string(),
        },
        None => "it has no socket on this host".to_owned(),
    };
    let lack = format!(
        "the runtime has to be killed, and its process is out of reach: {missing}. Say how by \
         --runtime-kill-cmd, or by --runtime-unit where systemd runs the runtime"
    );
    Err(lack.into())
}
