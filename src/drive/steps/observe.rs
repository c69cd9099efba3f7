//! Steps that read the state that the runtime reports or holds, and calls of any name.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::waits::{await_event, has_seen};
use super::{Abort, Effect, MISSING_IMAGE, StepContext};
use crate::case::{
    AwaitStep, CallStep, ListWithFiltersStep, MeasureStep, Method, OnEventStep, PollDuringStep,
    Query, RelistStep,
};
use crate::drive::active_case::ActiveCase;
use crate::drive::case_run::{containers_left, sandboxes_left};
use crate::drive::sweep::foreign_pods;
use crate::history::{
    Body, CaseHistory, ContainerFilter, ContainerId, ContainerState, Holder, HostFact, Labels,
    Reply, Request, Resource, SandboxFilter, SandboxId, SandboxState,
};
use crate::limits;

impl Effect for RelistStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let sandbox = ctx.sandbox(&self.sandbox)?;
        if ctx.scope.call_bound.is_none() {
            let relisted = ctx.case.list_and_read(sandbox).await;
            return relisted.map_err(|fault| Abort::failed("ListContainers", &fault));
        }
        let request = ctx.case.list_request(sandbox);
        if let Reply::Containers(listed) = ctx.must(request).await? {
            for container in listed {
                let status = Request::ContainerStatus(container.id);
                let _ = ctx.send(status).await?;
            }
        }
        Ok(())
    }
}

const CONTAINER_STATES: [ContainerState; 3] = [
    ContainerState::Created,
    ContainerState::Running,
    ContainerState::Exited,
];
const SANDBOX_STATES: [SandboxState; 2] = [SandboxState::Ready, SandboxState::NotReady];

impl Effect for ListWithFiltersStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let (sandbox, pod) = ctx.scope.sandboxes.get(&self.sandbox)?;
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
        for filter in container_filters(&all, &sandbox, containers) {
            ctx.ask(Request::FindContainers(filter)).await?;
        }
        for filter in sandbox_filters(&all, &sandbox) {
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

/// The calls by which a case asks about a sandbox or container.
pub(super) fn requests(
    case: &ActiveCase,
    id: &ContainerId,
    queries: &[Query],
) -> Result<Vec<Request>, Abort> {
    let pod = case.view.pod_of(id);
    let (sandbox, spec) = pod.ok_or_else(|| Abort::unbound(id.as_str()))?;
    let labels = case.session.labels();
    let request = |query: &Query| match query {
        Query::Containers => Request::containers(Some(sandbox.clone()), labels.clone()),
        Query::ContainerStatus => Request::ContainerStatus(id.clone()),
        Query::Sandboxes => Request::sandboxes(spec.labels.clone()),
        Query::SandboxStatus => Request::SandboxStatus(sandbox.clone()),
    };
    Ok(queries.iter().map(request).collect())
}

/// Sends calls, one after the other. One that fails stands in the history all the same.
pub(super) async fn ask(case: &ActiveCase, requests: &[Request]) {
    for request in requests {
        let _ = case.call(request.clone()).await;
    }
}

impl Effect for OnEventStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let id = ctx.subject(&self.of)?;
        let case = ctx.case.clone();
        let requests = requests(&case, &id, &self.read)?;
        let mut reading = pin!(ask_at_event(self, &case, &id, &requests));
        let mut steps = ctx.take(&self.steps);
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
            of: self.of.clone(),
            event: self.event,
            within: None,
        };
        await_event(&wait, &id, ctx).await?;
        reading.await
    }
}

async fn ask_at_event(
    step: &OnEventStep,
    case: &ActiveCase,
    id: &ContainerId,
    requests: &[Request],
) -> Result<(), Abort> {
    case.view
        .wait_until(|history| has_seen(history, id, step.event))
        .await?;
    ask(case, requests).await;
    if let Some(later) = step.read_again_after {
        tokio::select! {
            () = tokio::time::sleep_until(Instant::now() + later) => ask(case, requests).await,
            () = case.session.stop().cancelled() => {}
        }
    }
    Ok(())
}

impl Effect for PollDuringStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let id = ctx.subject(&self.of)?;
        let case = ctx.case.clone();
        let requests = requests(&case, &id, &self.read)?;
        let over = AtomicBool::new(false);
        let steps = async {
            let taken = ctx.take(&self.steps).await;
            over.store(true, Ordering::Relaxed);
            taken
        };
        let polls = async {
            let mut pace = tokio::time::interval(limits::READING_PACE);
            loop {
                pace.tick().await;
                // Once more when they are over.
                let last = over.load(Ordering::Relaxed);
                ask(&case, &requests).await;
                if last {
                    return;
                }
            }
        };
        let (taken, ()) = tokio::join!(steps, polls);
        taken
    }
}

impl Effect for MeasureStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        if self.of != Holder::Pods {
            check_alone(ctx).await?;
        }
        if self.of == Holder::Log {
            return self.count_logged(ctx).await;
        }
        let session = ctx.session();
        let history = ctx.case.view.history();
        let (first, ids) = (first_measured(&history), ids(&history));
        let until = Instant::now() + session.scaled(self.within.unwrap_or(Duration::ZERO));
        let mut pace = tokio::time::interval(limits::PROCESS_LOOK);
        let held = loop {
            pace.tick().await;
            let held = count(ctx, self.of, &ids).await?;
            let mut released = held.iter().filter(|(it, _)| *it != Resource::MemoryKib);
            let is_settled = |(resource, count): &(Resource, u64)| {
                first.get(resource).is_none_or(|first| count <= first)
            };
            if released.all(is_settled) || Instant::now() >= until {
                break held;
            }
        };
        check_seen(&history, &held)?;
        for (resource, count) in held {
            record(ctx, resource, count);
        }
        Ok(())
    }
}

