//! Taking steps, and asking the runtime the moment an event arrives.

use std::pin::pin;

use tokio::time::Instant;

use super::await_event::{await_event, has_seen};
use super::query::{ask, requests};
use super::{Abort, Effect, StepContext};
use crate::case::{AwaitStep, OnEventStep};
use crate::drive::active_case::ActiveCase;
use crate::history::{ContainerId, Request};

impl Effect for OnEventStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let id = ctx.subject(&self.of)?;
        let case = ctx.case.clone();
        let requests = requests(&case, &id, &self.read)?;
        let mut reading = pin!(ask_at_event(self, &case, &id, &requests));
        let mut steps = ctx.take(&self.steps);
        tokio::select! {
            // The event is what this waits for; the steps come to their end anyway.
            biased;
            read = &mut reading => {
                read?;
                return steps.await;
            }
            taken = &mut steps => taken?,
        }
        drop(steps);
        let wait = AwaitStep {
            of: self.of.clone(),
            event: self.event,
            within: None,
        };
        await_event(&wait, &id, ctx).await?;
        reading.await
    }
}

async fn ask_at_event(
    step: &OnEventStep,
    case: &ActiveCase,
    id: &ContainerId,
    requests: &[Request],
) -> Result<(), Abort> {
    case.view
        .wait_until(|history| has_seen(history, id, step.event))
        .await?;
    ask(case, requests).await;
    if let Some(later) = step.read_again_after {
        tokio::select! {
            () = tokio::time::sleep_until(Instant::now() + later) => ask(case, requests).await,
            () = case.session.stop().cancelled() => {}
        }
    }
    Ok(())
}
