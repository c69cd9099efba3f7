//! Steps that make a call.

use std::time::Duration;

use tokio::time::Instant;

use super::{Abort, Effect, MISSING_IMAGE, StepContext, is_refusal};
use crate::case::{
    CallOutcome, CallStep, CheckpointStep, ExecStep, Method, RemoveSandboxStep, RemoveStep,
    StartStep, StopSandboxStep, StopStep,
};
use crate::history::{ContainerId, Reply, Request, SandboxId};
use crate::limits;

impl Effect for StartStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let container = id_or_prefix(ctx.container(&self.container)?, self.by_prefix);
        let start = Request::StartContainer(container);
        let started = ctx.attempt(start, self.expect, self.abandon_after).await;
        prefix_outcome(started, self.by_prefix)
    }
}

impl Effect for StopStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let stop = Request::StopContainer {
            container: id_or_prefix(ctx.container(&self.container)?, self.by_prefix),
            grace: ctx.scope.clock.whole_seconds(self.grace),
        };
        let stopped = ctx.attempt(stop, self.expect, self.abandon_after).await;
        prefix_outcome(stopped, self.by_prefix)
    }
}

impl Effect for RemoveStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let container = id_or_prefix(ctx.container(&self.container)?, self.by_prefix);
        let remove = Request::RemoveContainer(container);
        let Some(within) = self.within else {
            let removed = ctx.attempt(remove, self.expect, None).await;
            return prefix_outcome(removed, self.by_prefix);
        };
        let bound = ctx.session().scaled(within);
        let until = Instant::now() + bound;
        let mut pace = tokio::time::interval(limits::REMOVAL_PACE);
        let refused = loop {
            pace.tick().await;
            match ctx.send(remove.clone()).await? {
                Ok(_) => break None,
                Err(fault) if !is_refusal(&fault) => {
                    return Err(Abort::failed(remove.method(), &fault));
                }
                Err(fault) if Instant::now() >= until => break Some(fault),
                Err(_) => {}
            }
        };
        let wanted = format!("the removal of {}", self.container);
        let instead = refused.map(|fault| format!("refused to the last: {fault}"));
        ctx.case.waits.record_unless(wanted, bound, instead)
    }
}

impl Effect for StopSandboxStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let sandbox = ctx.sandbox(&self.sandbox)?;
        ctx.must(Request::StopSandbox(sandbox)).await.map(drop)
    }
}

impl Effect for RemoveSandboxStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let sandbox = ctx.sandbox(&self.sandbox)?;
        ctx.must(Request::RemoveSandbox(sandbox)).await.map(drop)
    }
}

/// The id, or as much of it as people write.
pub(super) fn id_or_prefix(id: ContainerId, by_prefix: bool) -> ContainerId {
    let prefix = id.as_str().get(..limits::ID_PREFIX);
    let prefix = prefix.filter(|_| by_prefix).map(ContainerId::from);
    prefix.unwrap_or(id)
}

/// The outcome of such a call. A runtime need not accept less than the whole id.
pub(super) fn prefix_outcome(
    outcome: Result<Option<Reply>, Abort>,
    by_prefix: bool,
) -> Result<(), Abort> {
    match outcome {
        Err(Abort::Error(fault)) if by_prefix => Err(Abort::Inconclusive(format!(
            "the runtime does not take the beginning of an id for the id: {fault}"
        ))),
        outcome => outcome.map(drop),
    }
}

impl Effect for ExecStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let workload = ctx.scope.workload(&self.runs);
        let request = Request::ExecSync {
            container: ctx.container(&self.container)?,
            command: workload.command(),
            timeout: ctx.scope.clock.whole_seconds(self.timeout),
        };
        let answer = ctx.client().call(Some(ctx.case.run), request).await;
        match (answer, self.expect) {
            (Err(fault), CallOutcome::Success) => Err(Abort::failed("ExecSync", &fault)),
            (Ok(_), CallOutcome::Failure) => Err(Abort::succeeded("ExecSync")),
            (Ok(Reply::Exec(code)), CallOutcome::Success) => match workload.declared_exit() {
                Some(declared) if code != declared => Err(Abort::Inconclusive(format!(
                    "the command was to end with code {declared}, and ended with {code}"
                ))),
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

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

impl Effect for CallStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let image = || ctx.session().options().image.clone();
        let request = match self.method {
            Method::Version => return ctx.must(Request::Version).await.map(drop),
            Method::ListImages => return ctx.must(Request::ListImages).await.map(drop),
            Method::ImageStatus => {
                let request = Request::ImageStatus(image());
                return ctx.must(request).await.map(drop);
            }
            Method::RemoveImage => {
                let request = Request::RemoveImage(MISSING_IMAGE.to_owned());
                return ctx.must(request).await.map(drop);
            }
            Method::PullImage => {
                // An image that was imported cannot be pulled.
                let _ = ctx.case.call(Request::PullImage(image())).await;
                return Ok(());
            }
            Method::StopContainer => Request::StopContainer {
                container: ContainerId::from(unknown_id()),
                grace: Duration::ZERO,
            },
            Method::RemoveContainer => Request::RemoveContainer(ContainerId::from(unknown_id())),
            Method::StopPodSandbox => Request::StopSandbox(SandboxId::from(unknown_id())),
            Method::RemovePodSandbox => Request::RemoveSandbox(SandboxId::from(unknown_id())),
            Method::NoEvent(call) => {
                let id = match &self.of {
                    Some(of) => ctx.subject(of)?.to_string(),
                    None => String::new(),
                };
                Request::NoEventCall(call, id)
            }
        };
        // A runtime may not have the call, and what an unknown id returns is no matter of events.
        let _ = ctx.client().call(Some(ctx.case.run), request).await;
        Ok(())
    }
}

/// An id that nothing has.
fn unknown_id() -> String {
    let random = || uuid::Uuid::new_v4().simple();
    format!("{}{}", random(), random())
}
