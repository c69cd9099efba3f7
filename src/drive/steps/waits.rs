//! Steps on event streams, the run's own and the case's subscriptions, and steps that wait: for an
//! event, an end, an exit, or silence.

use std::time::Duration;

use tokio::time::Instant;

use super::{Abort, Effect, StepContext};
use crate::case::{
    AwaitEndStep, AwaitStep, ConnectionSpec, ProcessExitedStep, ResubscribeStep, ResumeStep,
    StaysSilentStep, SubscribeStep, UnsubscribeStep,
};
use crate::cri::{Over, Subscription};
use crate::drive::active_case::ActiveCase;
use crate::drive::session::Session;
use crate::drive::stream_error::StreamError;
use crate::history::{
    Body, CaseHistory, ContainerId, ContainerState, EventKind, Observer, PodUid, Reply, Request,
    StreamEnd, SubjectKind, Took,
};
use crate::limits;

impl Effect for ResubscribeStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        if self.meanwhile.is_empty() {
            return Ok(ctx.session().resubscribe().await?);
        }
        ctx.session().unsubscribe().await;
        let taken = ctx.take(&self.meanwhile).await;
        // The teardown needs the stream, also after a failed step.
        ctx.session().ensure_stream().await?;
        taken
    }
}

impl Effect for SubscribeStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let observer = Observer {
            case: Some(ctx.case.run),
            binding: self.binding.clone(),
            stalls: self.stalls,
            own_process: self.own_process,
            deadline: self.deadline,
            unknown_fields: self.unknown_fields,
            authority: self.authority.clone(),
        };
        let session = &ctx.case.session;
        let over = match self.connection {
            ConnectionSpec::Own => Over::Own(&session.options().endpoint),
            ConnectionSpec::Calls => Over::Calls(&session.client().client),
        };
        let effective = self.effective.map(|time| session.scaled(time));
        let liveness = effective.map_or(Liveness::Proven, Liveness::After);
        match session.observe(over, observer, liveness).await {
            Ok(subscription) => {
                let id = subscription.id();
                ctx.case.subscriptions.add(subscription).await;
                ctx.scope.subscriptions.bind(&self.binding, id);
                Ok(())
            }
            // That a subscriber gets events is what it subscribes for.
            Err(StreamError::Silent(bound) | StreamError::OthersAlone { within: bound, .. }) => {
                let wanted = format!("an event on {}", self.binding);
                ctx.case.waits.record(wanted, false, bound);
                Err(Abort::Unmet)
            }
            Err(fault) => Err(fault.into()),
        }
    }
}

impl Effect for UnsubscribeStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let id = ctx.scope.subscriptions.get(&self.subscription)?;
        ctx.case.subscriptions.close(id, self.hang_up).await;
        Ok(())
    }
}

impl Effect for ResumeStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let id = ctx.scope.subscriptions.get(&self.subscription)?;
        ctx.case.subscriptions.resume(id).await;
        Ok(())
    }
}

/// When a subscription counts as live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Liveness {
    /// An event has arrived that was caused after the opening.
    Proven,
    /// This time has passed.
    After(Duration),
}

impl Session {
    /// Opens a subscription in addition to the run's own; it is live when this returns.
    async fn observe(
        &self,
        over: Over<'_>,
        observer: Observer,
        liveness: Liveness,
    ) -> Result<Subscription, StreamError> {
        let mut reader = self.recorder().reader();
        let stalls = observer.stalls;
        let subscription = Subscription::observe(over, self.recorder(), observer).await?;
        match liveness {
            Liveness::Proven => self.pass_marker(&mut reader, subscription.id()).await?,
            Liveness::After(time) => {
                let stopped = self.stop().cancelled();
                // The time is the requirement: a subscriber gets no sign that it is subscribed.
                if tokio::time::timeout(time, stopped).await.is_ok() {
                    return Err(StreamError::Interrupted);
                }
            }
        }
        subscription.set_reading(!stalls);
        self.recorder().record(Body::SubscriptionProven {
            subscription: subscription.id(),
        });
        Ok(subscription)
    }
}

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
    let seen = |history: &CaseHistory| has_seen(history, id, step.event);
    if step.event == EventKind::Stopped && ctx.scope.unmonitored.as_ref() == Some(id) {
        let soon = ctx.session().scaled(limits::EVENT_WAIT);
        if !view.wait_by(began + soon, seen).await? && still_runs(&ctx.case, id).await {
            return Err(Abort::NotApplicable(format!(
                "{} runs on without its monitor, which was killed {soon:?} before: it has no end \
                 to report",
                step.of
            )));
        }
    }
    let met = view.wait_by(began + bound, seen).await?;
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

