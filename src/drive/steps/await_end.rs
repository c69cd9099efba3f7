//! Waiting until the runtime has ended a subscription.

use tokio::time::Instant;

use super::{Abort, Effect, StepContext};
use crate::case::AwaitEndStep;
use crate::history::{CaseHistory, Took};

impl Effect for AwaitEndStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let id = ctx.subscription(&self.of)?;
        let bound = ctx.session().scaled(self.within);
        let has_ended = |history: &CaseHistory| {
            let mut observed = history.observed();
            observed.any(|observed| observed.id() == id && observed.ended().is_some())
        };
        let began = Instant::now();
        let met = ctx.case.view.wait_by(began + bound, has_ended).await?;
        let wanted = format!("the end of {}", self.of);
        let took = Took::End(began.elapsed());
        ctx.case.waits.record_timed(wanted, met, bound, took);
        if met { Ok(()) } else { Err(Abort::Unmet) }
    }
}
