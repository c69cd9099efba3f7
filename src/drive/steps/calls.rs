//! Steps that make a call on an object of the case, and the specs of the objects that they create.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Abort, Effect, MISSING_IMAGE, Scope, StepContext, is_refusal};
use crate::case::{
    AllocateInChildSpec, AllocateOnTermSpec, AllocateSpec, CallOutcome, CheckpointStep, CreateStep,
    Delay, DieSpec, ExecStep, ExitAtSpec, ExitSpec, ImageName, Number, RemoveSandboxStep,
    RemoveStep, SandboxStep, StartStep, StopSandboxStep, StopStep, UntilSignalSpec, UpdateStep,
    WorkloadSpec,
};
use crate::history::{
    ContainerId, ContainerSpec, Flaw, HostInstant, PodUid, Reply, Request, SandboxSpec, Signal,
};
use crate::limits;
use crate::workload::Workload;

impl Effect for SandboxStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let mut spec = sandbox_spec(self, ctx)?;
        if let Some(mib) = self.memory_mib {
            let session = ctx.session();
            let cgroup = session.new_cgroup();
            ctx.case.keep_cgroup(cgroup.clone());
            let given = session.give_cgroup(&cgroup, mib, &mut spec);
            given.map_err(|fault| Abort::Error(format!("make a cgroup: {fault}")))?;
        }
        let spec = Arc::new(spec);
        let request = Request::RunSandbox(spec.clone());
        let made = if self.without_uid {
            // No kubelet makes such a pod, and CRI-O cannot give it a name.
            let refused = |fault| {
                Abort::NotApplicable(format!("the runtime refuses a pod without a UID: {fault}"))
            };
            Some(ctx.send(request).await?.map_err(refused)?)
        } else {
            ctx.attempt(request, self.expect, self.abandon_after)
                .await?
        };
        if let Some(Reply::Sandbox(id)) = made {
            ctx.scope.sandboxes.bind(&self.binding, (id, spec));
        }
        Ok(())
    }
}

fn sandbox_spec(step: &SandboxStep, ctx: &StepContext) -> Result<SandboxSpec, Abort> {
    let session = ctx.session();
    let spec = session.sandbox_spec(&step.binding, &ctx.case.case.id);
    let mut spec = SandboxSpec::clone(&spec);
    if let Some(earlier) = &step.attempt_of {
        let (_, pod) = ctx.scope.sandboxes.get(earlier)?;
        spec = SandboxSpec {
            binding: step.binding.clone(),
            attempt: pod.attempt + 1,
            ..SandboxSpec::clone(&pod)
        };
    }
    if step.without_uid {
        spec.uid = PodUid::default();
        spec.labels
            .insert("io.kubernetes.pod.uid".to_owned(), String::new());
    }
    let handler = step.runtime_handler.as_ref();
    if let Some(handler) = handler.or(ctx.scope.handler.as_ref()) {
        spec.runtime_handler.clone_from(handler);
    }
    if step.faulty {
        let faulty = session.options().asked.hooks.faulty_handler();
        spec.runtime_handler = faulty
            .map(str::to_owned)
            .ok_or_else(|| Abort::Error("no handler that fails on demand was named".to_owned()))?;
    }
    spec.own_network |= step.own_network;
    spec.shared_pid |= step.shared_pid;
    spec.sysctls = step.sysctls.clone().into_iter().collect();
    spec.labels.extend(step.labels.clone());
    spec.annotations.extend(step.annotations.clone());
    Ok(spec)
}

impl Effect for CreateStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let spec = Arc::new(container_spec(self, ctx)?);
        ctx.scope.requested.bind(&self.binding, spec.clone());
        let request = Request::CreateContainer(spec.clone());
        let made = if self.may_be_refused {
            let made = ctx.send(request).await?.map_err(|fault| {
                Abort::NotApplicable(format!(
                    "the runtime refuses `{}` already at CreateContainer: {fault}",
                    self.binding
                ))
            })?;
            Some(made)
        } else {
            ctx.attempt(request, self.expect, self.abandon_after)
                .await?
        };
        if let Some(Reply::Container(id)) = made {
            ctx.scope.containers.bind(&self.binding, (id, spec));
        }
        Ok(())
    }
}

