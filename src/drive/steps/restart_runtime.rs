//! Stopping the runtime and starting it again, by the user's commands.

use super::{Abort, Effect, StepContext};
use crate::case::RestartRuntimeStep;
use crate::drive::probes::may_restart;
use crate::history::Request;
use crate::limits;

impl Effect for RestartRuntimeStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let session = ctx.session();
        if let Err(lack) = may_restart(session).await {
            return Err(Abort::NotApplicable(lack));
        }
        let options = session.options();
        let Some(commands) = options.asked.hooks.runtime_commands() else {
            return Err(Abort::Error("no commands were given".to_owned()));
        };
        let bound = session.scaled(limits::RUNTIME_COMMAND);
        session.unsubscribe().await;
        let stopped = options.kernel.stop_runtime(&commands, bound).await;
        let answer = ctx.case.call(Request::Version).await;
        // Whatever came of that, the node needs its runtime.
        let started = options.kernel.start_runtime(&commands.start, bound).await;
        let of = |what: &'static str| {
            move |fault| Abort::Error(format!("the command that {what} the runtime: {fault}"))
        };
        stopped.map_err(of("stops"))?;
        started.map_err(of("starts"))?;
        session
            .renew(session.scaled(limits::RUNTIME_RETURN))
            .await?;
        let wanted = "the runtime's end and return".to_owned();
        ctx.case.waits.record(wanted, true, bound);
        if answer.is_ok() {
            return Err(Abort::Inconclusive(
                "the runtime still answered when the command had ended that stops it".to_owned(),
            ));
        }
        Ok(())
    }
}
