//! Steps that ask the runtime what there is: at the moment of an event, or while others go on.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::time::Instant;

use super::case_run::CaseRunner;
use super::scope::Scope;
use super::steps::{Abort, has_seen, unbound};
use crate::case::{AwaitStep, MeanwhileStep, OnEventStep, Read};
use crate::history::{ContainerId, Request};
use crate::limits;

impl CaseRunner {
    /// Takes steps, and reads the moment an event arrives.
    pub(super) async fn on_event(
        self: &Arc<Self>,
        step: &OnEventStep,
        scope: &mut Scope,
    ) -> Result<(), Abort> {
        let id = scope.subject(&step.of).ok_or_else(|| unbound(&step.of))?;
        let requests = self.requests(&id, &step.read)?;
        let mut reading = pin!(self.read_at(step, &id, &requests));
        let mut steps = self.clone().steps(&step.steps, scope);
        tokio::select! {
            // The event is what this waits for; the steps come to their end anyway.
            biased;
            read = &mut reading => {
                read?;
                return steps.await;
            }
            taken = &mut steps => taken?,
        }
        drop(steps);
        let wait = AwaitStep {
            of: step.of.clone(),
            event: step.event,
            within: None,
        };
        self.await_event(&wait, scope).await?;
        reading.await
    }

    async fn read_at(
        &self,
        step: &OnEventStep,
        id: &ContainerId,
        requests: &[Request],
    ) -> Result<(), Abort> {
        self.wait_until(|history| has_seen(history, id, step.event))
            .await?;
        self.ask(requests).await;
        if let Some(later) = step.again {
            tokio::select! {
                () = tokio::time::sleep_until(Instant::now() + later) => self.ask(requests).await,
                () = self.session.stop().cancelled() => {}
            }
        }
        Ok(())
    }

    /// Takes steps, and reads all the while, and once more when they are over.
    pub(super) async fn meanwhile(
        self: &Arc<Self>,
        step: &MeanwhileStep,
        scope: &mut Scope,
    ) -> Result<(), Abort> {
        let id = scope.subject(&step.of).ok_or_else(|| unbound(&step.of))?;
        let requests = self.requests(&id, &step.read)?;
        let over = AtomicBool::new(false);
        let steps = async {
            let taken = self.clone().steps(&step.steps, scope).await;
            over.store(true, Ordering::Relaxed);
            taken
        };
        let reading = async {
            let mut pace = tokio::time::interval(limits::READING_PACE);
            loop {
                pace.tick().await;
                let last = over.load(Ordering::Relaxed);
                self.ask(&requests).await;
                if last {
                    return;
                }
            }
        };
        let (taken, ()) = tokio::join!(steps, reading);
        taken
    }

    /// Sends calls, one after the other. One that fails stands in the history all the same.
    async fn ask(&self, requests: &[Request]) {
        for request in requests {
            let _ = self.call(request.clone()).await;
        }
    }

    fn requests(&self, id: &ContainerId, read: &[Read]) -> Result<Vec<Request>, Abort> {
        let pod = self.pod_of(id).ok_or_else(|| unbound(id.as_str()))?;
        let labels = self.session().labels();
        let request = |read: &Read| match read {
            Read::Containers => Request::ListContainers {
                sandbox: Some(pod.0.clone()),
                labels: labels.clone(),
            },
            Read::ContainerStatus => Request::ContainerStatus(id.clone()),
            Read::Sandboxes => Request::ListSandboxes(pod.1.labels.clone()),
            Read::SandboxStatus => Request::SandboxStatus(pod.0.clone()),
        };
        Ok(read.iter().map(request).collect())
    }
}
