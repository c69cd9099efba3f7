//! Event streams: the run's own, and the case's subscriptions.

use super::{Abort, Effect, StepContext};
use crate::case::{ConnectionSpec, ResubscribeStep, ResumeStep, SubscribeStep, UnsubscribeStep};
use crate::cri::Over;
use crate::drive::extra_subscription::Liveness;
use crate::drive::stream_error::StreamError;
use crate::history::Observer;

impl Effect for ResubscribeStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        if self.meanwhile.is_empty() {
            return Ok(ctx.session().resubscribe().await?);
        }
        ctx.session().unsubscribe().await;
        let taken = ctx.take(&self.meanwhile).await;
        // Whatever came of them, the teardown needs the stream.
        ctx.session().ensure_stream().await?;
        taken
    }
}

impl Effect for SubscribeStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let observer = Observer {
            case: Some(ctx.case.run),
            binding: self.binding.clone(),
            stalls: self.stalls,
            own_process: self.own_process,
            deadline: self.deadline,
            unknown_fields: self.unknown_fields,
            authority: self.authority.clone(),
        };
        let session = &ctx.case.session;
        let over = match self.connection {
            ConnectionSpec::Own => Over::Own(&session.options().endpoint),
            ConnectionSpec::Calls => Over::Calls(&session.client().client),
        };
        let effective = self.effective.map(|time| session.scaled(time));
        let liveness = effective.map_or(Liveness::Proven, Liveness::After);
        match session.observe(over, observer, liveness).await {
            Ok(subscription) => {
                let id = subscription.id();
                ctx.case.subscriptions.add(subscription).await;
                ctx.scope.subscriptions.bind(&self.binding, id);
                Ok(())
            }
            // That a subscriber gets events is what it subscribes for.
            Err(StreamError::Silent(bound) | StreamError::OthersAlone { within: bound, .. }) => {
                let wanted = format!("an event on {}", self.binding);
                ctx.case.waits.record(wanted, false, bound);
                Err(Abort::Unmet)
            }
            Err(fault) => Err(fault.into()),
        }
    }
}

impl Effect for UnsubscribeStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let id = ctx.scope.subscriptions.get(&self.subscription)?;
        ctx.case.subscriptions.give_up(id, self.hang_up).await;
        Ok(())
    }
}

impl Effect for ResumeStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let id = ctx.scope.subscriptions.get(&self.subscription)?;
        ctx.case.subscriptions.resume(id).await;
        Ok(())
    }
}
