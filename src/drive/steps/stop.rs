//! Stopping a container.

use super::container_id::{id_or_prefix, prefix_outcome};
use super::{Abort, Effect, StepContext};
use crate::case::StopStep;
use crate::history::Request;

impl Effect for StopStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let stop = Request::StopContainer {
            container: id_or_prefix(ctx.container(&self.container)?, self.by_prefix),
            grace: ctx.scope.clock.whole_seconds(self.grace),
        };
        let stopped = ctx.attempt(stop, self.expectation()).await;
        prefix_outcome(stopped, self.by_prefix)
    }
}
