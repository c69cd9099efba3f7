//! Killing a container's process from the host.

use super::{Abort, Effect, StepContext};
use crate::case::KillStep;
use crate::limits;

impl Effect for KillStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        kill_process(&self.container, ctx).await
    }
}

/// Kills the process of a sandbox or a container that this case has made.
pub(super) async fn kill_process(name: &str, ctx: &StepContext) -> Result<(), Abort> {
    let id = ctx.subject(name)?;
    let kernel = &ctx.session().options().kernel;
    let bound = ctx.session().scaled(limits::KILL_WAIT);
    let own = ctx.session().client().own(id.as_str());
    let killed = kernel.kill_process(&own, bound).await;
    let pid = killed.map_err(|fault| Abort::Inconclusive(fault.to_string()))?;
    let wanted = format!("the end of {name}'s process {pid}, killed");
    ctx.case.waits.record(wanted, true, bound);
    Ok(())
}
