//! Running a container that no call of the CRI makes, by the user's command.

use super::{Abort, Effect, StepContext};
use crate::case::OutsideCriStep;
use crate::limits;

impl Effect for OutsideCriStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let session = ctx.session();
        let options = session.options();
        let bound = session.scaled(limits::OUTSIDE_WAIT);
        let Some(command) = options.asked.hooks.outside_cri() else {
            return Err(Abort::Error("no command was given".to_owned()));
        };
        let living = options.kernel.run_outside_cri(command, bound);
        let lived = tokio::select! {
            lived = living => lived,
            () = session.stop().cancelled() => return Err(Abort::interrupted()),
        };
        lived.map_err(|fault| {
            Abort::Inconclusive(format!("the command of --outside-cri: {fault}"))
        })?;
        let wanted = "the end of the command of --outside-cri".to_owned();
        ctx.case.waits.record(wanted, true, bound);
        Ok(())
    }
}