impl Effect for AwaitEndStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let id = ctx.scope.subscriptions.get(&self.of)?;
        let bound = ctx.session().scaled(self.within);
        let has_ended = |history: &CaseHistory| {
            let mut observed = history.observed();
            observed.any(|observed| observed.id() == id && observed.ended().is_some())
        };
        let began = Instant::now();
        let met = ctx.case.view.wait_by(began + bound, has_ended).await?;
        let wanted = format!("the end of {}", self.of);
        let took = Took::End(began.elapsed());
        ctx.case.waits.record_timed(wanted, met, bound, took);
        if met { Ok(()) } else { Err(Abort::Unmet) }
    }
}

impl Effect for ProcessExitedStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let container = ctx.container(&self.container)?;
        let kernel = &ctx.session().options().kernel;
        let bound = ctx.session().scaled(self.within.unwrap_or_default());
        let until = Instant::now() + bound;
        let mut pace = tokio::time::interval(limits::PROCESS_LOOK);
        let own = ctx.session().client().own(container.as_str());
        let lives = loop {
            pace.tick().await;
            let lives = kernel.has_process(&own);
            let lives = lives.map_err(Abort::inconclusive)?;
            if !lives || Instant::now() >= until {
                break lives;
            }
        };
        let wanted = format!("no process of {} on the host any more", self.container);
        let instead = lives.then(|| {
            let left = kernel.leftovers(&[own].into_iter().collect());
            let left = left.iter().map(|process| format!(": {process}"));
            left.fold("a process lives on".to_owned(), |text, process| {
                text + &process
            })
        });
        ctx.case.waits.record_unless(wanted, bound, instead)
    }
}

impl Effect for StaysSilentStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        // The last event of a marker may come when what it proves has been taken for proven.
        let marker = ctx.session().marker_uid().await;
        let mut reader = ctx.session().recorder().reader();
        ctx.take(&self.steps).await?;
        // The time is the requirement.
        let deadline = Instant::now() + self.time;
        let is_over = loop {
            let news = reader
                .drain()
                .map_err(|fault| Abort::Error(fault.to_string()))?;
            let marker = marker.as_ref();
            if news.iter().any(|entry| disturbs(&entry.body, marker)) {
                break false;
            }
            tokio::select! {
                () = reader.changed() => {}
                () = tokio::time::sleep_until(deadline) => break true,
                () = ctx.session().stop().cancelled() => return Err(Abort::interrupted()),
            }
        };
        let wanted = format!("the end of {:?} without an event", self.time);
        ctx.case.waits.record(wanted, is_over, self.time);
        if is_over { Ok(()) } else { Err(Abort::Unmet) }
    }
}

/// Whether something breaks the silence: any event but those of the marker pod, and the end of a
/// stream that the suite has not given up.
fn disturbs(body: &Body, marker: Option<&PodUid>) -> bool {
    match body {
        Body::Event { event, .. } => marker.is_none() || event.pod_uid() != marker,
        Body::SubscriptionEnded { end, .. } => *end != StreamEnd::Cancelled,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::history::{
        ContainerId, Event, EventKind, RuntimeNanos, SandboxId, SandboxMetadata, SandboxStatus,
        SubscriptionId,
    };

    /// An event of a pod, or one without a sandbox.
    fn event(uid: Option<&str>) -> Body {
        let sandbox = uid.map(|uid| SandboxStatus {
            id: SandboxId::from("s"),
            metadata: Some(SandboxMetadata {
                uid: PodUid::from(uid),
                ..SandboxMetadata::default()
            }),
            created_at: RuntimeNanos(1),
            ..SandboxStatus::default()
        });
        Body::Event {
            subscription: SubscriptionId(0),
            event: Event {
                container: ContainerId::from("c"),
                kind: EventKind::Deleted,
                created_at: RuntimeNanos(2),
                sandbox: sandbox.map(Into::into),
                containers: Vec::new(),
            },
            message: Bytes::new(),
        }
    }

    #[test]
    fn the_last_event_of_a_marker_disturbs_nothing() {
        let marker = PodUid::from("marker");
        assert!(!disturbs(&event(Some("marker")), Some(&marker)));
        assert!(disturbs(&event(Some("other")), Some(&marker)));
        assert!(disturbs(&event(None), Some(&marker)));
        assert!(disturbs(&event(Some("marker")), None));
        assert!(disturbs(&event(None), None));
    }

    #[test]
    fn the_end_of_a_stream_disturbs_unless_it_is_ours() {
        let ended = |end| Body::SubscriptionEnded {
            subscription: SubscriptionId(0),
            end,
        };
        assert!(!disturbs(&ended(StreamEnd::Cancelled), None));
        assert!(disturbs(&ended(StreamEnd::Closed), None));
        let subscription = SubscriptionId(0);
        assert!(!disturbs(&Body::SubscriptionProven { subscription }, None));
    }
}
