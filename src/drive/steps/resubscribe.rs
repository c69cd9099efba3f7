//! Giving up the event stream and opening a new one.

use super::{Abort, Effect, StepContext};
use crate::case::ResubscribeStep;

impl Effect for ResubscribeStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        if self.meanwhile.is_empty() {
            return Ok(ctx.session().resubscribe().await?);
        }
        ctx.session().unsubscribe().await;
        let taken = ctx.take(&self.meanwhile).await;
        // Whatever came of them, the teardown needs the stream.
        ctx.session().ensure_stream().await?;
        taken
    }
}
