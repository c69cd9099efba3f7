//! The context of a step: the case that is executed, and the names and settings in scope; and the
//! reasons for which steps are aborted.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinError;

use super::{is_refusal, perform};
use crate::case::{CallOutcome, Step};
use crate::drive::active_case::ActiveCase;
use crate::drive::options::Sabotage;
use crate::drive::recording_client::RecordingClient;
use crate::drive::session::Session;
use crate::drive::stream_error::StreamError;
use crate::history::{
    CallFault, ContainerId, ContainerSpec, HostInstant, Reply, Request, SandboxId, SandboxSpec,
    SubscriptionId,
};

/// The context of a step. Steps that are taken concurrently have a copy each.
#[derive(Clone, Debug)]
pub(in crate::drive) struct StepContext {
    pub(in crate::drive) case: Arc<ActiveCase>,
    pub(in crate::drive) scope: Scope,
}

/// Steps under way. Boxed, for steps stand in steps.
type Taken<'a> = Pin<Box<dyn Future<Output = Result<(), Abort>> + Send + 'a>>;

impl StepContext {
    /// Takes steps, one after the other.
    pub(in crate::drive) fn take<'a>(&'a mut self, steps: &'a [Step]) -> Taken<'a> {
        Box::pin(async move {
            for step in steps {
                if self.session().stop().is_cancelled() {
                    return Err(Abort::interrupted());
                }
                perform(step, self).await?;
                let sabotage = &self.session().options().asked.sabotage;
                Sabotage::strike(sabotage.steps_of.as_deref(), &self.case.case.id);
            }
            Ok(())
        })
    }

    pub(super) fn session(&self) -> &Session {
        &self.case.session
    }

    /// The client that makes the calls of these steps.
    pub(super) fn client(&self) -> &RecordingClient {
        let other = self.scope.client.as_ref();
        other.unwrap_or_else(|| self.session().client())
    }

    /// Sends a call of the step.
    pub(super) async fn send(&self, request: Request) -> Result<Result<Reply, CallFault>, Abort> {
        let method = request.method();
        let synced = self.case.synced_by(&request);
        let call = self.client().call(Some(self.case.run), request);
        let result = match self.scope.call_bound {
            Some(bound) => tokio::time::timeout(bound, call).await.map_err(|_| {
                let wanted = format!("the return of {method}");
                self.case.waits.record(wanted, false, bound);
                Abort::Unmet
            })?,
            None => call.await,
        };
        if let (Ok(_), Some(pod)) = (&result, synced) {
            self.session().request_relist(&pod);
        }
        Ok(result)
    }

    /// Sends a call of the step that must succeed.
    pub(super) async fn must(&self, request: Request) -> Result<Reply, Abort> {
        let method = request.method();
        let result = self.send(request).await?;
        result.map_err(|fault| Abort::failed(method, &fault))
    }

    /// Sends a call that must succeed, by the run's own client and however long it takes: the case
    /// is about the answer.
    pub(super) async fn ask(&self, request: Request) -> Result<Reply, Abort> {
        let method = request.method();
        let answer = self.case.call(request).await;
        answer.map_err(|fault| Abort::failed(method, &fault))
    }

    /// Sends a call of the step that may end as expected, or that the client gives up on; returns
    /// its reply if it succeeded.
    pub(super) async fn attempt(
        &self,
        request: Request,
        expect: CallOutcome,
        abandon_after: Option<Duration>,
    ) -> Result<Option<Reply>, Abort> {
        let method = request.method();
        let run = Some(self.case.run);
        if let Some(time) = abandon_after {
            let answer = self.client().call_within(run, request, Some(time)).await;
            return Ok(answer.ok());
        }
        match (self.send(request).await?, expect) {
            (Ok(_), CallOutcome::Failure) => self.refute_failure(method).map(|()| None),
            (Ok(reply), _) => Ok(Some(reply)),
            (Err(fault), CallOutcome::Success) => Err(Abort::failed(method, &fault)),
            (Err(fault), CallOutcome::Failure) if !is_refusal(&fault) => {
                Err(Abort::failed(method, &fault))
            }
            (Err(_), _) => Ok(None),
        }
    }

    /// Records that a call succeeded that must fail, which fails the case. The teardown removes
    /// its objects.
    pub(super) fn refute_failure(&self, method: &str) -> Result<(), Abort> {
        let wanted = format!("the failure of {method}");
        let instead = Some("it succeeded".to_owned());
        self.case
            .waits
            .record_unless(wanted, Duration::ZERO, instead)
    }

    pub(super) fn sandbox(&self, name: &str) -> Result<SandboxId, Abort> {
        Ok(self.scope.sandboxes.get(name)?.0)
    }

