//! Taking steps several times.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::task::JoinSet;

use super::{Abort, Effect, StepContext};
use crate::case::RepeatStep;

impl Effect for RepeatStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let next = Arc::new(AtomicUsize::new(0));
        let mut workers = JoinSet::new();
        for _ in 0..self.workers.max(1) {
            let (ctx, step, next) = (ctx.clone(), self.clone(), next.clone());
            workers.spawn(async move { take_rounds(&step, &ctx, &next).await });
        }
        while let Some(ended) = workers.join_next().await {
            ended.map_err(|fault| Abort::Error(format!("the suite itself failed: {fault}")))??;
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
