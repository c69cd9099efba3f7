//! Waiting for an event.

use tokio::time::Instant;

use super::{Abort, Effect, StepContext};
use crate::case::AwaitStep;
use crate::drive::active_case::ActiveCase;
use crate::history::{
    CaseHistory, ContainerId, ContainerState, EventKind, Reply, Request, SubjectKind, Took,
};
use crate::limits;

impl Effect for AwaitStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let id = ctx.subject(&self.of)?;
        await_event(self, &id, ctx).await
    }
}

/// Waits until the event of a step has arrived, which is about this sandbox or container.
pub(super) async fn await_event(
    step: &AwaitStep,
    id: &ContainerId,
    ctx: &StepContext,
) -> Result<(), Abort> {
    let bound = step.within.unwrap_or(limits::EVENT_WAIT);
    let bound = ctx.session().scaled(bound);
    let wanted = format!("{} of {} ({id})", step.event, step.of);
    let began = Instant::now();
    let view = &ctx.case.view;
    let met = view
        .wait_by(began + bound, |history| has_seen(history, id, step.event))
        .await?;
    let took = Took::Event(began.elapsed());
    ctx.case.waits.record_timed(wanted, met, bound, took);
    if met {
        return Ok(());
    }
    // What a stream that has ended did not bring, nobody can demand.
    ctx.session().stream().await?;
    let may_run_on =
        step.event == EventKind::Stopped && !view.holds(|history| was_stopped(history, id))?;
    if may_run_on && still_runs(&ctx.case, id).await {
        return Err(Abort::Inconclusive(format!(
            "{} of {} ({id}) did not come within {bound:?}, and its status says that it runs: it \
             has not ended",
            step.event, step.of
        )));
    }
    Err(Abort::Unmet)
}

/// Whether the status of a container says that it runs, and the kernel does not know better.
async fn still_runs(case: &ActiveCase, id: &ContainerId) -> bool {
    let asked = case.call(Request::ContainerStatus(id.clone())).await;
    let Ok(Reply::ContainerStatus(report)) = asked else {
        return false;
    };
    let kernel = &case.session.options().kernel;
    let own = case.session.client().own(id.as_str());
    let is_dead = matches!(kernel.has_process(&own), Ok(false));
    report.status.state == ContainerState::Running && !is_dead
}

/// Whether the runtime has reported success of stopping a container, or the sandbox that it is in.
fn was_stopped(history: &CaseHistory, id: &ContainerId) -> bool {
    let mut subjects = history.subjects().iter();
    let sandbox = subjects.find_map(|subject| match &subject.kind {
        SubjectKind::Container(spec) if subject.id == *id => Some(&spec.sandbox),
        _ => None,
    });
    history.calls().any(|call| {
        let stops = match call.request() {
            Request::StopContainer { container, .. } => container == id,
            Request::StopSandbox(stopped) => Some(stopped) == sandbox,
            _ => false,
        };
        stops && matches!(call.result(), Some(Ok(_)))
    })
}

/// Whether an event about a sandbox or container has arrived.
pub(super) fn has_seen(history: &CaseHistory, id: &ContainerId, kind: EventKind) -> bool {
    let subject = history.subjects().iter().find(|subject| subject.id == *id);
    subject.is_some_and(|subject| subject.first(kind).is_some())
}
