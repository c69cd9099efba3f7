//! Listing a pod's containers and sandboxes by each filter that the CRI has.

use super::{Abort, Effect, StepContext};
use crate::case::ListWithFiltersStep;
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

impl Effect for ListWithFiltersStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let (sandbox, pod) = ctx
            .scope
            .sandbox(&self.sandbox)
            .ok_or_else(|| Abort::unbound(&self.sandbox))?;
        let all = ContainerFilter {
            labels: pod.labels.clone(),
            streamed: self.streamed,
            ..ContainerFilter::default()
        };
        let listed = match ctx.ask(Request::FindContainers(all.clone())).await? {
            Reply::Containers(listed) => listed,
            _ => Vec::new(),
        };
        let containers = listed.iter().map(|listed| (&listed.id, &listed.labels));
        for filter in container_filters(&all, sandbox, containers) {
            ctx.ask(Request::FindContainers(filter)).await?;
        }
        for filter in sandbox_filters(&all, sandbox) {
            ctx.ask(Request::FindSandboxes(filter)).await?;
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
