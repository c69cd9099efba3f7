//! Taking steps while the host's wall clock is wrong.

use super::{Abort, Effect, StepContext};
use crate::case::StepClockStep;
use crate::host::SteppedClock;

impl Effect for StepClockStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let stepped = SteppedClock::by(self.by_ns()).map_err(|fault| {
            Abort::Inconclusive(format!("the host's wall clock cannot be set: {fault}"))
        })?;
        let taken = ctx.take(&self.steps).await;
        // However they end, it is put right.
        let restore = stepped.restore();
        restore.map_err(|fault| {
            Abort::Error(format!("the host's wall clock was not put right: {fault}"))
        })?;
        taken
    }
}
