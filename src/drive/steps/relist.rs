//! Listing a sandbox's containers and reading the status of each.

use super::{Abort, Effect, StepContext};
use crate::case::RelistStep;
use crate::drive::inspection::{list_and_read, list_request};
use crate::history::{Reply, Request};

impl Effect for RelistStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let sandbox = ctx.sandbox(&self.sandbox)?;
        if ctx.scope.call_bound.is_none() {
            let relisted = list_and_read(&ctx.case, sandbox).await;
            return relisted.map_err(|fault| Abort::failed("ListContainers", &fault));
        }
        let request = list_request(&ctx.case, sandbox);
        if let Reply::Containers(listed) = ctx.must(request).await? {
            for container in listed {
                let status = Request::ContainerStatus(container.id);
                let _ = ctx.send(status).await?;
            }
        }
        Ok(())
    }
}
