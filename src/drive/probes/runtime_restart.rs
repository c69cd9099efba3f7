//! Whether the runtime can be stopped and started: the user has commands that do, and allows it.

use super::Unavailable;
use crate::drive::options::Allowance;
use crate::drive::session::Session;
use crate::drive::sweep::foreign_pods;

pub(super) async fn probe_runtime_restart(session: &Session) -> Result<(), Unavailable> {
    Ok(may_restart(session).await?)
}

/// Whether the runtime can be restarted now.
pub(in crate::drive) async fn may_restart(session: &Session) -> Result<(), String> {
    let options = session.options();
    if options.asked.hooks.runtime_commands().is_none() {
        return Err(
            "the runtime has to be stopped and started: say how by --runtime-stop-cmd and \
             --runtime-start-cmd, or by --runtime-unit where systemd runs it"
                .to_owned(),
        );
    }
    let allow = &options.asked.allow;
    let anywhere = allow.contains(&Allowance::DisruptionWithForeignPods);
    if options.kernel.is_simulated() || anywhere {
        return Ok(());
    }
    if !allow.contains(&Allowance::Disruption) {
        return Err(
            "the runtime would be stopped and started again, and nothing on this node can use it \
             meanwhile; where that does no harm, allow it by --allow disruption"
                .to_owned(),
        );
    }
    match foreign_pods(session.client()).await {
        Ok(pods) if pods.all == 0 => Ok(()),
        Ok(pods) => Err(format!(
            "the runtime would be stopped and started again under pods of others ({}); where that \
             does them no harm, allow it by --allow disruption-with-foreign-pods",
            pods.all
        )),
        Err(fault) => Err(format!(
            "whether it has pods of others cannot be found out: {fault}"
        )),
    }
}
