//! Making a call that changes no state.

use super::{Abort, Effect, StepContext};
use crate::case::AsideStep;
use crate::history::{AsideOf, Request};

impl Effect for AsideStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let of = self.of.as_deref().unwrap_or_default();
        let id = match self.call.of() {
            AsideOf::Nothing => String::new(),
            AsideOf::Container | AsideOf::Sandbox => ctx.subject(of)?.to_string(),
        };
        // A runtime may not have the call.
        let request = Request::Aside(self.call, id);
        let _ = ctx.client().call(Some(ctx.case.run), request).await;
        Ok(())
    }
}
