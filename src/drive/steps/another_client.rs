//! Taking steps as another client of the runtime.

use super::{Abort, Effect, StepContext};
use crate::case::AnotherClientStep;

impl Effect for AnotherClientStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let own = ctx.session().client();
        let other = own
            .with_own_connection(&ctx.session().options().endpoint)
            .await;
        let other = other.map_err(|fault| Abort::Error(fault.to_string()))?;
        let around = ctx.scope.client.replace(other);
        let taken = ctx.take(&self.steps).await;
        ctx.scope.client = around;
        taken
    }
}
