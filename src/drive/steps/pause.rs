//! Taking steps while a container is paused from the host.

use std::time::Duration;

use tokio::time::Instant;

use super::{Abort, Effect, StepContext};
use crate::case::PauseStep;
use crate::limits;

impl Effect for PauseStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let container = ctx.container(&self.container)?;
        let kernel = &ctx.session().options().kernel;
        let out_of_reach = |fault| {
            let name = &self.container;
            Abort::NotApplicable(format!("`{name}` cannot be paused from the host: {fault}"))
        };
        let own = ctx.session().client().own(container.as_str());
        let paused = kernel.pause_container(&own).map_err(out_of_reach)?;
        let bound = ctx.session().scaled(limits::KILL_WAIT);
        let until = Instant::now() + bound;
        let mut pace = tokio::time::interval(limits::PROCESS_LOOK);
        let frozen = loop {
            pace.tick().await;
            let frozen = paused.is_frozen().map_err(out_of_reach)?;
            if frozen || Instant::now() >= until {
                break frozen;
            }
        };
        let of = format!("{}'s cgroup {}", self.container, paused.name());
        let waits = &ctx.case.waits;
        let instead = (!frozen).then(|| "its processes run on".to_owned());
        waits.record_unless(format!("{of} to be frozen"), bound, instead)?;
        let taken = ctx.take(&self.steps).await;
        // However they end, it runs on.
        let resumed = paused.resume();
        let waits = &ctx.case.waits;
        waits.record(format!("{of} to run on"), true, Duration::ZERO);
        resumed.map_err(|fault| Abort::Error(format!("{of} stays frozen: {fault}")))?;
        taken
    }
}
