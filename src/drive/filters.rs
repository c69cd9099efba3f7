//! Lists of a pod by each filter that there is.

use std::sync::Arc;

use super::case_run::CaseRunner;
use super::scope::Scope;
use super::steps::{Abort, bound_sandbox, failed};
use crate::case::{Branch, FiltersStep};
use crate::history::{
    ContainerFilter, ContainerId, ContainerState, Labels, Reply, Request, SandboxFilter, SandboxId,
    SandboxState,
};

const CONTAINER_STATES: [ContainerState; 3] = [
    ContainerState::Created,
    ContainerState::Running,
    ContainerState::Exited,
];
const SANDBOX_STATES: [SandboxState; 2] = [SandboxState::Ready, SandboxState::NotReady];

impl CaseRunner {
    /// Lists by all filters, one after the other.
    pub(super) async fn filters(&self, step: &FiltersStep, scope: &Scope) -> Result<(), Abort> {
        let sandbox = bound_sandbox(scope, &step.sandbox)?;
        let (_, pod) = scope
            .sandbox(&step.sandbox)
            .ok_or_else(|| super::steps::unbound(&step.sandbox))?;
        let all = ContainerFilter {
            labels: pod.labels.clone(),
            streamed: step.streamed,
            ..ContainerFilter::default()
        };
        let listed = match self.find(Request::FindContainers(all.clone())).await? {
            Reply::Containers(listed) => listed,
            _ => Vec::new(),
        };
        let containers = listed.iter().map(|listed| (&listed.id, &listed.labels));
        for filter in container_filters(&all, &sandbox, containers) {
            self.find(Request::FindContainers(filter)).await?;
        }
        for filter in sandbox_filters(&all, &sandbox) {
            self.find(Request::FindSandboxes(filter)).await?;
        }
        Ok(())
    }

    async fn find(&self, request: Request) -> Result<Reply, Abort> {
        let method = request.method();
        let found = self.call(request).await;
        found.map_err(|fault| failed(method, &fault))
    }

    /// Takes steps once for each handler with a name that the runtime tells of.
    pub(super) async fn each_handler(
        self: &Arc<Self>,
        step: &Branch,
        scope: &Scope,
    ) -> Result<(), Abort> {
        let handlers = match self.find(Request::RuntimeStatus).await? {
            Reply::RuntimeStatus(status) => status.handlers,
            _ => Vec::new(),
        };
        for handler in handlers.into_iter().filter(|name| !name.is_empty()) {
            let mut scope = scope.clone().with_handler(handler);
            self.clone().steps(&step.steps, &mut scope).await?;
        }
        Ok(())
    }
}

/// By each container's id, by state, by sandbox, and by a container's labels.
fn container_filters<'a>(
    all: &ContainerFilter,
    sandbox: &SandboxId,
    listed: impl Iterator<Item = (&'a ContainerId, &'a Labels)>,
) -> Vec<ContainerFilter> {
    let mut filters = vec![
        all.clone(),
        ContainerFilter {
            sandbox: Some(sandbox.clone()),
            labels: Labels::new(),
            ..all.clone()
        },
    ];
    for state in CONTAINER_STATES {
        let of_state = ContainerFilter {
            state: Some(state),
            ..all.clone()
        };
        filters.push(ContainerFilter {
            sandbox: Some(sandbox.clone()),
            ..of_state.clone()
        });
        filters.push(of_state);
    }
    for (id, labels) in listed {
        filters.push(ContainerFilter {
            id: Some(id.clone()),
            labels: Labels::new(),
            ..all.clone()
        });
        filters.push(ContainerFilter {
            id: Some(id.clone()),
            state: Some(ContainerState::Running),
            ..all.clone()
        });
        filters.push(ContainerFilter {
            labels: labels.clone(),
            ..all.clone()
        });
    }
    filters
}

fn sandbox_filters(all: &ContainerFilter, sandbox: &SandboxId) -> Vec<SandboxFilter> {
    let all = SandboxFilter {
        labels: all.labels.clone(),
        streamed: all.streamed,
        ..SandboxFilter::default()
    };
    let own = SandboxFilter {
        id: Some(sandbox.clone()),
        labels: Labels::new(),
        ..all.clone()
    };
    let mut filters = vec![all.clone(), own.clone()];
    for state in SANDBOX_STATES.map(Some) {
        filters.push(SandboxFilter {
            state,
            ..all.clone()
        });
        filters.push(SandboxFilter {
            state,
            ..own.clone()
        });
    }
    filters
}
