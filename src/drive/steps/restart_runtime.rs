//! Ending the runtime and starting it again, by the user's commands.

use tokio::task::JoinSet;

use super::{Abort, Effect, StepContext};
use crate::case::{RestartRuntimeStep, RuntimeEndSpec};
use crate::drive::probes::may_restart;
use crate::history::Request;
use crate::host::{CommandError, RuntimeCommands, RuntimeEnd, RuntimeEndError};
use crate::limits;

impl Effect for RestartRuntimeStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let session = ctx.session();
        if let Err(lack) = may_restart(session).await {
            return Err(Abort::NotApplicable(lack));
        }
        let Some(commands) = session.options().asked.hooks.runtime_commands() else {
            return Err(Abort::Error("no commands were given".to_owned()));
        };
        let mut under_way = self.begin(ctx).await?;
        session.unsubscribe().await;
        let ended = self.end(ctx, &commands).await;
        let down = match &ended {
            Ok(()) => self.stay_down(ctx).await,
            Err(_) => Ok(()),
        };
        let session = ctx.session();
        let bound = session.scaled(limits::RUNTIME_COMMAND);
        // Whatever came of that, the node needs its runtime.
        let kernel = &session.options().kernel;
        let started = kernel.start_runtime(&commands.start, bound).await;
        started.map_err(|fault| {
            Abort::Error(format!("the command that starts the runtime: {fault}"))
        })?;
        let renewed = session.renew(session.scaled(limits::RUNTIME_RETURN)).await;
        ended?;
        renewed?;
        let wanted = "the runtime's end and return".to_owned();
        ctx.case.waits.record(wanted, true, bound);
        if let Some(taken) = under_way.join_next().await {
            taken.map_err(|fault| Abort::Error(format!("the suite itself failed: {fault}")))??;
        }
        down
    }
}

impl RestartRuntimeStep {
    /// Begins the steps whose calls are to be under way when the runtime ends. They end with the
    /// result.
    async fn begin(&self, ctx: &StepContext) -> Result<JoinSet<Result<(), Abort>>, Abort> {
        let mut under_way = JoinSet::new();
        if self.during.is_empty() {
            return Ok(under_way);
        }
        let (mut ctx, steps) = (ctx.clone(), self.during.clone());
        let bound = ctx.session().scaled(limits::CALL_UNDER_WAY);
        under_way.spawn(async move { ctx.take(&steps).await });
        match tokio::time::timeout(bound, under_way.join_next()).await {
            Err(_) => Ok(under_way),
            Ok(Some(Ok(Err(abort)))) => Err(abort),
            Ok(_) => Err(Abort::Inconclusive(
                "the steps that the runtime's end was to interrupt were over before it".to_owned(),
            )),
        }
    }

    /// Ends the runtime, in the time that it may take.
    async fn end(&self, ctx: &StepContext, commands: &RuntimeCommands) -> Result<(), Abort> {
        let session = ctx.session();
        let how = match self.by {
            RuntimeEndSpec::Stop => RuntimeEnd::Stop,
            RuntimeEndSpec::Kill => RuntimeEnd::Kill,
        };
        let bound = session.scaled(self.within.unwrap_or(limits::RUNTIME_COMMAND));
        let (kernel, socket) = (
            &session.options().kernel,
            session.options().endpoint.socket(),
        );
        let ended = kernel.end_runtime(socket, commands, how, bound).await;
        match (ended, self.within) {
            (Ok(()), None) => Ok(()),
            (Ok(()), Some(_)) => {
                ctx.case.waits.record(runtime_end(), true, bound);
                Ok(())
            }
            (Err(RuntimeEndError::Command(CommandError::Slow { .. })), Some(_)) => {
                ctx.case.waits.record(runtime_end(), false, bound);
                Err(Abort::Unmet)
            }
            (Err(fault), _) => Err(Abort::Error(fault.to_string())),
        }
    }

    /// Takes the steps for which the runtime is down, and makes sure that it is.
    async fn stay_down(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        if ctx.send(Request::Version).await?.is_ok() {
            return Err(Abort::Inconclusive(
                "the runtime still answered when the command had ended that ends it".to_owned(),
            ));
        }
        ctx.take(&self.meanwhile).await
    }
}

fn runtime_end() -> String {
    "the runtime's end".to_owned()
}