    pub(super) fn container(&self, name: &str) -> Result<ContainerId, Abort> {
        Ok(self.scope.containers.get(name)?.0)
    }

    /// The id that events about a name carry.
    pub(super) fn subject(&self, name: &str) -> Result<ContainerId, Abort> {
        let container = self.container(name);
        container.or_else(|_| Ok(ContainerId::from(&self.sandbox(name)?)))
    }
}

/// The scope of a step: the objects to which names are bound, and the client of the calls.
#[derive(Clone, Debug, Default)]
pub(in crate::drive) struct Scope {
    pub(super) sandboxes: Names<(SandboxId, Arc<SandboxSpec>)>,
    pub(super) containers: Names<(ContainerId, Arc<ContainerSpec>)>,
    /// The request of each container, also of one that was not created.
    pub(super) requested: Names<Arc<ContainerSpec>>,
    pub(super) subscriptions: Names<SubscriptionId>,
    /// The current item of the innermost `repeat` with items.
    pub(super) item: Option<u8>,
    /// The container whose monitor was killed last, if it was left alone itself.
    pub(super) unmonitored: Option<ContainerId>,
    /// Whether a monitor, a container, a disk or the clock is disturbed here.
    pub(super) disturbed: bool,
    /// The runtime handler that all sandboxes have here, if they do.
    pub(super) handler: Option<String>,
    /// How soon each call must return.
    pub(super) call_bound: Option<Duration>,
    /// The client that makes the calls, if it is another than the run's.
    pub(super) client: Option<RecordingClient>,
    pub(super) clock: CaseClock,
}

/// The names that are bound to objects of one kind.
#[derive(Clone, Debug)]
pub(in crate::drive) struct Names<T>(BTreeMap<String, T>);

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::drive) struct CaseClock {
    pub(super) began: HostInstant,
    /// The percentage by which the time that workloads take is scaled, if it is more than 100.
    pub(super) timeout_percent: u32,
}

impl Scope {
    /// A scope without names, at the beginning of the steps.
    pub(in crate::drive) fn new(began: HostInstant, timeout_percent: u32) -> Self {
        let clock = CaseClock {
            began,
            timeout_percent,
        };
        Self {
            clock,
            ..Self::default()
        }
    }
}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Clone> Names<T> {
    pub(super) fn bind(&mut self, name: &str, to: T) {
        self.0.insert(name.to_owned(), to);
    }

    pub(super) fn get(&self, name: &str) -> Result<T, Abort> {
        let bound = self.0.get(name).cloned();
        bound.ok_or_else(|| Abort::unbound(name))
    }
}

impl CaseClock {
    /// A time that a workload takes: on a slow node, too, it is to be past its first moments. It is
    /// never shorter than the case says.
    pub(super) fn scaled(self, time: Duration) -> Duration {
        time * self.timeout_percent.max(100) / 100
    }

    /// A time that the runtime is asked to wait, scaled likewise and in whole seconds.
    pub(super) fn whole_seconds(self, time: Duration) -> Duration {
        let time = self.scaled(time);
        Duration::from_secs(time.as_secs() + u64::from(time.subsec_nanos() > 0))
    }
}

/// Why the steps of a case did not come to their end.
#[derive(Debug)]
pub(in crate::drive) enum Abort {
    /// The condition of a wait was not met in time; the history has the wait.
    Unmet,
    /// The case proves nothing: the situation that it is about did not arise.
    Inconclusive(String),
    /// The case is about something that this runtime does not do.
    NotApplicable(String),
    /// The suite cannot go on, or the runtime failed a call that the case is not about.
    Error(String),
}

impl Abort {
    /// A call failed that must succeed.
    pub(in crate::drive) fn failed(method: &str, fault: &CallFault) -> Self {
        Self::Error(fault.of(method))
    }

    /// A name of the case is unbound.
    pub(in crate::drive) fn unbound(name: &str) -> Self {
        Self::Error(format!("`{name}` was never made"))
    }

    /// The suite cannot bring the situation about.
    pub(in crate::drive) fn inconclusive(why: impl fmt::Display) -> Self {
        Self::Inconclusive(why.to_string())
    }

    /// The run is being stopped.
    pub(in crate::drive) fn interrupted() -> Self {
        Self::Error("interrupted".to_owned())
    }
}

impl From<JoinError> for Abort {
    fn from(fault: JoinError) -> Self {
        Self::Error(format!("the suite itself failed: {fault}"))
    }
}

impl From<StreamError> for Abort {
    fn from(fault: StreamError) -> Self {
        Self::Error(fault.to_string())
    }
}
