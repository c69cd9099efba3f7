//! Killing a sandbox's own process from the host.

use super::kill::kill_process;
use super::{Abort, Effect, StepContext};
use crate::case::KillSandboxStep;

impl Effect for KillSandboxStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        kill_process(&self.sandbox, ctx).await
    }
}
