//! Whether the user has a command that prints the runtime's log.

use super::Unavailable;
use crate::drive::session::Session;
use crate::limits;

pub(super) async fn probe_runtime_log(session: &Session) -> Result<(), Unavailable> {
    let options = session.options();
    let Some(command) = options.asked.hooks.runtime_log() else {
        return Err(Unavailable::because(
            "the log of the runtime is out of sight: say how to print it by --runtime-log-cmd, or \
             by --runtime-unit where systemd runs the runtime",
        ));
    };
    let bound = session.scaled(limits::LOG_WAIT);
    match options.kernel.log_lines(Some(&command), bound).await {
        Ok(0) if !options.kernel.is_simulated() => Err(Unavailable::because(
            "the command that prints the log of the runtime prints nothing",
        )),
        Ok(_) => Ok(()),
        Err(fault) => {
            Err(format!("the command that prints the log of the runtime: {fault}").into())
        }
    }
}
