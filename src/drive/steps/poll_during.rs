//! Taking steps, and asking the runtime repeatedly until they are over.

use std::sync::atomic::{AtomicBool, Ordering};

use super::query::{ask, requests};
use super::{Abort, Effect, StepContext};
use crate::case::PollDuringStep;
use crate::limits;

impl Effect for PollDuringStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let id = ctx.subject(&self.of)?;
        let case = ctx.case.clone();
        let requests = requests(&case, &id, &self.read)?;
        let over = AtomicBool::new(false);
        let steps = async {
            let taken = ctx.take(&self.steps).await;
            over.store(true, Ordering::Relaxed);
            taken
        };
        let polls = async {
            let mut pace = tokio::time::interval(limits::READING_PACE);
            loop {
                pace.tick().await;
                // Once more when they are over.
                let last = over.load(Ordering::Relaxed);
                ask(&case, &requests).await;
                if last {
                    return;
                }
            }
        };
        let (taken, ()) = tokio::join!(steps, polls);
        taken
    }
}
