//! Sending a signal to a container's process from the host.

use std::time::Duration;

use super::{Abort, Effect, StepContext};
use crate::case::SignalStep;
use crate::history::Signal;

impl Effect for SignalStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let container = ctx.container(&self.container)?;
        let kernel = &ctx.session().options().kernel;
        let own = ctx.session().client().own(container.as_str());
        let signal = Signal::from(self.signal);
        let sent = kernel.signal_process(&own, signal);
        let pid = sent.map_err(|fault| Abort::Inconclusive(fault.to_string()))?;
        let wanted = format!("{signal} to be sent to {}'s process {pid}", self.container);
        ctx.case.waits.record(wanted, true, Duration::ZERO);
        Ok(())
    }
}
