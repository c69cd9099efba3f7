//! Making a checkpoint of a container.

use super::{Abort, Effect, StepContext};
use crate::case::CheckpointStep;
use crate::history::Request;

impl Effect for CheckpointStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let container = ctx.container(&self.container)?;
        let location = ctx.session().checkpoint_location(&container);
        let request = Request::CheckpointContainer {
            container,
            location,
        };
        ctx.must(request).await?;
        Ok(())
    }
}
