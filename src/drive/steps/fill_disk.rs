//! Taking steps while a monitor of the runtime cannot write.

use std::time::Duration;

use super::kill_monitor::monitored;
use super::{Abort, Effect, StepContext};
use crate::case::FillDiskStep;

impl Effect for FillDiskStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let monitored = monitored(&self.container, ctx)?;
        let filled = ctx.session().options().kernel.fill_disk(&monitored);
        let filled = filled.map_err(|fault| Abort::Inconclusive(fault.to_string()))?;
        let of = format!("{}'s monitor {}", self.container, filled.name());
        let waits = &ctx.case.waits;
        waits.record(format!("no room for {of}"), true, Duration::ZERO);
        let taken = ctx.take(&self.steps).await;
        drop(filled);
        let waits = &ctx.case.waits;
        waits.record(format!("room for {of}"), true, Duration::ZERO);
        taken
    }
}
