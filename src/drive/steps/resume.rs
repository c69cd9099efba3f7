//! Letting a subscriber read on.

use super::{Abort, Effect, StepContext};
use crate::case::ResumeStep;

impl Effect for ResumeStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let id = ctx.subscription(&self.subscription)?;
        ctx.case.subscriptions.resume(id).await;
        Ok(())
    }
}
