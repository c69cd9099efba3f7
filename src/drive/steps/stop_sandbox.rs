//! Stopping a sandbox.

use super::{Abort, Effect, StepContext};
use crate::case::StopSandboxStep;
use crate::history::Request;

impl Effect for StopSandboxStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let sandbox = ctx.sandbox(&self.sandbox)?;
        ctx.must(Request::StopSandbox(sandbox)).await.map(drop)
    }
}
