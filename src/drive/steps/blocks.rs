//! Taking the steps of a block.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::task::JoinSet;

use super::{Abort, Effect, StepContext};
use crate::case::{
    AnotherClientStep, CallsReturnWithinStep, ForEachHandlerStep, ParallelStep, RepeatStep,
};
use crate::history::{Reply, Request};

impl Effect for ParallelStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let mut taken = JoinSet::new();
        for branch in self.branches.clone() {
            let mut ctx = ctx.clone();
            taken.spawn(async move { ctx.take(&branch.steps).await });
        }
        while let Some(ended) = taken.join_next().await {
            ended??;
        }
        Ok(())
    }
}

impl Effect for RepeatStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let next = Arc::new(AtomicUsize::new(0));
        let mut workers = JoinSet::new();
        for _ in 0..self.workers.max(1) {
            let (ctx, step, next) = (ctx.clone(), self.clone(), next.clone());
            workers.spawn(async move { take_rounds(&step, &ctx, &next).await });
        }
        while let Some(ended) = workers.join_next().await {
            ended??;
        }
        Ok(())
    }
}

/// Takes one round after the other that no other worker has taken.
async fn take_rounds(
    step: &RepeatStep,
    ctx: &StepContext,
    next: &AtomicUsize,
) -> Result<(), Abort> {
    let rounds = match step.times {
        Some(times) => times as usize,
        None => step.items.len(),
    };
    loop {
        let round = next.fetch_add(1, Ordering::Relaxed);
        if round >= rounds {
            return Ok(());
        }
        let mut ctx = ctx.clone();
        ctx.scope.item = step.items.get(round).copied().or(ctx.scope.item);
        ctx.take(&step.steps).await?;
    }
}

impl Effect for ForEachHandlerStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let handlers = match ctx.ask(Request::RuntimeStatus).await? {
            Reply::RuntimeStatus(status) => status.handlers,
            _ => Vec::new(),
        };
        for handler in handlers.into_iter().filter(|name| !name.is_empty()) {
            let mut inner = ctx.clone();
            inner.scope.handler = Some(handler.clone());
            let taken = inner.take(&self.steps).await;
            taken.map_err(|abort| match abort {
                Abort::Error(reason) => {
                    Abort::Error(format!("with the runtime handler `{handler}`: {reason}"))
                }
                abort => abort,
            })?;
        }
        Ok(())
    }
}

impl Effect for AnotherClientStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let own = ctx.session().client();
        let other = own
            .with_own_connection(&ctx.session().options().endpoint)
            .await;
        let other = other.map_err(|fault| Abort::Error(fault.to_string()))?;
        let around = ctx.scope.client.replace(other);
        let taken = ctx.take(&self.steps).await;
        ctx.scope.client = around;
        taken
    }
}

impl Effect for CallsReturnWithinStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let bound = ctx.session().scaled(self.time);
        let around = ctx.scope.call_bound.replace(bound);
        let taken = ctx.take(&self.steps).await;
        ctx.scope.call_bound = around;
        taken
    }
}
