//! Making a call on an id that nothing has.

use std::time::Duration;

use super::{Abort, Effect, StepContext};
use crate::case::UnknownStep;
use crate::history::{ContainerId, Request, SandboxId};

impl Effect for UnknownStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let random = || uuid::Uuid::new_v4().simple();
        let id = format!("{}{}", random(), random());
        let request = match self {
            UnknownStep::Stop => Request::StopContainer {
                container: ContainerId::from(id),
                grace: Duration::ZERO,
            },
            UnknownStep::Remove => Request::RemoveContainer(ContainerId::from(id)),
            UnknownStep::StopSandbox => Request::StopSandbox(SandboxId::from(id)),
            UnknownStep::RemoveSandbox => Request::RemoveSandbox(SandboxId::from(id)),
        };
        // What it returns is no matter of events.
        let _ = ctx.client().call(Some(ctx.case.run), request).await;
        Ok(())
    }
}
