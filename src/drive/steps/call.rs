//! Making a call that no other step makes.

use std::time::Duration;

use super::{Abort, Effect, MISSING_IMAGE, StepContext};
use crate::case::{CallStep, Method};
use crate::history::{ContainerId, Request, SandboxId};

impl Effect for CallStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let image = || ctx.session().options().image.clone();
        let request = match self.method {
            Method::Version => return ctx.must(Request::Version).await.map(drop),
            Method::ListImages => return ctx.must(Request::ListImages).await.map(drop),
            Method::ImageStatus => {
                let request = Request::ImageStatus(image());
                return ctx.must(request).await.map(drop);
            }
            Method::RemoveImage => {
                let request = Request::RemoveImage(MISSING_IMAGE.to_owned());
                return ctx.must(request).await.map(drop);
            }
            Method::PullImage => {
                // An image that was imported cannot be pulled.
                let _ = ctx.case.call(Request::PullImage(image())).await;
                return Ok(());
            }
            Method::StopContainer => Request::StopContainer {
                container: ContainerId::from(unknown_id()),
                grace: Duration::ZERO,
            },
            Method::RemoveContainer => Request::RemoveContainer(ContainerId::from(unknown_id())),
            Method::StopPodSandbox => Request::StopSandbox(SandboxId::from(unknown_id())),
            Method::RemovePodSandbox => Request::RemoveSandbox(SandboxId::from(unknown_id())),
            Method::NoEvent(call) => {
                let id = match &self.of {
                    Some(of) => ctx.subject(of)?.to_string(),
                    None => String::new(),
                };
                Request::NoEventCall(call, id)
            }
        };
        // A runtime may not have the call, and what an unknown id returns is no matter of events.
        let _ = ctx.client().call(Some(ctx.case.run), request).await;
        Ok(())
    }
}

/// An id that nothing has.
fn unknown_id() -> String {
    let random = || uuid::Uuid::new_v4().simple();
    format!("{}{}", random(), random())
}
