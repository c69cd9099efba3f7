//! Removing a sandbox.

use super::{Abort, Effect, StepContext};
use crate::case::RemoveSandboxStep;
use crate::history::Request;

impl Effect for RemoveSandboxStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let sandbox = ctx.sandbox(&self.sandbox)?;
        ctx.must(Request::RemoveSandbox(sandbox)).await.map(drop)
    }
}
