//! Taking steps while the runtime's monitor of a container is frozen.

use std::time::Duration;

use super::kill_monitor::{monitored, unreachable};
use super::{Abort, Effect, StepContext};
use crate::case::FreezeMonitorStep;

impl Effect for FreezeMonitorStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let monitored = monitored(&self.container, ctx)?;
        let kernel = &ctx.session().options().kernel;
        let frozen = kernel.freeze_monitor(&monitored);
        let frozen = frozen.map_err(|fault| unreachable(&fault))?;
        let waits = &ctx.case.waits;
        let of = format!("{}'s monitor {}", self.container, frozen.name());
        waits.record(format!("SIGSTOP to be sent to {of}"), true, Duration::ZERO);
        let taken = ctx.take(&self.steps).await;
        // However they end, it runs on.
        let thawed = frozen.thaw();
        let waits = &ctx.case.waits;
        waits.record(format!("SIGCONT to be sent to {of}"), true, Duration::ZERO);
        thawed.map_err(|fault| Abort::Error(format!("{of} was not continued: {fault}")))?;
        taken
    }
}