impl MeasureStep {
    /// Counts the lines that the runtime logs while the steps are taken.
    async fn count_logged(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let before = log_lines(ctx).await?;
        ctx.take(&self.steps).await?;
        let after = log_lines(ctx).await?;
        let shorter = || Abort::Inconclusive("the log was rotated meanwhile".to_owned());
        let logged = after.checked_sub(before).ok_or_else(shorter)?;
        record(ctx, Resource::LogLines, logged);
        Ok(())
    }
}

fn record(ctx: &StepContext, resource: Resource, count: u64) {
    ctx.session().recorder().record(Body::Fact {
        case: ctx.case.run,
        fact: HostFact::Held { resource, count },
    });
}

async fn log_lines(ctx: &StepContext) -> Result<u64, Abort> {
    let options = ctx.session().options();
    let command = options.asked.hooks.runtime_log();
    let bound = ctx.session().scaled(limits::LOG_WAIT);
    let counted = options.kernel.log_lines(command.as_deref(), bound).await;
    let unknown = |fault| Abort::Inconclusive(format!("what the runtime has logged: {fault}"));
    counted.map_err(unknown)
}

async fn count(
    ctx: &StepContext,
    holder: Holder,
    ids: &BTreeSet<String>,
) -> Result<Vec<(Resource, u64)>, Abort> {
    let options = ctx.session().options();
    let counted = options
        .kernel
        .resources(options.endpoint.socket(), holder, ids);
    let unknown = |fault| Abort::Inconclusive(format!("what the runtime holds: {fault}"));
    counted.await.map_err(unknown)
}

/// Checks that no foreign pods are on the node: the runtime has resources for them, too.
async fn check_alone(ctx: &StepContext) -> Result<(), Abort> {
    let options = ctx.session().options();
    let pods = foreign_pods(ctx.session().client()).await;
    let pods = pods.map_err(|fault| Abort::Error(fault.to_string()))?;
    if pods.all == 0 || options.kernel.is_simulated() {
        return Ok(());
    }
    Err(Abort::Inconclusive(format!(
        "what the runtime holds for pods of others ({}) cannot be told apart",
        pods.all
    )))
}

/// Checks that each resource is seen that pods of the case use now.
fn check_seen(history: &CaseHistory, held: &[(Resource, u64)]) -> Result<(), Abort> {
    let has_containers = !containers_left(history).is_empty();
    let has_networks = has_own_networks(history);
    let unseen = held.iter().find(|(resource, count)| {
        let is_used = match resource.holder() {
            Holder::Pods => has_containers,
            Holder::Runtime => has_networks && *resource == Resource::NetworkNamespaces,
            Holder::Log => false,
        };
        is_used && *count == 0
    });
    unseen.map_or(Ok(()), |(resource, _)| {
        let reason = format!("pods run, and none of the {resource} is seen on this host");
        Err(Abort::Inconclusive(reason))
    })
}

/// Whether a sandbox with a network of its own has not been removed.
fn has_own_networks(history: &CaseHistory) -> bool {
    let left = sandboxes_left(history);
    history
        .calls()
        .any(|call| match (call.request(), call.result()) {
            (Request::RunSandbox(spec), Some(Ok(Reply::Sandbox(id)))) => {
                spec.own_network && left.contains(id)
            }
            _ => false,
        })
}

/// The first measurement of each resource.
fn first_measured(history: &CaseHistory) -> BTreeMap<Resource, u64> {
    let mut first = BTreeMap::new();
    for fact in history.facts() {
        if let HostFact::Held { resource, count } = fact {
            first.entry(*resource).or_insert(*count);
        }
    }
    first
}

/// The ids of all sandboxes and containers that the case has made.
fn ids(history: &CaseHistory) -> BTreeSet<String> {
    let made = history.calls().filter_map(|call| match call.result() {
        Some(Ok(Reply::Sandbox(id))) => Some(id.to_string()),
        Some(Ok(Reply::Container(id))) => Some(id.to_string()),
        _ => None,
    });
    made.collect()
}

impl Effect for CallStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let image = || ctx.session().options().image.clone();
        let request = match self.method {
            Method::Version => Request::Version,
            Method::ListImages => Request::ListImages,
            Method::ImageStatus => Request::ImageStatus(image()),
            Method::RemoveImage => Request::RemoveImage(MISSING_IMAGE.to_owned()),
            Method::PullImage => Request::PullImage(image()),
            Method::StopContainer => Request::StopContainer {
                container: ContainerId::from(unknown_id()),
                grace: Duration::ZERO,
            },
            Method::RemoveContainer => Request::RemoveContainer(ContainerId::from(unknown_id())),
            Method::StopPodSandbox => Request::StopSandbox(SandboxId::from(unknown_id())),
            Method::RemovePodSandbox => Request::RemoveSandbox(SandboxId::from(unknown_id())),
            Method::NoEvent(call) => {
                let id = match &self.of {
                    Some(of) => ctx.subject(of)?.to_string(),
                    None => String::new(),
                };
                Request::NoEventCall(call, id)
            }
        };
        let must_succeed = matches!(
            self.method,
            Method::Version | Method::ListImages | Method::ImageStatus | Method::RemoveImage
        );
        if must_succeed {
            return ctx.must(request).await.map(drop);
        }
        // A runtime may not have the call or the id, and an imported image cannot be pulled.
        let _ = ctx.client().call(Some(ctx.case.run), request).await;
        Ok(())
    }
}

/// An id that no object has.
fn unknown_id() -> String {
    let random = || uuid::Uuid::new_v4().simple();
    format!("{}{}", random(), random())
}
