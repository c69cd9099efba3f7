//! The context of a step: the case that is executed, and the names and settings in scope.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::abort::Abort;
use super::scope::Scope;
use super::{is_refusal, perform};
use crate::case::{CallOutcome, Step};
use crate::drive::active_case::ActiveCase;
use crate::drive::recording_client::RecordingClient;
use crate::drive::sabotage::Sabotage;
use crate::drive::session::Session;
use crate::history::{CallFault, ContainerId, Reply, Request, SandboxId};

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
            (Ok(_), CallOutcome::Failure) => Err(Abort::succeeded(method)),
            (Ok(reply), _) => Ok(Some(reply)),
            (Err(fault), CallOutcome::Success) => Err(Abort::failed(method, &fault)),
            (Err(fault), CallOutcome::Failure) if !is_refusal(&fault) => {
                Err(Abort::failed(method, &fault))
            }
            (Err(_), _) => Ok(None),
        }
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
