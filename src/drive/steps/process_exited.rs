//! Waiting until a container's process has exited, as the host shows.

use tokio::time::Instant;

use super::{Abort, Effect, StepContext};
use crate::case::ProcessExitedStep;
use crate::limits;

impl Effect for ProcessExitedStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let container = ctx.container(&self.container)?;
        let kernel = &ctx.session().options().kernel;
        let bound = ctx.session().scaled(self.within.unwrap_or_default());
        let until = Instant::now() + bound;
        let mut pace = tokio::time::interval(limits::PROCESS_LOOK);
        let own = ctx.session().client().own(container.as_str());
        let lives = loop {
            pace.tick().await;
            let lives = kernel.has_process(&own);
            let lives = lives.map_err(|fault| Abort::Inconclusive(fault.to_string()))?;
            if !lives || Instant::now() >= until {
                break lives;
            }
        };
        let wanted = format!("no process of {} on the host any more", self.container);
        let instead = lives.then(|| {
            let left = kernel.leftovers(&[own].into_iter().collect());
            let left = left.iter().map(|process| format!(": {process}"));
            left.fold("a process lives on".to_owned(), |text, process| {
                text + &process
            })
        });
        ctx.case.waits.record_unless(wanted, bound, instead)
    }
}
