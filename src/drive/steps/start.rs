//! Starting a container.

use super::container_id::{id_or_prefix, prefix_outcome};
use super::{Abort, Effect, StepContext};
use crate::case::StartStep;
use crate::history::Request;

impl Effect for StartStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let container = id_or_prefix(ctx.container(&self.container)?, self.by_prefix);
        let start = Request::StartContainer(container);
        let started = ctx.attempt(start, self.expectation()).await;
        prefix_outcome(started, self.by_prefix)
    }
}
