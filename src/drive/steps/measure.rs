//! Counting what the runtime or the case's pods hold.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use super::{Abort, Effect, StepContext};
use crate::case::MeasureStep;
use crate::drive::remaining::{containers_left, sandboxes_left};
use crate::drive::sweep::foreign_pods;
use crate::history::{Body, CaseHistory, Holder, HostFact, Reply, Request, Resource};
use crate::limits;

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
        fact: HostFact::Held(resource, count),
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

/// Checks that no pods of others are on the node: the runtime holds something for them, too.
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
        if let HostFact::Held(resource, count) = fact {
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
