//! Steps that make something.

use std::path::Path;
use std::sync::Arc;

use super::{Abort, Effect, MISSING_IMAGE, StepContext};
use crate::case::{CreateStep, ImageName, SandboxStep};
use crate::history::{ContainerSpec, Flaw, PodUid, Reply, Request, SandboxSpec, Signal};

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
    let attempt = ctx.case.next_attempt(&name);
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
        let (_, twin) = scope.containers.get(twin)?;
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
