//! Taking steps once for each runtime handler.

use super::{Abort, Effect, StepContext};
use crate::case::ForEachHandlerStep;
use crate::history::{Reply, Request};

impl Effect for ForEachHandlerStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let handlers = match ctx.ask(Request::RuntimeStatus).await? {
            Reply::RuntimeStatus(status) => status.handlers,
            _ => Vec::new(),
        };
        for handler in handlers.into_iter().filter(|name| !name.is_empty()) {
            let mut inner = ctx.clone();
            inner.scope.handler = Some(handler);
            inner.take(&self.steps).await?;
        }
        Ok(())
    }
}