fn container_spec(step: &CreateStep, ctx: &StepContext) -> Result<ContainerSpec, Abort> {
    let (session, scope) = (ctx.session(), &ctx.scope);
    let pod = scope.sandboxes.get(&step.sandbox)?;
    let target = step.pid_target.as_ref();
    let target = target.map(|target| ctx.container(target)).transpose()?;
    let name = match &step.attempt_of {
        Some(earlier) => scope.containers.get(earlier)?.1.name().to_owned(),
        None => step.binding.clone(),
    };
    let workload = scope.workload(&step.workload);
    let attempt = ctx.case.next_attempt(&pod.1.uid, &name);
    let mut spec = session.container_spec((&pod.0, &pod.1), &name, attempt, &workload);
    spec.name = (name != step.binding).then_some(name);
    spec.binding.clone_from(&step.binding);
    spec.tty = step.tty;
    spec.memory_bytes = step.memory_mib.map(|mib| u64::from(mib) << 20);
    spec.oom_group = step.oom_group;
    spec.flaw = step.flaw;
    spec.pid_target = target;
    spec.stop_signal = step.stop_signal.map(Signal::from).unwrap_or_default();
    spec.mounted = step.mounted;
    if step.unlabelled {
        spec.labels = session.labels();
    }
    spec.labels.extend(step.labels.clone());
    spec.annotations.extend(step.annotations.clone());
    spec.annotations
        .extend(step.annotation_kib.map(long_annotation));
    if step.image == Some(ImageName::Missing) {
        MISSING_IMAGE.clone_into(&mut spec.image);
    }
    if let Some(original) = &step.checkpoint_of {
        spec.image = checkpoint(original, step.flaw, ctx)?;
    }
    if let Some(twin) = &step.same_as {
        let twin = scope.requested.get(twin)?;
        spec.name = Some(twin.name().to_owned());
        spec.labels.clone_from(&twin.labels);
        spec.attempt = twin.attempt;
    }
    Ok(spec)
}

/// The path of a container's checkpoint, or of a damaged copy.
fn checkpoint(of: &str, flaw: Option<Flaw>, ctx: &StepContext) -> Result<String, Abort> {
    let whole = ctx.session().checkpoint_location(&ctx.container(of)?);
    if flaw != Some(Flaw::Checkpoint) {
        return Ok(whole);
    }
    let damaged = format!("{whole}{}", ContainerSpec::DAMAGED);
    let kernel = &ctx.session().options().kernel;
    let copied = kernel.damage_checkpoint(Path::new(&whole), Path::new(&damaged));
    copied.map_err(|fault| {
        let reason = format!("the checkpoint {whole} cannot be damaged here: {fault}");
        Abort::NotApplicable(reason)
    })?;
    Ok(damaged)
}

/// An annotation of so many KiB.
fn long_annotation(kib: u32) -> (String, String) {
    let kibibyte = "0123456789abcdef".repeat(64);
    ("bulk".to_owned(), kibibyte.repeat(kib as usize))
}

impl Effect for StartStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let container = id_or_prefix(ctx.container(&self.container)?, self.by_prefix);
        let start = Request::StartContainer(container);
        let started = ctx.attempt(start, self.expect, self.abandon_after).await;
        prefix_outcome(started, self.by_prefix)
    }
}

impl Effect for StopStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let stop = Request::StopContainer {
            container: id_or_prefix(ctx.container(&self.container)?, self.by_prefix),
            grace: ctx.scope.clock.whole_seconds(self.grace),
        };
        let stopped = ctx.attempt(stop, self.expect, self.abandon_after).await;
        prefix_outcome(stopped, self.by_prefix)
    }
}

impl Effect for RemoveStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let container = id_or_prefix(ctx.container(&self.container)?, self.by_prefix);
        let remove = Request::RemoveContainer(container);
        let Some(within) = self.within else {
            let removed = ctx.attempt(remove, self.expect, None).await;
            return prefix_outcome(removed, self.by_prefix);
        };
        let bound = ctx.session().scaled(within);
        let until = Instant::now() + bound;
        let mut pace = tokio::time::interval(limits::REMOVAL_PACE);
        let refused = loop {
            pace.tick().await;
            match ctx.send(remove.clone()).await? {
                Ok(_) => break None,
                Err(fault) if !is_refusal(&fault) => {
                    return Err(Abort::failed(remove.method(), &fault));
                }
                Err(fault) if Instant::now() >= until => break Some(fault),
                Err(_) => {}
            }
        };
        let wanted = format!("the removal of {}", self.container);
        let instead = refused.map(|fault| format!("refused to the last: {fault}"));
        ctx.case.waits.record_unless(wanted, bound, instead)
    }
}

impl Effect for StopSandboxStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let sandbox = ctx.sandbox(&self.sandbox)?;
        ctx.must(Request::StopSandbox(sandbox)).await.map(drop)
    }
}

impl Effect for RemoveSandboxStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let sandbox = ctx.sandbox(&self.sandbox)?;
        ctx.must(Request::RemoveSandbox(sandbox)).await.map(drop)
    }
}

/// The id, or as much of it as people write.
pub(super) fn id_or_prefix(id: ContainerId, by_prefix: bool) -> ContainerId {
    let prefix = id.as_str().get(..limits::ID_PREFIX);
    let prefix = prefix.filter(|_| by_prefix).map(ContainerId::from);
    prefix.unwrap_or(id)
}

/// The outcome of such a call. A runtime need not accept less than the whole id.
pub(super) fn prefix_outcome(
    outcome: Result<Option<Reply>, Abort>,
    by_prefix: bool,
) -> Result<(), Abort> {
    match outcome {
        Err(Abort::Error(fault)) if by_prefix => Err(Abort::Inconclusive(format!(
            "the runtime does not take the beginning of an id for the id: {fault}"
        ))),
        outcome => outcome.map(drop),
    }
}

