//! Killing the runtime's monitor of a container from the host.

use super::{Abort, Effect, StepContext};
use crate::case::KillMonitorStep;
use crate::host::{Monitored, ProcessError};
use crate::limits;

impl Effect for KillMonitorStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let monitored = monitored(&self.container, ctx)?;
        let kernel = &ctx.session().options().kernel;
        let bound = ctx.session().scaled(limits::KILL_WAIT);
        let killed = kernel.kill_monitor(&monitored, self.with_container, bound);
        let monitor = killed.await.map_err(|fault| unreachable(&fault))?;
        let with = if self.with_container {
            " with its container"
        } else {
            ""
        };
        let wanted = format!(
            "the end of {}'s monitor {monitor}, killed{with}",
            self.container
        );
        ctx.case.waits.record(wanted, true, bound);
        Ok(())
    }
}

/// The container that a name stands for, and its sandbox.
pub(super) fn monitored(name: &str, ctx: &StepContext) -> Result<Monitored, Abort> {
    let container = ctx.container(name)?;
    let (sandbox, _) = ctx
        .case
        .view
        .pod_of(&container)
        .ok_or_else(|| Abort::unbound(name))?;
    let client = ctx.session().client();
    Ok(Monitored {
        container: client.own(container.as_str()),
        sandbox: client.own(sandbox.as_str()),
    })
}

/// A monitor that is not there, or is none, proves nothing.
pub(super) fn unreachable(fault: &ProcessError) -> Abort {
    Abort::Inconclusive(fault.to_string())
}
