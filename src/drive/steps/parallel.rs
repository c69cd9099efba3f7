//! Taking lists of steps concurrently.

use tokio::task::JoinSet;

use super::{Abort, Effect, StepContext};
use crate::case::ParallelStep;

impl Effect for ParallelStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let mut taken = JoinSet::new();
        for branch in self.branches.clone() {
            let mut ctx = ctx.clone();
            taken.spawn(async move { ctx.take(&branch.steps).await });
        }
        while let Some(ended) = taken.join_next().await {
            ended.map_err(|fault| Abort::Error(format!("the suite itself failed: {fault}")))??;
        }
        Ok(())
    }
}
