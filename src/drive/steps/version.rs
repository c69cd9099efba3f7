//! Asking for the runtime's version.

use super::{Abort, Effect, StepContext};
use crate::case::VersionStep;
use crate::history::Request;

impl Effect for VersionStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        ctx.must(Request::Version).await.map(drop)
    }
}
