//! What a case does with subscriptions of its own, and beside the stream that all cases read.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::case_run::CaseRunner;
use super::observers::Liveness;
use super::scope::Scope;
use super::steps::{Abort, unbound};
use super::stream_error::StreamError;
use crate::case::{
    AwaitEndStep, Branch, ConnectionSpec, PromptStep, QuietStep, Resubscribe, StepClockStep,
    SubscribeStep, UnsubscribeStep,
};
use crate::cri::{Over, Subscription};
use crate::history::{Body, CaseHistory, Observer, PodUid, StreamEnd, SubscriptionId, Took};

/// The subscriptions of a case that it has not given up.
pub(super) type Observers = Mutex<BTreeMap<SubscriptionId, Subscription>>;

impl CaseRunner {
    pub(super) async fn subscribe(
        &self,
        step: &SubscribeStep,
        scope: &mut Scope,
    ) -> Result<(), Abort> {
        let observer = Observer {
            case: Some(self.run),
            binding: step.binding.clone(),
            stalls: step.stalls,
            deadline: step.deadline,
            unknown_fields: step.unknown_fields,
            authority: step.authority.clone(),
        };
        let over = match step.connection {
            ConnectionSpec::Own => Over::Own(&self.session.options().endpoint),
            ConnectionSpec::Calls => Over::Calls(&self.session.caller().client),
        };
        let effective = step.effective.map(|time| self.session.stretched(time));
        let liveness = effective.map_or(Liveness::Proven, Liveness::After);
        match self.session.observe(over, observer, liveness).await {
            Ok(subscription) => {
                scope.bind_subscription(&step.binding, subscription.id());
                let mut observers = self.observers.lock().await;
                observers.insert(subscription.id(), subscription);
                Ok(())
            }
            // That a subscriber gets events is what it subscribes for.
            Err(StreamError::Silent(bound) | StreamError::OthersAlone { within: bound, .. }) => {
                let wanted = format!("an event on {}", step.binding);
                self.waited(wanted, false, bound);
                Err(Abort::Unmet)
            }
            Err(fault) => Err(fault.into()),
        }
    }

    pub(super) async fn unsubscribe(
        &self,
        step: &UnsubscribeStep,
        scope: &Scope,
    ) -> Result<(), Abort> {
        let id = bound_subscription(scope, &step.subscription)?;
        let subscription = self.observers.lock().await.remove(&id);
        match subscription {
            Some(subscription) if step.hang_up => subscription.hang_up().await,
            Some(subscription) => subscription.cancel().await,
            None => {}
        }
        Ok(())
    }

    pub(super) async fn resume(&self, name: &str, scope: &Scope) -> Result<(), Abort> {
        let id = bound_subscription(scope, name)?;
        if let Some(subscription) = self.observers.lock().await.get(&id) {
            subscription.set_reading(true);
        }
        Ok(())
    }

    pub(super) async fn await_end(&self, step: &AwaitEndStep, scope: &Scope) -> Result<(), Abort> {
        let id = bound_subscription(scope, &step.of)?;
        let bound = self.session.stretched(step.within);
        let has_ended = |history: &CaseHistory| {
            let mut observed = history.observed();
            observed.any(|observed| observed.id() == id && observed.ended().is_some())
        };
        let began = Instant::now();
        let met = self.wait_by(began + bound, has_ended).await?;
        let wanted = format!("the end of {}", step.of);
        self.waited_for(wanted, met, bound, Took::End(began.elapsed()));
        if met { Ok(()) } else { Err(Abort::Unmet) }
    }

