//! Removing a container, once or until the runtime no longer refuses.

use tokio::time::Instant;

use super::container_id::{id_or_prefix, prefix_outcome};
use super::{Abort, Effect, StepContext, is_refusal};
use crate::case::RemoveStep;
use crate::history::Request;
use crate::limits;

impl Effect for RemoveStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let container = id_or_prefix(ctx.container(&self.container)?, self.by_prefix);
        let remove = Request::RemoveContainer(container);
        let Some(within) = self.within else {
            let removed = ctx.attempt(remove, self.expectation()).await;
            return prefix_outcome(removed, self.by_prefix);
        };
        let bound = ctx.session().scaled(within);
        let until = Instant::now() + bound;
        let mut pace = tokio::time::interval(limits::REMOVAL_PACE);
        let refused = loop {
            pace.tick().await;
            match ctx.send(remove.clone()).await? {
                Ok(_) => break None,
                Err(fault) if !is_refusal(&fault) => {
                    return Err(Abort::failed(remove.method(), &fault));
                }
                Err(fault) if Instant::now() >= until => break Some(fault),
                Err(_) => {}
            }
        };
        let wanted = format!("the removal of {}", self.container);
        let instead = refused.map(|fault| format!("refused to the last: {fault}"));
        ctx.case.waits.record_unless(wanted, bound, instead)
    }
}
