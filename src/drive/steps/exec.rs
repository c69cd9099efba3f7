//! Running a command in a container.

use super::{Abort, Effect, StepContext};
use crate::case::{CallOutcome, ExecStep};
use crate::history::{Reply, Request};

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