impl Effect for ExecStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let request = Request::ExecSync {
            container: ctx.container(&self.container)?,
            command: ctx.scope.workload(&self.runs).command(),
            timeout: ctx.scope.clock.whole_seconds(self.timeout),
        };
        let answer = ctx.client().call(Some(ctx.case.run), request).await;
        match (answer, self.expect) {
            (Err(fault), CallOutcome::Success) => Err(Abort::failed("ExecSync", &fault)),
            (Ok(_), CallOutcome::Failure) => ctx.refute_failure("ExecSync"),
            _ => Ok(()),
        }
    }
}

impl Effect for UpdateStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let bytes = self.memory_mib.map(|mib| u64::from(mib) << 20);
        let resources = [
            ("memory_limit_in_bytes", bytes),
            ("memory_swap_limit_in_bytes", bytes),
            ("cpu_shares", self.cpu_shares.map(u64::from)),
        ];
        let resources = resources.into_iter();
        let request = Request::UpdateContainerResources {
            container: ctx.container(&self.container)?,
            resources: resources
                .filter_map(|(name, value)| Some((name, value?.to_string())))
                .collect(),
        };
        ctx.attempt(request, self.expect, None).await.map(drop)
    }
}

impl Effect for CheckpointStep {
    async fn perform(&self, ctx: &mut StepContext) -> Result<(), Abort> {
        let container = ctx.container(&self.container)?;
        let location = ctx.session().checkpoint_location(&container);
        let request = Request::CheckpointContainer {
            container,
            location,
        };
        ctx.must(request).await?;
        Ok(())
    }
}

impl Scope {
    /// The workload of a container or a command.
    pub(super) fn workload(&self, spec: &WorkloadSpec) -> Workload {
        match spec {
            WorkloadSpec::Exit(ExitSpec { code, after }) => Workload::Exit {
                code: self.number(*code),
                after: self.delay(*after),
            },
            WorkloadSpec::ExitAt(ExitAtSpec { code, time }) => Workload::ExitAt {
                code: self.number(*code),
                unix_ms: unix_ms(self.clock.began) + millis(self.clock.scaled(*time)),
            },
            WorkloadSpec::OrphanChild(ExitSpec { code, after }) => Workload::OrphanChild {
                code: self.number(*code),
                after: self.delay(*after),
            },
            WorkloadSpec::Die(DieSpec { signal, after }) => Workload::Die {
                signal: self.number(*signal),
                after: self.delay(*after),
            },
            WorkloadSpec::DumpCore(DieSpec { signal, after }) => Workload::DumpCore {
                signal: self.number(*signal),
                after: self.delay(*after),
            },
            WorkloadSpec::UntilTerm => Workload::UntilTerm,
            WorkloadSpec::IgnoreTerm => Workload::IgnoreTerm,
            WorkloadSpec::UntilSignal(UntilSignalSpec { signal, code }) => Workload::UntilSignal {
                signal: Signal::from(*signal).linux_number().unwrap_or_default(),
                code: self.number(*code),
            },
            WorkloadSpec::Allocate(AllocateSpec { mib, after }) => Workload::Allocate {
                mebibytes: *mib,
                after: self.clock.scaled(*after),
            },
            WorkloadSpec::AllocateOnTerm(AllocateOnTermSpec { mib }) => {
                Workload::AllocateOnTerm { mebibytes: *mib }
            }
            WorkloadSpec::AllocateInChild(AllocateInChildSpec {
                mib,
                after,
                then,
                code,
            }) => Workload::AllocateInChild {
                mebibytes: *mib,
                after: self.clock.scaled(*after),
                then: self.clock.scaled(*then),
                code: self.number(*code),
            },
            WorkloadSpec::MissingProgram => Workload::MissingProgram,
            WorkloadSpec::NotExecutable => Workload::NotExecutable,
            WorkloadSpec::Zombies(count) => Workload::Zombies { count: *count },
        }
    }

    fn delay(&self, delay: Delay) -> Duration {
        self.clock.scaled(match delay {
            Delay::Given(duration) => duration,
            Delay::Item => Duration::from_millis(self.item.unwrap_or_default().into()),
        })
    }

    fn number(&self, number: Number) -> u8 {
        match number {
            Number::Given(number) => number,
            Number::Item => self.item.unwrap_or_default(),
        }
    }
}

/// A moment in milliseconds of the wall clock.
fn unix_ms(at: HostInstant) -> u64 {
    u64::try_from(at.realtime_ns / 1_000_000).unwrap_or_default()
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_workloads_are_scaled_and_never_shortened() {
        let eat = WorkloadSpec::Allocate(AllocateSpec {
            mib: 64,
            after: Duration::from_millis(500),
        });
        for (percent, waits_ms) in [(100, 500), (300, 1_500), (50, 500)] {
            let scope = Scope::new(HostInstant::default(), percent);
            let eaten = Workload::Allocate {
                mebibytes: 64,
                after: Duration::from_millis(waits_ms),
            };
            assert_eq!(scope.workload(&eat), eaten);
        }
    }
}
