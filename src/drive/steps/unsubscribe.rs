//! Giving up a subscription of the case.

use super::{Abort, Effect, StepContext};
use crate::case::UnsubscribeStep;

impl Effect for UnsubscribeStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let id = ctx.subscription(&self.subscription)?;
        ctx.case.subscriptions.give_up(id, self.hang_up).await;
        Ok(())
    }
}
