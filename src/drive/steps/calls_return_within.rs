//! Taking steps each call of which must return within a time.

use super::{Abort, Effect, StepContext};
use crate::case::CallsReturnWithinStep;

impl Effect for CallsReturnWithinStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let bound = ctx.session().scaled(self.time);
        let around = ctx.scope.call_bound.replace(bound);
        let taken = ctx.take(&self.steps).await;
        ctx.scope.call_bound = around;
        taken
    }
}