    /// Takes steps and listens for a time, and nothing may come. The time is the requirement.
    pub(super) async fn quiet(
        self: &Arc<Self>,
        step: &QuietStep,
        scope: &mut Scope,
    ) -> Result<(), Abort> {
        // The last event of a marker may come when what it proves has been taken for proven.
        let marker = self.session.marker_uid().await;
        let mut reader = self.session.recorder().reader();
        self.clone().steps(&step.steps, scope).await?;
        let deadline = Instant::now() + step.time;
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
                () = self.session.stop().cancelled() => {
                    return Err(Abort::Error("interrupted".to_owned()));
                }
            }
        };
        let wanted = format!("the end of {:?} without an event", step.time);
        self.waited(wanted, is_over, step.time);
        if is_over { Ok(()) } else { Err(Abort::Unmet) }
    }

    /// Takes steps of which each call has to return within a time.
    pub(super) async fn prompt(
        self: &Arc<Self>,
        step: &PromptStep,
        scope: &mut Scope,
    ) -> Result<(), Abort> {
        let around = scope.set_prompt(Some(self.session.stretched(step.within)));
        let taken = self.clone().steps(&step.steps, scope).await;
        scope.set_prompt(around);
        taken
    }

    /// Takes steps while the wall clock is wrong. However they end, it is put right.
    pub(super) async fn step_clock(
        self: &Arc<Self>,
        step: &StepClockStep,
        scope: &mut Scope,
    ) -> Result<(), Abort> {
        let kernel = &self.session.options().kernel;
        let stepped = kernel.step_clock(step.by_ns()).map_err(|fault| {
            Abort::Inconclusive(format!("the host's wall clock cannot be set: {fault}"))
        })?;
        let taken = self.clone().steps(&step.steps, scope).await;
        let put_right = stepped.put_right();
        put_right.map_err(|fault| {
            Abort::Error(format!("the host's wall clock was not put right: {fault}"))
        })?;
        taken
    }

    pub(super) async fn parallel(
        self: &Arc<Self>,
        branches: &[Branch],
        scope: &Scope,
    ) -> Result<(), Abort> {
        let mut taken = JoinSet::new();
        for branch in branches {
            let (this, branch, mut scope) = (self.clone(), branch.clone(), scope.clone());
            taken.spawn(async move { this.steps(&branch.steps, &mut scope).await });
        }
        while let Some(ended) = taken.join_next().await {
            ended.map_err(|fault| Abort::Error(format!("the suite itself failed: {fault}")))??;
        }
        Ok(())
    }

    pub(super) async fn resubscribe(
        self: &Arc<Self>,
        step: &Resubscribe,
        scope: &mut Scope,
    ) -> Result<(), Abort> {
        if step.meanwhile.is_empty() {
            return Ok(self.session.resubscribe().await?);
        }
        self.session.unsubscribe().await;
        let taken = self.clone().steps(&step.meanwhile, scope).await;
        // Whatever came of them, the teardown needs the stream.
        self.session.ensure_stream().await?;
        taken
    }

    /// Waits until all that was sent has come to those who listen. That it does not is for the
    /// oracle to tell.
    pub(super) async fn await_observers(&self) {
        for (id, subscription) in &*self.observers.lock().await {
            let mut reader = self.session.recorder().reader();
            if subscription.is_open() && subscription.is_reading() {
                let _ = self.session.pass_marker(&mut reader, *id).await;
            }
        }
    }

    /// Gives up what the case has left, first what does not read: it may hold up all others.
    pub(super) async fn unsubscribe_all(&self) {
        let observers = std::mem::take(&mut *self.observers.lock().await);
        let (reading, stalled): (Vec<_>, Vec<_>) =
            observers.into_values().partition(Subscription::is_reading);
        for subscription in stalled {
            subscription.hang_up().await;
        }
        for subscription in reading {
            subscription.cancel().await;
        }
    }
}

fn bound_subscription(scope: &Scope, name: &str) -> Result<SubscriptionId, Abort> {
    scope.subscription(name).ok_or_else(|| unbound(name))
}

/// Whether something breaks a quiet time: any event but those of the marker pod, and the end of a
/// stream that we have not given up.
fn disturbs(body: &Body, marker: Option<&PodUid>) -> bool {
    match body {
        Body::Event { event, .. } => marker.is_none() || event.pod_uid() != marker,
        Body::SubscriptionEnded { end, .. } => *end != StreamEnd::Cancelled,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{
        ContainerId, Event, EventKind, Labels, RuntimeNanos, SandboxId, SandboxMetadata,
        SandboxState, SandboxStatus,
    };

    /// An event of a pod; one that tells no sandbox for none.
    fn event(uid: Option<&str>) -> Body {
        let sandbox = uid.map(|uid| SandboxStatus {
            id: SandboxId::from("s"),
            metadata: Some(SandboxMetadata {
                uid: PodUid::from(uid),
                ..SandboxMetadata::default()
            }),
            state: SandboxState::Ready,
            created_at: RuntimeNanos(1),
            ips: Vec::new(),
            labels: Labels::new(),
            annotations: Labels::new(),
            runtime_handler: String::new(),
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
            bytes: 0,
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
